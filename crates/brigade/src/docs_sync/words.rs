//! A line of a shell as words, as far as papers go: quotes, comments, and where one command ends.

/// The commands of a line or of several, each as its words. Variables set before a command are left out.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"') | None, '\\') => match letters.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => {
                while letters.next_if(|letter| *letter != '\n').is_some() {}
            }
            (None, ' ' | '\t') => commands.last_mut().unwrap().extend(word.take()),
            (None, '\n' | ';' | '&' | '|' | '(' | ')') => {
                commands.last_mut().unwrap().extend(word.take());
                commands.push(Vec::new());
            }
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    commands.last_mut().unwrap().extend(word);
    commands.into_iter().map(told).filter(|words| !words.is_empty()).collect()
}

/// The words that the program is told: nothing of where its output goes.
fn told(words: Vec<String>) -> Vec<String> {
    let is_variable = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
    };
    let mut told = Vec::new();
    let mut words = words.into_iter().skip_while(is_variable);
    while let Some(word) = words.next() {
        match word.trim_start_matches(|letter: char| letter.is_ascii_digit()) {
            ">" | ">>" | "<" => drop(words.next()),
            redirected if redirected.starts_with(['>', '<']) => {}
            _ => told.push(word),
        }
    }
    told
}

#[test]
fn a_line_is_read_as_a_shell_reads_it() {
    for (line, expected) in [
        (
            "brigade send bob \"it's \\\"so\\\"\"  # why",
            vec![vec!["brigade", "send", "bob", "it's \"so\""]],
        ),
        ("A=b brigade up && x | y", vec![vec!["brigade", "up"], vec!["x"], vec!["y"]]),
        ("brigade log > f 2>&1", vec![vec!["brigade", "log"], vec!["1"]]),
        (
            "brigade send a '' \\\n  --summary b#c",
            vec![vec!["brigade", "send", "a", "", "--summary", "b#c"]],
        ),
    ] {
        assert_eq!(commands(line), expected, "{line}");
    }
}

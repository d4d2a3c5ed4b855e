//! Splits shell lines into words. Handles what the documentation uses: quotes, comments, command separators.

/// Returns the commands in one or several lines, each as a list of words. Omits variable assignments before a
/// command.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, ' ' | '\t') => commands.last_mut().unwrap().extend(word.take()),
            (None, '\n' | ';' | '&' | '|' | '(' | ')') => {
                commands.last_mut().unwrap().extend(word.take());
                commands.push(Vec::new());
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    commands.into_iter().map(without_redirections).filter(|words| !words.is_empty()).collect()
}

/// Removes variable assignments and redirections from the words of a command.
fn without_redirections(words: Vec<String>) -> Vec<String> {
    let is_variable = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
    };
    let mut kept = Vec::new();
    let mut words = words.into_iter().skip_while(is_variable);
    while let Some(word) = words.next() {
        match word.trim_start_matches(|c: char| c.is_ascii_digit()) {
            ">" | ">>" | "<" => drop(words.next()),
            redirected if redirected.starts_with(['>', '<']) => {}
            _ => kept.push(word),
        }
    }
    kept
}

#[test]
fn splits_lines_as_a_shell_does() {
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

//! Splits a line of bash into words.

/// Returns the words of the last command in a line that ends at the cursor. The last word is the one at the cursor, and may be
/// empty. Knows quotes and backslashes; expands nothing.
pub(crate) fn split_line(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_open = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\n' => {
                if is_open {
                    words.push(String::new());
                }
                is_open = false;
                continue;
            }
            // The next command begins.
            ';' | '|' | '&' | '(' => {
                words = vec![String::new()];
                is_open = false;
                continue;
            }
            '\'' | '"' => {
                let mut text = String::new();
                while let Some(quoted) = chars.next_if(|next| *next != char) {
                    match quoted {
                        '\\' if char == '"' => text.extend(chars.next()),
                        quoted => text.push(quoted),
                    }
                }
                chars.next();
                push(&mut words, &text);
            }
            '\\' => {
                let next: String = chars.next().into_iter().collect();
                push(&mut words, &next);
            }
            char => push(&mut words, char.encode_utf8(&mut [0; 4])),
        }
        is_open = true;
    }
    words
}

fn push(words: &mut [String], text: &str) {
    if let Some(last) = words.last_mut() {
        last.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_bash_does() {
        for (line, words) in [
            ("", &[""][..]),
            ("brigade send ", &["brigade", "send", ""]),
            ("brigade  send b", &["brigade", "send", "b"]),
            ("brigade send bob \"a  b\" --te", &["brigade", "send", "bob", "a  b", "--te"]),
            ("brigade send bob 'it is", &["brigade", "send", "bob", "it is"]),
            ("brigade send b\\ c", &["brigade", "send", "b c"]),
            ("cd x && brigade stop ", &["brigade", "stop", ""]),
            ("x=$(brigade sta", &["brigade", "sta"]),
            ("brigade --team=a", &["brigade", "--team=a"]),
            ("brigade send '' ", &["brigade", "send", "", ""]),
        ] {
            assert_eq!(split_line(line), words, "{line}");
        }
    }
}

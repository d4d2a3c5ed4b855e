//! Arguments that are programs in a language of their own, and can run commands or write files.

use super::word::Word;

/// Returns whether a program takes a script, or a file that it writes, among its arguments.
pub(super) fn is_listed(program: &str) -> bool {
    matches!(program, "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "uniq" | "xxd")
}

/// Returns the positions of dangerous scripts among the words of a command.
pub(super) fn dangerous(program: &str, words: &[Word]) -> Vec<usize> {
    let arguments = words.iter().enumerate().skip(1).map(|(at, word)| (at, word.text()));
    match program {
        "sed" | "gsed" => sed(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => {
            arguments.filter(|(_, text)| awk(text)).map(|(at, _)| at).collect()
        }
        // The second file of `uniq` is written.
        "uniq" => {
            let files = arguments.filter(|(_, text)| !text.starts_with('-') || *text == "-");
            files.skip(1).map(|(at, _)| at).collect()
        }
        "xxd" => xxd(arguments),
        _ => Vec::new(),
    }
}

/// In an awk program, `system`, pipes and `getline` run commands, and `>` writes files. `@load` loads a library.
fn awk(text: &str) -> bool {
    match text.strip_prefix('-') {
        Some("F" | "v") => false,
        Some(option) => !option.starts_with(['F', 'v']),
        None => {
            text.contains(['|', '>', '<', '@'])
                || text.contains("system")
                || text.contains("getline")
        }
    }
}

/// The second file of `xxd` is written. The words after some options are their values.
fn xxd<'w>(arguments: impl Iterator<Item = (usize, &'w str)>) -> Vec<usize> {
    let (mut files, mut is_value) = (Vec::new(), false);
    for (at, text) in arguments {
        let is_option = text.starts_with('-') && text.len() > 1;
        if !is_value && !is_option {
            files.push(at);
        }
        is_value = !is_value && matches!(text, "-c" | "-g" | "-l" | "-n" | "-o" | "-s" | "-R");
    }
    files.into_iter().skip(1).collect()
}

/// A sed script can run commands (`e`), and read and write files (`r`, `w`). Only `-n`, `-E`, `-r`, `-s`, `-u`, `-z` and `-e`
/// are harmless options.
fn sed<'w>(arguments: impl Iterator<Item = (usize, &'w str)>) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut script_next, mut has_script, mut options) = (false, false, true);
    for (at, text) in arguments {
        let is_dangerous = if script_next {
            (script_next, has_script) = (false, true);
            !is_plain_sed(text)
        } else if options && text == "--" {
            options = false;
            false
        } else if options && text.starts_with('-') && text.len() > 1 {
            let harmless = matches!(
                text,
                "-n" | "-E"
                    | "-r"
                    | "-s"
                    | "-u"
                    | "-z"
                    | "-nE"
                    | "-En"
                    | "-nr"
                    | "-rn"
                    | "-e"
                    | "-ne"
                    | "-Ee"
                    | "-nEe"
                    | "-re"
                    | "-nre"
            );
            script_next = harmless && text.ends_with('e');
            !harmless
        } else if has_script {
            false
        } else {
            has_script = true;
            !is_plain_sed(text)
        };
        if is_dangerous {
            found.push(at);
        }
    }
    found
}

/// Returns whether a sed script only prints, deletes or replaces lines: `3p`, `1,10p`, `$d`, `5q`, `s/a/b/g`.
fn is_plain_sed(script: &str) -> bool {
    let command = script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$'));
    if matches!(command, "p" | "d" | "q" | "=") {
        return true;
    }
    let Some(rest) = command.strip_prefix('s') else { return false };
    let Some(delimiter) = rest.chars().next().filter(|c| matches!(c, '/' | '|' | ',' | '#' | ':'))
    else {
        return false;
    };
    if script.contains(['\n', '\\']) {
        return false;
    }
    let parts: Vec<&str> = rest.split(delimiter).collect();
    match parts.as_slice() {
        ["", _, _, flags] => {
            flags.chars().all(|c| c.is_ascii_digit() || matches!(c, 'g' | 'i' | 'I' | 'p'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_simple_sed_scripts_are_plain() {
        for script in ["p", "3p", "1,10p", "$d", "5q", "s/a/b/", "s/a/b/g", "s|a/b|c|2p"] {
            assert!(is_plain_sed(script), "{script}");
        }
        for script in [
            "1e id",
            "e",
            "s/a/b/e",
            "s/a/id/ge",
            "w x",
            "1w x",
            "s/a/b/w x",
            "r /etc/passwd",
            "p;w x",
            "s/a/b",
            "s/a\\/b/c/",
            "s/a/b/;e id",
            "/x/e id",
            "{p}",
            "s/a/b/\nw x",
            "sxaxbx",
            "",
        ] {
            assert!(!is_plain_sed(script), "{script}");
        }
    }
}

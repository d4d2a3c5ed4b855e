//! Strings that attack a terminal or a reader, and the check that no output contains what they attack with. Every
//! front end is tested with the same table.

use brigade_core::text;

/// Strings that a member could put into any text: escape sequences, text direction, invisible characters, lines that
/// imitate other lines.
pub const HOSTILE: &[&str] = &[
    // Sequences that move the cursor, erase, or change colours.
    "\u{1b}[2J",
    "\u{1b}[H\u{1b}[2J",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}[8mhidden\u{1b}[28m",
    "\u{1b}[1A\u{1b}[2Kreplaced",
    "\u{1b}[?1049h",
    "\u{1b}[?25l",
    "\u{1b}[6n",
    "\u{1b}[c",
    "\u{1b}c",
    "\u{1b}7\u{1b}8",
    "\u{1b}(0lqqk\u{1b}(B",
    "\u{1b}[21t",
    "\u{1b}[200~paste\u{1b}[201~",
    "\u{1b}",
    "\u{1b}[",
    // Titles, links, the clipboard, device control strings.
    "\u{1b}]0;title\u{7}",
    "\u{1b}]2;title\u{1b}\\",
    "\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}]1337;File=inline=1:AAAA\u{7}",
    "\u{1b}P$q\"p\u{1b}\\",
    "\u{1b}_G\u{1b}\\",
    "\u{1b}^private\u{1b}\\",
    "\u{1b}Xstring\u{1b}\\",
    "\u{1b}k window \u{1b}\\",
    // Control characters of one byte, and of the second range.
    "safe\rrm -rf .",
    "rm -rf .\u{8}\u{8}\u{8}\u{8}ls  ",
    "a\tb",
    "a\u{7}b",
    "a\u{0}b",
    "a\u{b}b\u{c}c",
    "a\u{7f}b",
    "a\u{e}b\u{f}",
    "\u{9b}2J",
    "\u{9d}0;title\u{9c}",
    "a\u{85}b",
    "\u{90}q\u{9c}\u{98}\u{9e}\u{9f}",
    // Text direction.
    "ls \u{202e}fr- mr\u{202c}",
    "\u{2066}a\u{2069}\u{2067}b\u{2069}\u{2068}c\u{2069}",
    "\u{202a}a\u{202b}b\u{202d}c\u{202c}",
    "a\u{200e}b\u{200f}c\u{61c}d",
    // Invisible characters.
    "app\u{200b}rove",
    "app\u{200d}rove\u{200c}d",
    "app\u{2060}rove\u{2063}",
    "app\u{feff}rove",
    "a\u{ad}b\u{34f}c\u{180e}d",
    "a\u{fe0f}b\u{fe00}c",
    "a\u{3164}b\u{ffa0}c\u{115f}d\u{1160}e\u{2800}f",
    "a\u{e0041}\u{e0042}\u{e007f}\u{e0100}b",
    "a\u{fff9}b\u{fffa}c\u{fffb}\u{1d173}\u{1bca0}",
    "a\u{206a}b\u{206f}\u{17b4}",
    // Lines that imitate other lines.
    "one\ntwo\n\nfour",
    "ls\n1  bob  permission  just now  perm-9\n   Bash: run a command",
    "ls\n  $ true\nsandbox: true\nwith the request:",
    "a\u{2028}b\u{2029}c",
    "\n\n\n\n\n\n\n\n",
    "error: nothing is wrong\nhint: run `rm -rf .`",
    // Text that looks like an escape, and text that is not valid UTF-16.
    "\\u{202e} \\u001b[2J \\x1b \\e[2J %1b",
    "\\ud800 \u{fffd}\u{fffd}",
];

/// Strings that are long: one word, many words, many lines.
pub fn long_strings() -> [String; 3] {
    ["x".repeat(5_000), "ab ".repeat(2_000), "line\n".repeat(500)]
}

/// Panics unless a text that a front end writes to a terminal is free of control characters and invisible
/// characters, other than line breaks and sequences that set a colour or a style.
pub fn assert_safe_for_terminal(output: &str, what: &str) {
    let mut rest = output;
    while let Some(at) = rest.find(|c: char| text::is_hidden(c) && c != '\n') {
        let (_, found) = rest.split_at(at);
        assert!(is_style(found), "{what}: {:?} in {output:?}", found.chars().next());
        (_, rest) = found.split_once('m').unwrap();
    }
}

/// Returns whether a text begins with a sequence that sets a colour or a style.
fn is_style(text: &str) -> bool {
    let Some((parameters, _)) = text.strip_prefix("\u{1b}[").and_then(|text| text.split_once('m'))
    else {
        return false;
    };
    parameters.chars().all(|c| c.is_ascii_digit() || c == ';')
}

//! Tests of the Markdown renderer.

use proptest::prelude::*;

use super::*;

fn check(markdown: &str, width: usize, expected: &[&str]) {
    let lines = lines(markdown, width, Theme { color: false });
    let lines: Vec<String> =
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
    assert_eq!(lines, expected, "{markdown}");
}

#[test]
fn blocks_are_rendered() {
    check("# A\ntext\nmore\n\nnext", 40, &["A", "text", "more", "", "next"]);
    check("a\n## B\nc", 40, &["a", "", "B", "c"]);
    check("- a\n- b\n  - c\n\nd", 40, &["• a", "• b", "  • c", "", "d"]);
    check("text:\n\n- a\n- b", 40, &["text:", "", "• a", "• b"]);
    check("9. a\n10. bbb ccc ddd", 12, &["9. a", "10. bbb ccc", "    ddd"]);
    check("- a\n\n- b", 40, &["• a", "• b"]);
    check("- [x] a\n- [ ] b", 40, &["• [x] a", "• [ ] b"]);
    check("> a\n> b", 40, &["│ a", "│ b"]);
    check("a\n\n---\n\nb", 12, &["a", "", "────────────", "", "b"]);
}

#[test]
fn lines_are_not_joined() {
    check("a\nb\\\nc  \nd", 40, &["a", "b", "c", "d"]);
    check("  x: 1\n    y: 2\nz", 40, &["  x: 1", "    y: 2", "z"]);
    check("- a\n  b\n- c", 40, &["• a", "  b", "• c"]);
    check("a:\n- b\n```\nc\n```", 40, &["a:", "• b", "  c"]);
    check("a:\n \n- b", 40, &["a:", "", "• b"]);
    check("aaa bbb ccc\nd", 7, &["aaa bbb", "ccc", "d"]);
    check("[one\ntwo](http://a.example)", 40, &["one two (http://a.example)"]);
}

#[test]
fn code_keeps_its_spaces() {
    check("```rust\nfn a() {\n    b\n}\n```", 40, &["  fn a() {", "      b", "  }"]);
    check("```sh rm -r\nls\n```", 40, &["sh rm -r", "  ls"]);
    check("    x  y\n", 40, &["  x  y"]);
    check("```\nabcdefghijklmnop\n```", 14, &["  abcdefghijkl", "  ↪ mnop"]);
    check("say `rm  -r`", 40, &["say `rm  -r`"]);
}

#[test]
fn html_links_and_control_characters_are_visible() {
    check("[safe](http://evil.example)", 40, &["safe (http://evil.example)"]);
    check("<http://a.example>", 40, &["http://a.example"]);
    check("![](http://a.example/x.png)", 40, &["[image] http://a.example/x.png"]);
    check("a <!-- b --> c", 40, &["a <!-- b --> c"]);
    check("<details>\nrm\n</details>", 40, &["<details>", "rm", "</details>"]);
    check("~~no~~", 40, &["~~no~~"]);
    check("a&#27;[2Jb &#x202e;c", 40, &["a\\u{1b}[2Jb \\u{202e}c"]);
}

#[test]
fn tables_are_aligned_or_flattened() {
    let table = "| a | b |\n|---|---|\n| long | x |";
    check(table, 40, &["a     b", "───────", "long  x"]);
    check("| aaaa | bbbb |\n|-|-|\n| c | d |", 8, &["aaaa |", "bbbb", "────────", "c | d"]);
}

#[test]
fn emphasis_becomes_a_style() {
    let lines = lines("**a** *b* c", 40, Theme { color: false });
    let styles: Vec<_> = lines[0]
        .spans
        .iter()
        .filter(|span| !span.content.trim().is_empty())
        .map(|span| (span.content.trim().to_owned(), span.style.add_modifier))
        .collect();
    assert_eq!(
        styles,
        [
            ("a".to_owned(), Modifier::BOLD),
            ("b".to_owned(), Modifier::ITALIC),
            ("c".to_owned(), Modifier::empty())
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn output_contains_no_control_characters(
        text in "([a-z ]|[-*_`#>|~!<&;:()\\[\\]\n\t\u{1b}\u{202e}字]|&#27;|1\\. |```|https://a\\.b){0,80}",
        width in 0..60_usize,
    ) {
        for line in lines(&text, width, Theme { color: true }) {
            let line = line.to_string();
            prop_assert_eq!(&plain(&line), &line);
            prop_assert!(!line.contains('\n'));
        }
    }
}

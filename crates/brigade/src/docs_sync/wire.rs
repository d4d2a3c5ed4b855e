//! Tests that the JSON documents on the page `docs/wire.md` come from files that Claude Code wrote.

use std::fs;
use std::path::Path;

use super::markdown::pages;

/// Returns the text of every fixture that this version of Claude Code wrote.
fn fixtures(version: &str) -> Vec<String> {
    fn collect(folder: &Path, texts: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, texts);
            } else {
                texts.extend(fs::read_to_string(path));
            }
        }
    }
    let mut texts = Vec::new();
    collect(&super::root().join("fixtures/claude-code").join(version), &mut texts);
    texts
}

#[test]
fn every_json_block_is_in_a_real_file() {
    let pages = pages();
    let page = pages.iter().find(|page| page.path == Path::new("docs/wire.md")).unwrap();
    let (old, new) = (fixtures("2.1.50"), fixtures("2.1.325"));
    let mut found = [0, 0];
    for block in page.blocks.iter().filter(|block| block.language == "json") {
        // In the fixture, the document may be indented by 0, 2 or 4 spaces.
        let is_in = |text: &String| {
            [0, 2, 4].iter().any(|&blanks| {
                let indent = |line: &str| format!("{:blanks$}{line}", "");
                let block: Vec<String> = block.text.lines().map(indent).collect();
                text.contains(&block.join("\n"))
            })
        };
        let generations = [old.iter().any(is_in), new.iter().any(is_in)];
        assert!(generations.contains(&true), "line {}: {}", block.line, block.text);
        for (count, is_in) in found.iter_mut().zip(generations) {
            *count += usize::from(is_in);
        }
    }
    assert!(found.iter().all(|&count| count >= 2), "{found:?}");
}

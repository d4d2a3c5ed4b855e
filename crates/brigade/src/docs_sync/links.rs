//! Tests that every link in the documentation has a target, and that the book contains every page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::markdown::{Page, pages};

/// Resolves `..` in a path. Returns `None` if the path leaves the repository.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !whole.pop() => return None,
            Component::Normal(name) => whole.push(name),
            _ => {}
        }
    }
    Some(whole)
}

/// Returns what is wrong with a link, if anything.
fn problem(
    page: &Page,
    link: &str,
    anchors: &BTreeMap<PathBuf, BTreeSet<String>>,
) -> Option<String> {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, at)| (path, Some(at)));
    let folder = page.path.parent().unwrap();
    let target =
        if path.is_empty() { Some(page.path.clone()) } else { resolved(&folder.join(path)) };
    let Some(target) = target else { return Some("leaves the repository".into()) };
    if !super::root().join(&target).exists() {
        return Some("does not exist".into());
    }
    // The book contains only the pages in docs/.
    if folder.starts_with("docs") && !target.starts_with("docs") {
        return Some("leaves the book; write the path without a link".into());
    }
    let anchor = anchor?;
    let known = anchors.get(&target).is_some_and(|anchors| anchors.contains(anchor));
    (!known).then(|| "has no such heading".into())
}

#[test]
fn every_internal_link_has_a_target() {
    let pages = pages();
    let anchors: BTreeMap<PathBuf, BTreeSet<String>> = pages
        .iter()
        .map(|page| (page.path.clone(), page.anchors.iter().cloned().collect()))
        .collect();
    let (mut internal, mut problems) = (0, Vec::new());
    for page in &pages {
        for (line, link) in &page.links {
            // Skip links to other sites; `e2e/docs` lists them.
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            internal += 1;
            let problem = problem(page, link, &anchors);
            problems
                .extend(problem.map(|why| format!("{}:{line}: {link} {why}", page.path.display())));
        }
    }
    assert_eq!(problems, Vec::<String>::new());
    assert!(internal > 100, "found only {internal} links in {} pages", pages.len());
}

#[test]
fn the_book_lists_every_page_once() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path == Path::new("docs/SUMMARY.md")).unwrap();
    let listed = summary.links.iter().map(|(_, link)| Path::new("docs").join(link));
    let listed: Vec<PathBuf> = listed.collect();
    let unique: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    for page in pages.iter().filter(|page| page.path.starts_with("docs")) {
        let is_listed = unique.contains(&page.path);
        let is_summary = std::ptr::eq(page, summary);
        assert!(is_listed || is_summary, "{} is not in docs/SUMMARY.md", page.path.display());
    }
}

/// A path in the documentation starts with one of these top-level folders of the repository.
const PARTS: &[&str] = &["crates/", "docs/", "fixtures/", "packaging/", "e2e/", "bench/", ".ci/"];

#[test]
fn every_mentioned_path_exists() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        for (line, span) in &page.spans {
            // Names in capitals, and names with angle brackets or stars, are placeholders.
            let is_placeholder = |part: &str| {
                let name = part.split('.').next().unwrap_or_default();
                let capitals = name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_uppercase());
                (capitals && name != "README") || part.contains(['<', '*', '…', '$', ' '])
            };
            let is_path = PARTS.iter().any(|start| span.starts_with(start));
            if !is_path || span.split('/').any(is_placeholder) {
                continue;
            }
            count += 1;
            if !super::root().join(span).exists() {
                wrong.push(format!("{}:{line}: {span}", page.path.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 30, "found only {count} paths");
}

#[test]
fn finds_broken_links() {
    let page = Page::read("docs/x.md".into(), "# A b\n\n## `A` b!\n\n[a](#a-b) [b](#a-b-1)\n");
    assert_eq!(page.anchors, ["a-b", "a-b-1"]);
    let anchors = BTreeMap::from([(page.path.clone(), page.anchors.iter().cloned().collect())]);
    for (link, expected) in [
        ("cli.md", None),
        ("nowhere.md", Some("does not exist")),
        ("../../x", Some("leaves the repository")),
        ("../README.md", Some("leaves the book; write the path without a link")),
        ("cli.md#nothing", Some("has no such heading")),
    ] {
        assert_eq!(problem(&page, link, &anchors).as_deref(), expected, "{link}");
    }
}

//! Every link leads somewhere, and the book has every page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::markdown::{Page, pages};

/// A path with its `..` taken out; `None` if it leaves the repository.
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

/// What is wrong with a link.
fn fault(page: &Page, link: &str, anchors: &BTreeMap<PathBuf, BTreeSet<String>>) -> Option<String> {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, at)| (path, Some(at)));
    let folder = page.path.parent().unwrap();
    let target =
        if path.is_empty() { Some(page.path.clone()) } else { resolved(&folder.join(path)) };
    let Some(target) = target else { return Some("leaves the repository".into()) };
    if !super::root().join(&target).exists() {
        return Some("is not there".into());
    }
    // The book has what is in docs/ and nothing else.
    if folder.starts_with("docs") && !target.starts_with("docs") {
        return Some("leaves the book; name the path instead".into());
    }
    let anchor = anchor?;
    let known = anchors.get(&target).is_some_and(|anchors| anchors.contains(anchor));
    (!known).then(|| "has no such heading".into())
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let anchors: BTreeMap<PathBuf, BTreeSet<String>> = pages
        .iter()
        .map(|page| (page.path.clone(), page.anchors.iter().cloned().collect()))
        .collect();
    let (mut inside, mut faults) = (0, Vec::new());
    for page in &pages {
        for (line, link) in &page.links {
            // Those that lead outside are listed by e2e/docs, and not followed.
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            inside += 1;
            let fault = fault(page, link, &anchors);
            faults.extend(fault.map(|why| format!("{}:{line}: {link} {why}", page.path.display())));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(inside > 100, "only {inside} links in {} pages", pages.len());
}

#[test]
fn the_book_has_every_page() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path == Path::new("docs/SUMMARY.md")).unwrap();
    let listed = summary.links.iter().map(|(_, link)| Path::new("docs").join(link));
    let listed: Vec<PathBuf> = listed.collect();
    let unique: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "a page stands twice in the book");
    for page in pages.iter().filter(|page| page.path.starts_with("docs")) {
        let is_listed = unique.contains(&page.path);
        let is_summary = std::ptr::eq(page, summary);
        assert!(is_listed || is_summary, "{} is not in docs/SUMMARY.md", page.path.display());
    }
}

/// The parts of the repository that papers name.
const PARTS: &[&str] = &["crates/", "docs/", "fixtures/", "packaging/", "e2e/", "bench/", ".ci/"];

#[test]
fn every_path_that_is_named_is_there() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        for (line, span) in &page.spans {
            // Capitals and brackets stand for something, and so does a star.
            let stands = |part: &str| {
                let name = part.split('.').next().unwrap_or_default();
                let capitals = name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_uppercase());
                (capitals && name != "README") || part.contains(['<', '*', '…', '$', ' '])
            };
            let is_path = PARTS.iter().any(|start| span.starts_with(start));
            if !is_path || span.split('/').any(stands) {
                continue;
            }
            count += 1;
            if !super::root().join(span).exists() {
                wrong.push(format!("{}:{line}: {span}", page.path.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 30, "only {count} paths");
}

#[test]
fn a_broken_link_is_found() {
    let page = Page::read("docs/x.md".into(), "# A b\n\n## `A` b!\n\n[a](#a-b) [b](#a-b-1)\n");
    assert_eq!(page.anchors, ["a-b", "a-b-1"]);
    let anchors = BTreeMap::from([(page.path.clone(), page.anchors.iter().cloned().collect())]);
    for (link, expected) in [
        ("cli.md", None),
        ("nowhere.md", Some("is not there")),
        ("../../x", Some("leaves the repository")),
        ("../README.md", Some("leaves the book; name the path instead")),
        ("cli.md#nothing", Some("has no such heading")),
    ] {
        assert_eq!(fault(&page, link, &anchors).as_deref(), expected, "{link}");
    }
}

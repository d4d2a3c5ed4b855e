//! Finds and parses the Markdown pages of the repository.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A parsed page.
pub(super) struct Page {
    /// The path, relative to the root of the repository.
    pub(super) path: PathBuf,
    pub(super) blocks: Vec<Block>,
    /// Pieces of inline code, each with its line number.
    pub(super) spans: Vec<(usize, String)>,
    /// Targets of links and images, each with its line number.
    pub(super) links: Vec<(usize, String)>,
    /// The anchors of the page's headings.
    pub(super) anchors: Vec<String>,
}

/// A fenced code block.
pub(super) struct Block {
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
}

/// Returns every Markdown page of the repository.
pub(super) fn pages() -> Vec<Page> {
    let root = super::root();
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        Page::read(path.strip_prefix(&root).unwrap().to_owned(), &text)
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            let skipped = ["target", "node_modules", ".git"].iter().any(|other| name == *other);
            if !skipped {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

impl Page {
    pub(super) fn read(path: PathBuf, text: &str) -> Self {
        let mut page = Self { path, blocks: vec![], spans: vec![], links: vec![], anchors: vec![] };
        let mut seen = HashMap::new();
        let mut heading: Option<String> = None;
        let mut block: Option<Block> = None;
        let parser = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
        for (event, range) in parser {
            let line = 1 + text.get(..range.start).unwrap().matches('\n').count();
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    let language = language.into_string();
                    block = Some(Block { line, language, text: String::new() });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap());
                    let times: &mut usize = seen.entry(anchor.clone()).or_default();
                    let number = if *times == 0 { String::new() } else { format!("-{times}") };
                    *times += 1;
                    page.anchors.push(anchor + &number);
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    let attributes = ["href=\"", "src=\"", "srcset=\""];
                    for rest in attributes.iter().flat_map(|name| html.split(name).skip(1)) {
                        page.links.push((line, rest.split('"').next().unwrap().to_owned()));
                    }
                }
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    page.spans.push((line, code.into_string()));
                }
                Event::Text(content) => match (&mut block, &mut heading) {
                    (Some(block), _) => block.text.push_str(&content),
                    (None, Some(heading)) => heading.push_str(&content),
                    (None, None) => {}
                },
                _ => {}
            }
        }
        page
    }
}

/// Returns the anchor of a heading as GitHub and mdBook generate it.
fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    };
    heading.trim().to_lowercase().chars().filter_map(kept).collect()
}

//! Checks the structure of the sources: no module cycles, no duplicate type names, no vague function names.
//!
//! The checks ignore code under `#[cfg(test)]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Function names that do not say what the function does.
const VAGUE: [&str; 3] = ["of", "tell", "words"];

/// The names in a path such as `a::b::C`.
type Names = Vec<String>;

/// The paths and declarations in the code of one module.
#[derive(Default)]
struct ModuleScan {
    /// All paths, including those of `use` declarations.
    paths: BTreeSet<Names>,
    /// The names that `use` declarations introduce, and the path that each name stands for.
    imports: BTreeMap<String, Names>,
    types: Names,
    functions: Names,
}

/// The modules of a crate.
#[derive(Default)]
struct CrateScan {
    modules: BTreeMap<Names, ModuleScan>,
    test_modules: Vec<Names>,
}

impl CrateScan {
    /// Reads a crate. `files` has the path below `src` and the source text of each file.
    fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut scan = Self::default();
        for (path, source) in files {
            let path = path.strip_suffix(".rs").unwrap().split('/').map(str::to_owned);
            let mut module: Names = path.collect();
            module.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
            let mut words = Vec::new();
            flatten(source.parse().unwrap(), &mut words);
            scan.read(module, &words);
        }
        let tests = &scan.test_modules;
        scan.modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        scan
    }

    /// Scans the words of a file. Adds the results to the scan of the file's module or of an inline module.
    fn read(&mut self, mut module: Names, words: &[String]) {
        // For each brace that is still open: whether it opened an inline module.
        let mut braces = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let next = words.get(at + 1).map_or("", String::as_str);
            let scan = self.modules.entry(module.clone()).or_default();
            let is_name = next.starts_with(|c: char| c.is_alphabetic() || c == '_');
            match word.as_str() {
                "{" => braces.push(false),
                "}" if braces.pop() == Some(true) => drop(module.pop()),
                "#" if next == "[" => {
                    let end = end_of_group(words, at + 1);
                    let is = |word: &str| words[at..end].iter().any(|other| other == word);
                    if words[at + 2] == "cfg"
                        && (is("test") || is("doctest"))
                        && !is("not")
                        && !is("any")
                    {
                        at = end_of_item(words, end + 1);
                        if let Some(name) = words[end..at].iter().position(|word| word == "mod") {
                            module.push(words[end + name + 1].clone());
                            self.test_modules.push(module.clone());
                            module.pop();
                        }
                    }
                }
                "mod" if words.get(at + 2).is_some_and(|word| word == "{") => {
                    module.push(next.to_owned());
                    braces.push(true);
                    at += 2;
                }
                "use" if is_name => {
                    let end = end_of_item(words, at);
                    read_use_tree(&words[at + 1..end], &mut Vec::new(), scan);
                    at = end;
                }
                "struct" | "enum" | "trait" if is_name => scan.types.push(next.to_owned()),
                // Inside other braces, `type` declares an associated type.
                "type" if braces.iter().all(|is_module| *is_module) => {
                    scan.types.push(next.to_owned());
                }
                "fn" if is_name => scan.functions.push(next.to_owned()),
                _ if next == "::" && (at == 0 || words[at - 1] != "::") => {
                    let pairs = words[at + 1..].chunks(2).take_while(|pair| pair[0] == "::");
                    let names = pairs.filter_map(|pair| pair.get(1)).cloned();
                    scan.paths.insert([word.clone()].into_iter().chain(names).collect());
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Finds the module of the item to which `path` refers in `module`; `None` if the item is in another crate.
    fn resolve(&self, module: &[String], path: &[String]) -> Option<Names> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(self.descend(&[], rest)),
            "self" => Some(self.descend(module, rest)),
            "super" if rest.first().is_some_and(|next| next == "super") => {
                self.resolve(module.split_last()?.1, rest)
            }
            "super" => Some(self.descend(module.split_last()?.1, rest)),
            _ => {
                let inside = self.descend(module, path);
                if inside.len() > module.len() {
                    return Some(inside);
                }
                let import = self.modules.get(module)?.imports.get(first)?;
                (import.first() != Some(first))
                    .then(|| self.resolve(module, &[import, rest].concat()))?
            }
        }
    }

    /// Follows a path, starting at `module`, until a name is not a module. Returns the last module.
    fn descend(&self, module: &[String], path: &[String]) -> Names {
        let mut module = module.to_vec();
        for name in path {
            module.push(name.clone());
            if !self.modules.contains_key(&module) {
                module.pop();
                break;
            }
        }
        module
    }

    /// Finds, for each module, the cyclic dependencies between its child modules. A nested module counts as part
    /// of the child module that contains it.
    fn cycles(&self) -> Vec<String> {
        let mut levels: BTreeMap<&[String], BTreeSet<(&str, String)>> = BTreeMap::new();
        for (module, scan) in &self.modules {
            for target in scan.paths.iter().filter_map(|path| self.resolve(module, path)) {
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                    levels.entry(&module[..common]).or_default().insert((from, to.clone()));
                }
            }
        }
        let mut cycles = Vec::new();
        for (parent, mut edges) in levels {
            let mut before = 0;
            while edges.len() != before {
                before = edges.len();
                let ends: (BTreeSet<_>, BTreeSet<_>) =
                    edges.iter().map(|(from, to)| ((*from).to_owned(), to.clone())).unzip();
                edges.retain(|(from, to)| ends.1.contains(*from) && ends.0.contains(to));
            }
            if !edges.is_empty() {
                let edges: Vec<_> =
                    edges.iter().map(|(from, to)| format!("{from} -> {to}")).collect();
                let parent = [&["crate".to_owned()], parent].concat().join("::");
                cycles.push(format!("in {parent}: {}", edges.join(", ")));
            }
        }
        cycles
    }
}

/// Turns tokens into words. Literals become empty strings; comments are dropped.
fn flatten(tokens: TokenStream, words: &mut Names) {
    let mut after_colon = false;
    for token in tokens {
        let mut joint_colon = false;
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    _ => ("(", ")"),
                };
                words.push(open.to_owned());
                flatten(group.stream(), words);
                words.push(close.to_owned());
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && after_colon => {
                *words.last_mut().unwrap() = "::".to_owned();
            }
            TokenTree::Punct(punct) => {
                joint_colon = punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
                words.push(punct.to_string());
            }
            TokenTree::Ident(name) => words.push(name.to_string()),
            TokenTree::Literal(_) => words.push("\"\"".to_owned()),
        }
        after_colon = joint_colon;
    }
}

/// Returns the position of the bracket that closes the bracket at `open`.
fn end_of_group(words: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(open) {
        match word.as_str() {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    words.len()
}

/// Returns the position of the last word of the item that begins at `from`: a semicolon, or its closing brace.
fn end_of_item(words: &[String], from: usize) -> usize {
    let is_use = words[from..].iter().find(|word| ["use", "{"].contains(&word.as_str()));
    let is_use = is_use.is_some_and(|word| word == "use");
    let mut at = from;
    while at < words.len() {
        match words[at].as_str() {
            ";" => return at,
            "{" if !is_use => return end_of_group(words, at),
            "{" | "[" | "(" => at = end_of_group(words, at),
            _ => {}
        }
        at += 1;
    }
    at
}

/// Reads the tree of a `use` declaration, such as `a::{b, c as d}`.
fn read_use_tree(tree: &[String], prefix: &mut Names, scan: &mut ModuleScan) {
    let length = prefix.len();
    let mut at = 0;
    let mut name = None;
    while let Some(word) = tree.get(at) {
        match word.as_str() {
            "{" => {
                let end = end_of_group(tree, at);
                read_use_tree(&tree[at + 1..end], prefix, scan);
                prefix.truncate(length);
                name = None;
                at = end;
            }
            "," => {
                end_use_path(prefix, name.take(), scan);
                prefix.truncate(length);
            }
            "as" => {
                name = tree.get(at + 1).cloned();
                at += 1;
            }
            "::" | "*" => {}
            _ => {
                prefix.push(word.clone());
                name = Some(word.clone());
            }
        }
        at += 1;
    }
    end_use_path(prefix, name, scan);
    prefix.truncate(length);
}

fn end_use_path(path: &[String], name: Option<String>, scan: &mut ModuleScan) {
    if let Some(name) = name {
        let path: Names =
            path.iter().filter(|name| *name != "self" || path[0] == "self").cloned().collect();
        scan.imports.insert(name, path.clone());
        scan.paths.insert(path);
    }
}

/// Scans all crates in the folder `crates`, by name.
fn workspace() -> BTreeMap<String, CrateScan> {
    let crates = std::fs::read_dir(CRATES).unwrap().map(|entry| entry.unwrap().path());
    let scan = |dir: PathBuf| {
        let src = dir.join("src");
        let mut files = Vec::new();
        collect_files(&src, &src, &mut files);
        let files = files.iter().map(|(path, source)| (path.as_str(), source.as_str()));
        (dir.file_name().unwrap().to_str().unwrap().to_owned(), CrateScan::new(files))
    };
    crates.filter(|dir| dir.join("src").exists()).map(scan).collect()
}

fn collect_files(dir: &Path, src: &Path, files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_files(&path, src, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
            files.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn no_crate_has_a_module_cycle() {
    let crates = workspace();
    let cycles: Vec<String> = crates
        .iter()
        .flat_map(|(name, scan)| {
            scan.cycles().into_iter().map(move |cycle| format!("{name}: {cycle}"))
        })
        .collect();
    assert!(cycles.is_empty(), "module cycles:\n{}", cycles.join("\n"));
}

#[test]
fn no_type_name_is_used_twice() {
    let crates = workspace();
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, scan) in &crates {
        for (module, scan) in &scan.modules {
            for found in &scan.types {
                places.entry(found).or_default().push(format!("{name} {}", module.join("::")));
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "type names used twice: {places:#?}");
}

#[test]
fn no_function_has_a_vague_name() {
    let crates = workspace();
    let mut found = Vec::new();
    for (name, scan) in &crates {
        for (module, scan) in &scan.modules {
            let vague = scan.functions.iter().filter(|name| VAGUE.contains(&name.as_str()));
            found.extend(
                vague.map(|function| format!("{function} in {name} {}", module.join("::"))),
            );
        }
    }
    assert!(found.is_empty(), "vague function names: {found:#?}");
}

#[test]
fn cycles_and_names_are_found() {
    let made_up = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "use crate::{b::{self, B}, c::C as Other}; pub struct A; type Alias = B;"),
        ("b/mod.rs", "mod inner; mod outer; pub enum B {} #[cfg(test)] mod tests;"),
        // The next two files have an inline module, a path in an expression, and modules that depend on each other.
        ("b/inner.rs", "mod deep { fn of() { super::super::outer::call(); crate::a::A; } }"),
        ("b/outer.rs", "use super::inner; pub fn call() { inner::deep::of() }"),
        // The scan ignores tests, comments, strings, paths to parent modules and associated types.
        ("b/tests.rs", "use crate::c::C; struct A;"),
        (
            "c.rs",
            r#"/// crate::a::A
            use super::A as Parent; trait C { type A; } const TEXT: &str = "crate::a";
            #[cfg(test)] mod tests { use crate::a::A; fn tell() {} struct C; }"#,
        ),
    ];
    let scan = CrateScan::new(made_up);
    let expected = ["in crate: a -> b, b -> a", "in crate::b: inner -> outer, outer -> inner"];
    assert_eq!(scan.cycles(), expected);
    let names = |names: fn(&ModuleScan) -> &Names| -> String {
        scan.modules.values().flat_map(names).map(|name| format!("{name} ")).collect()
    };
    assert_eq!(names(|scan| &scan.types), "A Alias B C ");
    assert_eq!(names(|scan| &scan.functions), "of call ");
}

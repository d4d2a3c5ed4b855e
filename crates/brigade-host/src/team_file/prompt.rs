//! What a member is told first, from the file itself or from one beside it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::form::Words;
use super::mistake::Mistakes;
use super::shape::Field;

/// The longest prompt, in bytes. What is longer is no prompt.
const LONGEST: u64 = 1 << 20;

pub(super) fn read(
    words: &Field<Words>,
    file: &Field<Words>,
    root: &Path,
    mistakes: &mut Mistakes,
) -> Option<String> {
    if !words.is_absent()
        && let Some(file) = file.at()
    {
        let message = "a prompt and a prompt-file are too many";
        mistakes.hinted(&file.span, message, "keep one of them");
        return None;
    }
    match file.at() {
        None => words.get().map(|words| words.0.clone()),
        Some(file) => {
            let said = said(&root.join(&file.value.0), &file.value.0);
            said.map_err(|why| mistakes.add(&file.span, why)).ok()
        }
    }
}

fn said(path: &Path, name: &str) -> Result<String, String> {
    let cannot = |source: &std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file {name:?} beside this one"),
        _ => format!("the file {name:?} cannot be read: {source}"),
    };
    // Opening a pipe would wait for its other end.
    if !fs::metadata(path).map_err(|source| cannot(&source))?.is_file() {
        return Err(format!("{name:?} is not a file"));
    }
    let file = fs::File::open(path).map_err(|source| cannot(&source))?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|source| cannot(&source))?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("the file {name:?} is longer than a prompt may be, which is 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("the file {name:?} is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(format!("the file {name:?} says nothing"));
    }
    Ok(text)
}

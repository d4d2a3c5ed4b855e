//! A member's initial prompt, from the team file or from a separate file.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::form::Words;
use super::mistake::Mistakes;
use super::shape::Field;

/// Maximum size of a prompt in bytes.
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
        let message = "prompt and prompt-file cannot be used together";
        mistakes.hinted(&file.span, message, "remove one of them");
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
        std::io::ErrorKind::NotFound => format!("there is no file {name:?} relative to this file"),
        _ => format!("the file {name:?} cannot be read: {source}"),
    };
    // Opening a named pipe would block.
    if !fs::metadata(path).map_err(|source| cannot(&source))?.is_file() {
        return Err(format!("{name:?} is not a file"));
    }
    let file = fs::File::open(path).map_err(|source| cannot(&source))?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|source| cannot(&source))?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("the prompt file {name:?} is longer than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("the file {name:?} is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(format!("the file {name:?} is empty"));
    }
    Ok(text)
}

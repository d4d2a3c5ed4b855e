//! Reads the prompt of a member from `prompt` or `prompt-file`.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::mistake::Mistakes;
use super::tables::NonEmpty;
use super::toml_value::Field;

/// Maximum size of a prompt, in bytes.
const MAX_PROMPT_SIZE: u64 = 1 << 20;

pub(super) fn read(
    prompt: &Field<NonEmpty>,
    file: &Field<NonEmpty>,
    root: &Path,
    mistakes: &mut Mistakes,
) -> Option<String> {
    if !prompt.is_absent()
        && let Some(file) = file.located()
    {
        let message = "`prompt` and `prompt-file` exclude each other";
        mistakes.hinted(&file.span, message, "keep one of them");
        return None;
    }
    match file.located() {
        None => prompt.get().map(|prompt| prompt.0.clone()),
        Some(file) => {
            let prompt = read_file(&root.join(&file.value.0), &file.value.0);
            prompt.map_err(|why| mistakes.add(&file.span, why)).ok()
        }
    }
}

fn read_file(path: &Path, name: &str) -> Result<String, String> {
    let error_text = |source: &std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file {name:?} beside this one"),
        _ => format!("the file {name:?} cannot be read: {source}"),
    };
    // Do not open a named pipe: that would block until another process opens it for writing.
    if !fs::metadata(path).map_err(|source| error_text(&source))?.is_file() {
        return Err(format!("{name:?} is not a file"));
    }
    let file = fs::File::open(path).map_err(|source| error_text(&source))?;
    let mut bytes = Vec::new();
    file.take(MAX_PROMPT_SIZE + 1).read_to_end(&mut bytes).map_err(|source| error_text(&source))?;
    if bytes.len() as u64 > MAX_PROMPT_SIZE {
        return Err(format!("the file {name:?} is longer than 1 MiB, the maximum for a prompt"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("the file {name:?} is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(format!("the file {name:?} is empty"));
    }
    Ok(text)
}

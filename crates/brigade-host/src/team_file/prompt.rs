//! Reads the prompt of a member from `prompt` or `prompt-file`.

use std::path::Path;

use brigade_wire::name::MemberName;

use super::mistake::Mistakes;
use super::references::{OutsidePaths, PathKey, References, ReferredPath};
use super::regular_file::{self, ReadError};
use super::tables::NonEmpty;
use super::toml_value::Field;

/// Maximum size of a prompt, in bytes.
const MAX_PROMPT_SIZE: u64 = 1 << 20;

pub(super) fn read(
    name: &MemberName,
    prompt: &Field<NonEmpty>,
    file: &Field<NonEmpty>,
    references: &mut References,
    mistakes: &mut Mistakes,
) -> Option<String> {
    if !prompt.is_absent()
        && let Some(file) = file.located()
    {
        let message = "`prompt` and `prompt-file` exclude each other";
        mistakes.hinted(&file.span, message, "keep one of them");
        return None;
    }
    let Some(file) = file.located() else {
        references.inline_prompts.extend(prompt.get().map(|_| name.clone()));
        return prompt.get().map(|prompt| prompt.0.clone());
    };
    let path = Path::new(&file.value.0);
    references.prompt_files.push(path.to_owned());
    let resolved = references.resolve(PathKey::PromptFile, Some(name), path);
    let text = match &resolved {
        ReferredPath::Outside(_) if references.policy == OutsidePaths::Skip => return None,
        _ if references.has_too_many_prompts() => {
            Err("the prompt files are longer than 16 MiB together".to_owned())
        }
        ReferredPath::Inside(path) | ReferredPath::Outside(path) => {
            read_prompt_file(path, &file.value.0)
        }
    };
    if let (ReferredPath::Inside(_), Ok(text)) = (&resolved, &text) {
        references.add_prompt(text.as_bytes());
    }
    text.map_err(|why| mistakes.add(&file.span, why)).ok()
}

/// Reads a prompt file. `name` stands for the file in the reason for a failure.
pub(crate) fn read_prompt_file(path: &Path, name: &str) -> Result<String, String> {
    let bytes = regular_file::read(path, MAX_PROMPT_SIZE).map_err(|error| match error {
        ReadError::Io(source) if source.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no file {name:?} beside this one")
        }
        ReadError::Io(source) => format!("the file {name:?} cannot be read: {source}"),
        ReadError::NotAFile => format!("{name:?} is not a file"),
        ReadError::TooLong => {
            format!("the file {name:?} is longer than 1 MiB, the maximum for a prompt")
        }
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("the file {name:?} is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(format!("the file {name:?} is empty"));
    }
    Ok(text)
}

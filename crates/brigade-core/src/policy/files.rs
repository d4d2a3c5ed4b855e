//! The files that the request for a tool names.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ToolUse, paths};
use crate::vendor_tools::{FILE_FIELDS, edits_files};

/// Fields that name files, in addition to [`FILE_FIELDS`]. Patterns for file names count too.
const MORE_FIELDS: &[&str] = &[
    "destination",
    "dir_path",
    "directory",
    "file",
    "filePath",
    "files",
    "glob",
    "move_path",
    "newPath",
    "new_path",
    "oldPath",
    "old_path",
    "paths",
    "pattern",
    "source",
    "target_file",
    "uri",
];

/// Returns the files that a request names: in the tool's input, in lists of changes, and in the locations that the
/// agent reports beside the input. A relative path is in the folder `cwd`.
pub fn named_files(input: &Value, request: &Value, cwd: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for value in [input, request] {
        collect(value, &mut names);
    }
    let absolute = |name: &str| {
        // Some tools expand these. The result is not absolute, so it is outside of every folder.
        let is_special = name.starts_with(['~', '$']) || name.contains("://");
        if is_special { PathBuf::from(name) } else { cwd.join(name) }
    };
    names.into_iter().map(absolute).collect()
}

/// Returns whether every file that the request names is in the member's folder. A tool that is known to change files
/// must name at least one.
pub(super) fn are_inside(tool_use: &ToolUse<'_>) -> bool {
    let ToolUse { tool, folder, files, .. } = tool_use;
    files.iter().all(|file| paths::is_inside(file, folder))
        && !(edits_files(tool) && files.is_empty())
}

fn collect<'v>(value: &'v Value, names: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                // A title describes the call; it does not choose the file.
                let is_file = field != "title"
                    && (FILE_FIELDS.contains(&field.as_str())
                        || MORE_FIELDS.contains(&field.as_str()));
                if is_file {
                    strings(value, names);
                }
                if let ("changes", Value::Object(changes)) = (field.as_str(), value) {
                    names.extend(changes.keys().map(String::as_str));
                }
                collect(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

/// Collects a string, or the strings of a list.
fn strings<'v>(value: &'v Value, names: &mut Vec<&'v str>) {
    match value {
        Value::String(name) => names.push(name),
        Value::Array(items) => items.iter().for_each(|item| strings(item, names)),
        _ => {}
    }
}

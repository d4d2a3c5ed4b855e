//! The tools of each vendor that brigade knows, and the names of their fields that name files.

/// Codex's name for the tool that runs commands.
pub(crate) const CODEX_COMMAND: &str = "commandExecution";

/// The use that a tool makes of its input.
#[derive(Clone, Copy)]
pub(crate) enum ToolShape {
    Command,
    Edit,
    Fetch,
}

/// The tools of each vendor, by the names that brigade's drivers report. ACP has no names for tools, so its drivers
/// report the kind of the tool call.
const TOOLS: &[(&str, &[(&str, ToolShape)])] = &[
    (
        "Claude Code",
        &[
            ("Bash", ToolShape::Command),
            ("Edit", ToolShape::Edit),
            ("MultiEdit", ToolShape::Edit),
            ("NotebookEdit", ToolShape::Edit),
            ("Write", ToolShape::Edit),
            ("WebFetch", ToolShape::Fetch),
        ],
    ),
    // Rust values that are members choose the names of their tools; this name is the one in the guide.
    ("workers", &[("shell", ToolShape::Command)]),
    ("Codex", &[(CODEX_COMMAND, ToolShape::Command), ("fileChange", ToolShape::Edit)]),
    (
        "ACP",
        &[
            ("execute", ToolShape::Command),
            ("edit", ToolShape::Edit),
            ("delete", ToolShape::Edit),
            ("move", ToolShape::Edit),
            ("fetch", ToolShape::Fetch),
        ],
    ),
];

/// The fields of an input that name a file.
pub(crate) const FILE_FIELDS: &[&str] =
    &["absolute_path", "fileName", "file_path", "filepath", "notebook_path", "path", "title"];

/// Returns whether a tool is known to change files.
pub(crate) fn edits_files(tool: &str) -> bool {
    matches!(shape(tool), Some(ToolShape::Edit))
}

/// Returns the use that a known tool makes of its input.
pub(crate) fn shape(tool: &str) -> Option<ToolShape> {
    let mut rows = TOOLS.iter().flat_map(|(_, tools)| tools.iter());
    rows.find(|(name, _)| *name == tool).map(|(_, shape)| *shape)
}

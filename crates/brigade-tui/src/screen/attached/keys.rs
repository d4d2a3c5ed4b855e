//! The keys of the screen of one member. The help, the bottom line and the documentation are generated from this table.

/// One key, with its label in the bottom line and its description.
pub(crate) struct AttachedKey {
    pub(crate) key: &'static str,
    /// Label for the bottom line; empty if the key is not shown there.
    pub(crate) label: &'static str,
    pub(crate) description: &'static str,
}

const fn key(key: &'static str, label: &'static str, description: &'static str) -> AttachedKey {
    AttachedKey { key, label, description }
}

/// All keys.
pub(crate) const ATTACHED_KEYS: &[AttachedKey] = &[
    key("enter", "send", "send the text"),
    key("alt-enter", "", "start a new line in the text"),
    key("ctrl-c", "interrupt", "interrupt the turn"),
    key("ctrl-d", "detach", "detach; the member keeps running"),
    key("f1", "keys", "show these keys"),
    key("ctrl-y", "", "allow the request"),
    key("ctrl-n", "", "deny the request"),
    key("ctrl-r", "", "read the whole request"),
    key("ctrl-o", "unfold", "show or hide the details of tool calls and diffs"),
    key("ctrl-f", "search", "search: enter or up for earlier, down for later"),
    key("pgup", "scroll", "scroll up a page; also up and the mouse wheel"),
    key("pgdn", "", "scroll down a page; also down and the mouse wheel"),
    key("ctrl-home", "", "go to the start"),
    key("ctrl-end", "", "go to the end and follow"),
    key("esc", "", "end the search or the scrolling"),
    key("ctrl-l", "", "redraw the screen"),
];

/// Returns the keys of `brigade attach` as a Markdown table, for the documentation.
pub fn attached_key_table() -> String {
    let mut text = "| key | action |\n|---|---|\n".to_owned();
    for AttachedKey { key, description, .. } in ATTACHED_KEYS {
        text.push_str(&format!("| `{key}` | {description} |\n"));
    }
    text
}

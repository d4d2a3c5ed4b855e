//! The values of a member's `backendType`: how and where the member runs.
//!
//! Claude Code preserves values that it does not know, so brigade adds two of its own.

/// The member runs in a tmux pane.
pub const TMUX: &str = "tmux";
/// The member runs inside the lead's process.
pub const IN_PROCESS: &str = "in-process";
/// The member runs in an iTerm2 window.
pub const ITERM2: &str = "iterm2";
/// The member runs as a separate process without a window. Only brigade writes this value.
pub const PROCESS: &str = "process";
/// The member runs on another host. Only a link writes this value, for the members that it mirrors. One of Claude
/// Code's own values would be wrong: Claude Code would look for the member's pane or task on this host, and a lead
/// of the newer generation would assume that the lead itself started the member.
pub const REMOTE: &str = "remote";

/// Returns whether Claude Code itself uses this value for teammates that it starts.
pub fn is_claude_codes(backend: &str) -> bool {
    matches!(backend, TMUX | IN_PROCESS | ITERM2)
}

//! The values of a member's `backendType`: how and where the member runs.
//!
//! Claude Code preserves values that it does not know, so brigade adds two of its own.

/// In a tmux pane.
pub const TMUX: &str = "tmux";
/// Inside the process of its lead.
pub const IN_PROCESS: &str = "in-process";
/// In an iTerm2 window.
pub const ITERM2: &str = "iterm2";
/// As a process of its own without a window. Only brigade writes this value.
pub const PROCESS: &str = "process";
/// On another host. Only a link writes this value, for the members that it mirrors. A value of Claude Code would be
/// wrong: Claude Code would look for a pane or task of its own, and a lead of the newer generation would assume that
/// it started the member itself.
pub const REMOTE: &str = "remote";

/// Whether Claude Code itself uses this value for a teammate that it started.
pub fn is_claude_codes(backend: &str) -> bool {
    matches!(backend, TMUX | IN_PROCESS | ITERM2)
}

//! The command that looks for what is wrong.

use clap::Args;

/// Looking for what is wrong.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Doctor {
    /// Mend what can be mended safely
    ///
    /// Nothing is deleted that could be missed: it is moved into brigade's own folder, or copied there
    /// before it is changed.
    #[arg(long)]
    pub(crate) fix: bool,
}

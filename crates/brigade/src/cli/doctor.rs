//! `brigade doctor`

use clap::Args;

/// Arguments of `brigade doctor`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DoctorArgs {
    /// Fix problems that can be fixed safely
    ///
    /// Nothing you might need is deleted: files are moved into brigade's own folder, or copied there
    /// before they are changed.
    #[arg(long)]
    pub(crate) fix: bool,
}

//! `brigade ui`

use brigade_tui::UiOptions;

use crate::cli::UiArgs;
use crate::context::CliContext;
use crate::error::CliError;
use crate::{env, exit};

pub(crate) async fn run(context: CliContext, ui: UiArgs) -> Result<u8, CliError> {
    brigade_tui::run(context.into_host(), &options(ui)).await?;
    Ok(exit::DONE)
}

/// Completes the arguments with the properties of the terminal.
pub(super) fn options(ui: UiArgs) -> UiOptions {
    UiOptions {
        view: ui.view,
        replay: ui.replay,
        speed: ui.speed,
        no_mouse: ui.no_mouse,
        color: env::read(env::NO_COLOR).is_none(),
        is_dumb: env::read(env::TERM).is_some_and(|term| term == "dumb"),
        is_remote: env::read(env::SSH_CONNECTION).is_some(),
        in_tmux: env::read(env::TMUX).is_some(),
        shell: env::read(env::SHELL).unwrap_or_else(|| "sh".into()),
    }
}

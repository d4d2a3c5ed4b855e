//! `brigade attach`

mod takeover;

use brigade_tui::{UiOptions, View};

use super::ui;
use crate::cli::{AttachArgs, UiArgs};
use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;

pub(crate) async fn run(context: CliContext, args: AttachArgs) -> Result<u8, CliError> {
    if args.takeover {
        return takeover::run(&context, &args.name).await;
    }
    brigade_tui::attach(context.into_host(), &args.name, &options(args.no_mouse)).await?;
    Ok(exit::DONE)
}

fn options(no_mouse: bool) -> UiOptions {
    ui::options(UiArgs { view: View::Member, replay: None, speed: 1.0, no_mouse })
}

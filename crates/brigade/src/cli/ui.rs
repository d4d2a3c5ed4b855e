//! `brigade ui`

use std::path::PathBuf;

use clap::Args;

use brigade_tui::View;

#[derive(Args, Debug)]
pub(crate) struct UiArgs {
    /// View to open first
    #[arg(long, default_value = "team")]
    pub(crate) view: View,
    /// Replay a journal written by `brigade log --json` instead of showing a live team
    #[arg(long, value_name = "JOURNAL")]
    pub(crate) replay: Option<PathBuf>,
    /// Replay speed as a multiple of real time; 0 jumps to the end
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay", value_parser = speed)]
    pub(crate) speed: f64,
    /// Do not capture the mouse
    #[arg(long)]
    pub(crate) no_mouse: bool,
}

fn speed(text: &str) -> Result<f64, &'static str> {
    let times = text.parse::<f64>().ok().filter(|times| times.is_finite() && *times >= 0.0);
    times.ok_or("expected a number of 0 or more")
}

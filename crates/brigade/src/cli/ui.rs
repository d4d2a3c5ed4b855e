//! `brigade ui`

use std::path::PathBuf;

use clap::Args;

use brigade_tui::View;

#[derive(Args, Debug)]
pub(crate) struct Ui {
    /// Begin with this view
    #[arg(long, default_value = "team")]
    pub(crate) view: View,
    /// Play a journal, as `brigade log --json` writes it, instead of showing a team
    #[arg(long, value_name = "JOURNAL")]
    pub(crate) replay: Option<PathBuf>,
    /// Play it so many times as fast as it was; 0 shows its end
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay", value_parser = speed)]
    pub(crate) speed: f64,
    /// Leave the mouse to the terminal
    #[arg(long)]
    pub(crate) no_mouse: bool,
}

fn speed(text: &str) -> Result<f64, &'static str> {
    let times = text.parse::<f64>().ok().filter(|times| times.is_finite() && *times >= 0.0);
    times.ok_or("a number of 0 or more is wanted")
}

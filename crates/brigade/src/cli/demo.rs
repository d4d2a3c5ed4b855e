//! `brigade demo`

use clap::Args;

/// Arguments of `brigade demo`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DemoArgs {
    /// Speed as a multiple of the normal speed
    #[arg(long, value_name = "TIMES", default_value = "1", value_parser = speed)]
    pub(crate) speed: f64,
    /// Print the log as text instead of opening the dashboard; the default without a terminal
    #[arg(long)]
    pub(crate) text: bool,
    /// Do not capture the mouse
    #[arg(long)]
    pub(crate) no_mouse: bool,
}

fn speed(text: &str) -> Result<f64, &'static str> {
    let speed = text.parse::<f64>().ok().filter(|speed| (0.1..=1000.0).contains(speed));
    speed.ok_or("expected a number from 0.1 to 1000")
}

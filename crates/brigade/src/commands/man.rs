//! `brigade man`

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::error::{CliError, CliTrouble, failed};
use crate::{exit, output};
use brigade_host::error::output_failed;

pub(crate) fn run(dir: Option<&Path>) -> Result<u8, CliError> {
    let Some(dir) = dir else {
        let mut page = Vec::new();
        Man::new(versioned_cli()).render(&mut page).map_err(output_failed)?;
        match io::stdout().is_terminal() {
            true => output::print(&formatted(&page)?)?,
            false => output::print_raw(&page)?,
        }
        return Ok(exit::DONE);
    };
    // A single word is more likely the name of a command than a new folder.
    if dir.components().count() == 1 && dir.is_relative() && !dir.starts_with(".") && !dir.exists()
    {
        let error = CliError::usage(CliTrouble::NoFolder { dir: dir.to_owned() });
        let dir = dir.display();
        return Err(error
            .hint(format!("to write the manual pages into a new folder: `brigade man ./{dir}`"))
            .hint("`brigade help COMMAND` prints the help of a command"));
    }
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(versioned_cli(), dir));
    written.map_err(|source| failed(format!("write manual pages to {}", dir.display()), source))?;
    Ok(exit::DONE)
}

/// Formats the page for this terminal with the program `man`.
fn formatted(page: &[u8]) -> Result<String, CliError> {
    let run = || {
        let mut command = Command::new("man");
        command.args(["-l", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(width) = output::width() {
            command.env("MANWIDTH", width.to_string());
        }
        // Keep bold text: the pager shows it.
        let mut man = command.env("MAN_KEEP_FORMATTING", "1").stderr(Stdio::null()).spawn()?;
        let mut input = man.stdin.take();
        std::thread::scope(|scope| {
            // `man` may print before it has read the whole page. It reports an error of its own.
            scope.spawn(move || input.as_mut().map(|input| input.write_all(page)));
            man.wait_with_output()
        })
    };
    match run() {
        Ok(done) if done.status.success() => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        done => {
            let why = match done {
                Ok(done) => format!("`man -l -` failed ({})", done.status),
                Err(error) => format!("cannot run `man`: {error}"),
            };
            Err(CliError::failed(CliTrouble::ManualNotShown { why })
                .hint("`brigade man > brigade.1` writes it, and `man ./brigade.1` shows the file")
                .hint("`brigade help` and `brigade COMMAND --help` need no other program"))
        }
    }
}

/// Returns the command definition with the plain version number, which does not name the commit of the build.
fn versioned_cli() -> clap::Command {
    let version = env!("CARGO_PKG_VERSION");
    Cli::command().version(version).long_version(version)
}

//! `brigade man`

use std::path::Path;

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
        output::print_raw(&page)?;
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

/// Returns the command definition with the plain version number, which does not name the commit of the build.
fn versioned_cli() -> clap::Command {
    let version = env!("CARGO_PKG_VERSION");
    Cli::command().version(version).long_version(version)
}

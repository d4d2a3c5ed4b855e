//! Asks the user for confirmation on the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::error::{CliError, CliTrouble, failed};
use crate::{exit, output};

/// How often a question is asked until its answer is valid.
const MAX_ATTEMPTS: usize = 3;

/// Returns whether a person can be asked: standard input and output are a terminal, and the output is not JSON.
pub(crate) fn can_ask(json: bool) -> bool {
    !json && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks a question. Any answer but yes means no.
pub(crate) fn ask(question: &str) -> Result<bool, CliError> {
    output::print(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|source| failed("read the answer", source))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Says that nothing was done because the person answered no, and returns the exit code.
pub(crate) fn declined(text: &str) -> u8 {
    output::note(text);
    exit::FAILED
}

/// Asks for a text until it is valid, at most three times. An empty answer means the default.
pub(crate) fn ask_valid<T>(
    question: &str,
    default: &str,
    parse: impl Fn(&str) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut last = parse(&ask_text(question, default)?);
    for _ in 1..MAX_ATTEMPTS {
        let Err(error) = &last else { break };
        output::note(&error.to_one_line());
        last = parse(&ask_text(question, default)?);
    }
    last
}

fn ask_text(question: &str, default: &str) -> Result<String, CliError> {
    output::print(&format!("{question} [{default}]: "))?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.map_err(|source| failed("read the answer", source))? == 0 {
        // The person ended the input with Ctrl-D.
        output::print("\n")?;
        return Err(CliError::failed(CliTrouble::InputEnded));
    }
    let answer = answer.trim();
    Ok(if answer.is_empty() { default } else { answer }.to_owned())
}

//! `brigade __complete`: prints the values that complete a command line. The scripts of `brigade completions` call it.
//!
//! It changes nothing, asks nothing and prints nothing if something fails: a shell calls it while a person types.

use std::ffi::OsString;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use brigade_host::candidates::{self, Candidate, CandidateKind};
use brigade_host::location::Location;
use clap::{CommandFactory as _, Parser as _};

use crate::cli::{Cli, GlobalArgs};
use crate::complete::{Completion, ValueSource, complete, split_line};
use crate::context::{CliContext, current_dir, host_alone, named_team};
use crate::error::CliError;
use crate::location::{TeamFileSource, location, profiles};
use crate::{exit, output};

/// How long a person waits for completions at most. They take a few milliseconds, unless the disk does not answer or the machine
/// is overloaded.
const LIMIT: Duration = Duration::from_secs(1);

/// How long to wait for a NATS server. After that, only the teams and members on this host are known.
const SERVER_LIMIT: Duration = Duration::from_millis(20);

/// Prints what completes the last word. `args` are the shell and the words; for bash, the line up to the cursor.
pub(crate) fn run(args: &[OsString]) -> Result<u8, CliError> {
    let mut words = args.iter().map(|word| word.to_string_lossy().into_owned());
    let is_bash = words.next().as_deref() == Some("bash");
    let mut words: Vec<String> = words.collect();
    if is_bash {
        words = split_line(&words.concat());
    }
    let words: Vec<String> = words.into_iter().skip(1).collect();
    let completion = complete(&Cli::command(), &words);
    let kind = match completion.source {
        ValueSource::Files => "files",
        ValueSource::Folders => "folders",
        _ => "words",
    };
    let mut text = format!("{kind}\n");
    // A separate thread, because reading from a disk that does not answer cannot be interrupted.
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(matches(&completion)));
    for Candidate { value, description } in receiver.recv_timeout(LIMIT).unwrap_or_default() {
        let description = if is_bash { String::new() } else { format!("\t{description}") };
        text.push_str(&format!("{value}{description}\n"));
    }
    output::print_raw(text.as_bytes())?;
    Ok(exit::DONE)
}

/// Returns the values that complete the word, each with the part of the word before it.
fn matches(completion: &Completion) -> Vec<Candidate> {
    let found = match &completion.source {
        ValueSource::Fixed(values) => values.clone(),
        ValueSource::Known(CandidateKind::Agent) => candidates::agents(),
        ValueSource::Known(kind) => known(&completion.global, *kind).unwrap_or_default(),
        ValueSource::Stores => stores().unwrap_or_default(),
        ValueSource::Files | ValueSource::Folders | ValueSource::Nothing => Vec::new(),
    };
    found
        .into_iter()
        .filter(|candidate| {
            let value = &candidate.value;
            value.starts_with(&completion.current)
                && !completion.taken.contains(value)
                && is_plain(value)
        })
        .map(|candidate| Candidate {
            value: format!("{}{}", completion.prefix, candidate.value),
            ..candidate
        })
        .collect()
}

/// Returns whether a shell reads this as one word. A shell puts the value into the command line as it is, and other programs
/// write the files that some values come from.
fn is_plain(value: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./:@%+,=".contains(char);
    !value.is_empty() && value.chars().all(is_plain)
}

fn stores() -> Result<Vec<Candidate>, CliError> {
    let profiles = profiles()?;
    let named = profiles.stores().map(|(name, store)| Candidate::new(name.as_str(), &store.url));
    let files = Candidate::new("files", "Claude Code's files on this host");
    Ok(named.chain([files]).collect())
}

/// Returns the values of this kind in the store and the team of the command line.
fn known(global: &[String], kind: CandidateKind) -> Result<Vec<Candidate>, CliError> {
    let words = ["brigade".to_owned()].into_iter().chain(global.iter().cloned());
    let cli = Cli::try_parse_from(words).map_err(CliError::failed)?;
    let home = location(&cli.global, TeamFileSource::CurrentFolderIfTrusted)?;
    let is_remote = matches!(home, Location::Nats(_));
    let global = GlobalArgs { home, ..cli.global.at_once() };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().map_err(CliError::failed)?;
    let find = async |global: GlobalArgs| {
        let context = CliContext::untouched(global).await?;
        candidates::find(&context, kind).await
    };
    let limit = if is_remote { SERVER_LIMIT } else { LIMIT };
    let found = runtime.block_on(async { tokio::time::timeout(limit, find(global.clone())).await });
    match found {
        Ok(Ok(found)) => Ok(found),
        _ if is_remote => {
            let host = host_alone(&global)?;
            candidates::on_this_host(&host, named_team(&global)?, &current_dir(), kind)
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(Vec::new()),
    }
}

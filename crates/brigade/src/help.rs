//! The help of commands. It fits a screen: `clap` prints every option on three lines and all global options again, so this
//! module shows each option on one line and names the global options once. The manual pages and `docs/cli.md` have it all.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};

use crate::cli::{ALIASES, Cli};
use crate::exit;

/// The end of the help of each command.
const FOOTER: &str = "\
Global options: --team TEAM, --as NAME, --store STORE, --json, --no-pager, …
More: brigade help global | exit-codes | aliases, and `brigade man`";

/// The text that `clap` adds to the option `--help` in the short help.
const SEE_MORE: &str = " (see more with '--help')";

/// Returns the help that these arguments ask for. `None` if they ask for none.
pub(crate) fn render(args: &[OsString]) -> Option<String> {
    let is_long = args.iter().any(|arg| arg == "--help");
    let root = Cli::command().mut_args(|arg| match arg.is_global_set() {
        true => arg.hide(true),
        false => arg,
    });
    let path = is_long.then(|| path(&root, args));
    let root = compact(root, path.as_deref());
    // The short help has one line for each option.
    let args = args.iter().map(|arg| if arg == "--help" { "-h".into() } else { arg.clone() });
    match root.try_get_matches_from(args) {
        Err(help) if help.kind() == ErrorKind::DisplayHelp => {
            let text = help.render().ansi().to_string();
            Some(if is_long { text.replace(SEE_MORE, "") } else { text })
        }
        _ => None,
    }
}

/// Returns the command in the arguments, with its parents: `brigade task show`.
pub(crate) fn command_line(args: &[OsString]) -> String {
    let mut words = vec!["brigade".to_owned()];
    words.extend(path(&Cli::command(), args));
    words.join(" ")
}

/// Returns the names of the commands in the arguments.
fn path(root: &Command, args: &[OsString]) -> Vec<String> {
    let mut found = Vec::new();
    let mut command = root;
    let takes_value = |arg: &OsString| {
        let options = root.get_arguments().filter(|option| option.get_action().takes_values());
        let names = options.filter_map(|option| option.get_long());
        { names }.any(|name| arg.to_str().and_then(|arg| arg.strip_prefix("--")) == Some(name))
    };
    let mut is_value = false;
    for arg in args.iter().skip(1) {
        if std::mem::replace(&mut is_value, takes_value(arg)) {
            continue;
        }
        if let Some(subcommand) = command.find_subcommand(arg) {
            found.push(subcommand.get_name().to_owned());
            command = subcommand;
        }
    }
    found
}

/// Prepares a command and its subcommands for the short help. The command at `path` keeps its long description; the others
/// are shown in lists, with one line each.
fn compact(command: Command, path: Option<&[String]>) -> Command {
    let is_long = path.is_some_and(<[String]>::is_empty);
    let after = command.get_after_long_help().filter(|_| is_long).or(command.get_after_help());
    let after = after.map(|text| format!("{text}\n\n{FOOTER}"));
    let after = after.unwrap_or_else(|| FOOTER.to_owned());
    let about = command.get_long_about().filter(|_| is_long).cloned();
    let command = match about {
        Some(about) => command.about(about),
        None => command,
    };
    command.after_help(after).mut_subcommands(|subcommand| {
        let rest = path.and_then(<[String]>::split_first);
        let rest = rest.filter(|(name, _)| *name == subcommand.get_name());
        compact(subcommand, rest.map(|(_, rest)| rest))
    })
}

/// Returns the text of a topic of `brigade help`.
pub(crate) fn topic(args: &[OsString]) -> Option<String> {
    let [_, help, topic] = args else { return None };
    if help != "help" {
        return None;
    }
    match topic.to_str()? {
        "global" => Some(global_options()),
        "exit-codes" => Some(format!("{}\n", exit::HELP)),
        "aliases" => Some(format!("{ALIASES}\n")),
        _ => None,
    }
}

/// Returns the help of the options that every command accepts.
fn global_options() -> String {
    let root = Cli::command();
    let options = root.get_arguments().filter(|arg| arg.is_global_set()).cloned();
    let mut list = Command::new("brigade")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .help_template("{options}")
        .args(options);
    format!("Global options:\n{}\n", list.render_long_help().ansi().to_string().trim_end())
}

//! Suggestions for command names of other programs, such as Docker Compose and kubectl.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Command names that other programs use, and the brigade commands for the same purpose.
const FAMILIAR: &[(&[&str], &str)] = &[
    (&["config", "validate", "check"], "`brigade up --check` checks the team file"),
    (
        &["start", "apply"],
        "`brigade up` starts the members of brigade.toml, and `brigade spawn` one more",
    ),
    (&["ls", "list", "get"], "`brigade team list` lists teams, and `brigade status` their members"),
    (
        &["exec", "run"],
        "`brigade ask MEMBER TEXT` prints a member's reply, and `brigade send` only sends",
    ),
    (&["msg", "message", "tell", "mail"], "`brigade send MEMBER TEXT` sends a message"),
    (&["rm", "remove", "kill"], "`brigade stop MEMBER` stops a member, and `--now` kills it"),
    (
        &["delete", "destroy"],
        "`brigade down` stops and deletes the team, and `brigade team delete` deletes one without members",
    ),
    (&["scale"], "`brigade spawn bob2 --like bob` starts another member with the settings of bob"),
    (&["events"], "`brigade logs --follow` prints events as they happen"),
    (
        &["top", "stats", "cost", "usage", "watch"],
        "`brigade status --watch` shows what members do, with tokens and cost",
    ),
    (
        &["inspect", "describe", "show"],
        "`brigade team show` and `brigade task show ID` show details",
    ),
    (&["create"], "`brigade team create` creates a team, and `brigade task add` a task"),
    (
        &["rename"],
        "a member keeps its name; `brigade spawn NEW --like OLD` starts another with the same settings",
    ),
    (&["switch", "context"], "`brigade use TEAM` chooses the team for later commands"),
];

/// If the command name is one that another program uses, replaces the similar names that the error suggests by the right command.
pub(crate) fn with_suggestion(mut invalid: clap::Error) -> clap::Error {
    if invalid.kind() != ErrorKind::InvalidSubcommand {
        return invalid;
    }
    let Some(ContextValue::String(name)) = invalid.get(ContextKind::InvalidSubcommand) else {
        return invalid;
    };
    let found = FAMILIAR.iter().find(|(names, _)| names.contains(&name.as_str()));
    if let Some((_, suggestion)) = found {
        invalid.remove(ContextKind::SuggestedSubcommand);
        let suggestion = vec![StyledStr::from(*suggestion)];
        invalid.insert(ContextKind::Suggested, ContextValue::StyledStrs(suggestion));
    }
    invalid
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn no_suggestion_is_for_a_command_that_exists() {
        let command = Cli::command();
        for name in FAMILIAR.iter().flat_map(|(names, _)| *names) {
            let exists = command.get_subcommands().any(|found| {
                found.get_name() == *name || found.get_all_aliases().any(|alias| alias == *name)
            });
            assert!(!exists, "{name}");
        }
    }
}

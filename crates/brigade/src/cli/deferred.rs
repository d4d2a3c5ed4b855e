//! Arguments that can be described to `clap` later, when their command is used.

use std::cell::Cell;
use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

thread_local! {
    /// Whether arguments are described later.
    static IS_LATER: Cell<bool> = const { Cell::new(false) };
}

/// Describes commands, but leaves their arguments for later: `clap` asks for those of the command that it parses.
pub(super) fn names_only(describe: impl FnOnce() -> Command) -> Command {
    IS_LATER.set(true);
    let described = describe();
    IS_LATER.set(false);
    described
}

fn now_or_later(command: Command, describe: fn(Command) -> Command) -> Command {
    if IS_LATER.get() { command.defer(describe) } else { describe(command) }
}

/// The arguments of a command. [`names_only`] leaves them for later.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) T);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        now_or_later(command, T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        now_or_later(command, T::augment_args_for_update)
    }
}

impl<T: Subcommand> Subcommand for Deferred<T> {
    fn augment_subcommands(command: Command) -> Command {
        now_or_later(command, T::augment_subcommands)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        now_or_later(command, T::augment_subcommands_for_update)
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

//! Determines what the value of an argument is. Most follow from its type, so a new command needs nothing here.

use std::any::TypeId;
use std::path::PathBuf;

use brigade_host::candidates::{Candidate, CandidateKind};
use brigade_host::profile::StoreName;
use brigade_host::store_choice::StoreChoice;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use clap::Arg;

/// Where the values of an argument come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueSource {
    /// These values.
    Fixed(Vec<Candidate>),
    /// The team, or this host.
    Known(CandidateKind),
    /// The stores in the user's configuration.
    Stores,
    /// The files in a folder; the shell knows them.
    Files,
    /// The folders in a folder; the shell knows them.
    Folders,
    /// The user: free text, a number, a new name.
    Nothing,
}

/// Arguments that give something a new name.
const NEW_NAMES: &[(&str, &str)] = &[
    ("new", "name"),
    ("org init", "name"),
    ("resume", "take_over"),
    ("spawn", "name"),
    ("store add", "name"),
    ("team create", "name"),
    ("team import", "rename"),
    ("team join", "name"),
];

/// Commands whose members may not be the lead.
const FOR_TEAMMATES: &[&str] =
    &["ask", "attach", "diff", "interrupt", "pause", "restart", "send", "stop", "unpause"];

/// Commands for tasks that are not completed.
const FOR_OPEN_TASKS: &[&str] =
    &["task assign", "task cancel", "task claim", "task done", "task unassign", "wait"];

/// Returns where the values of an argument come from. `path` are the names of its command.
pub(crate) fn value_source(path: &[&str], arg: &Arg) -> ValueSource {
    let path = path.join(" ");
    let id = arg.get_id().as_str();
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let candidate = |value: &clap::builder::PossibleValue| {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            Candidate::new(value.get_name(), &help)
        };
        return ValueSource::Fixed(shown.map(candidate).collect());
    }
    if NEW_NAMES.contains(&(path.as_str(), id)) {
        return ValueSource::Nothing;
    }
    let value_type = arg.get_value_parser().type_id();
    let is = |other: TypeId| value_type == other;
    if is(TypeId::of::<MemberName>()) {
        return ValueSource::Known(member_kind(&path, arg));
    }
    if is(TypeId::of::<TaskId>()) {
        let kind = match path.as_str() {
            "task reopen" => CandidateKind::FinishedTask,
            path if FOR_OPEN_TASKS.contains(&path) => CandidateKind::OpenTask,
            _ => CandidateKind::AnyTask,
        };
        return ValueSource::Known(kind);
    }
    if is(TypeId::of::<TeamName>()) {
        return ValueSource::Known(CandidateKind::Team);
    }
    if is(TypeId::of::<StoreChoice>()) || is(TypeId::of::<StoreName>()) {
        return ValueSource::Stores;
    }
    if is(TypeId::of::<PathBuf>()) {
        let name = arg.get_value_names().and_then(|names| names.first());
        let is_folder = id.contains("dir") || name.is_some_and(|name| name == "DIR");
        return if is_folder { ValueSource::Folders } else { ValueSource::Files };
    }
    match (path.as_str(), id) {
        ("approvals" | "approve" | "deny", "which") => ValueSource::Known(CandidateKind::Request),
        ("ask" | "send", "to") => ValueSource::Known(CandidateKind::Teammate),
        (_, "agent") => ValueSource::Known(CandidateKind::Agent),
        (_, "model") => ValueSource::Known(CandidateKind::Model),
        (_, "label" | "remove_label") => ValueSource::Known(CandidateKind::Label),
        _ => ValueSource::Nothing,
    }
}

fn member_kind(path: &str, arg: &Arg) -> CandidateKind {
    let names_a_teammate = FOR_TEAMMATES.contains(&path) && !arg.is_global_set();
    if names_a_teammate { CandidateKind::Teammate } else { CandidateKind::AnyMember }
}

//! `brigade interrupt`, `brigade pause`, `brigade unpause` and `brigade restart`

use brigade_core::seat::Seat;
use brigade_host::down;
use brigade_host::error::ErrorKind;
use brigade_host::steer::{self, Interrupted, RestartOptions};
use brigade_wire::name::MemberName;
use serde_json::{Value, json};

use crate::cli::{MembersArgs, RestartArgs};
use crate::context::CliContext;
use crate::error::CliError;
use crate::output::{self, STRONG};
use crate::{exit, progress};

/// The effect of a command on one member.
struct SteerEffect {
    /// The text for people, after the member's name.
    text: String,
    /// The word for programs.
    word: &'static str,
    is_confirmed: bool,
}

impl SteerEffect {
    fn confirmed(word: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), word, is_confirmed: true }
    }
}

pub(crate) async fn interrupt(context: &CliContext, who: &MembersArgs) -> Result<u8, CliError> {
    each(context, who, async |lead, name| {
        Ok(match steer::interrupt(context, lead, name).await? {
            Interrupted::TurnOver { ended: 0 } => {
                SteerEffect::confirmed("interrupted", "turn ended")
            }
            Interrupted::TurnOver { ended } => {
                let processes = if ended == 1 { "process" } else { "processes" };
                SteerEffect::confirmed(
                    "interrupted",
                    format!(
                        "turn ended; also ended {ended} {processes} that its agent had started"
                    ),
                )
            }
            Interrupted::NotInTurn => SteerEffect::confirmed("not_in_turn", "was not in a turn"),
            Interrupted::NotYet => SteerEffect {
                text: "interrupt sent; its agent has not ended the turn yet".to_owned(),
                word: "sent",
                is_confirmed: false,
            },
        })
    })
    .await
}

pub(crate) async fn pause(
    context: &CliContext,
    who: &MembersArgs,
    paused: bool,
) -> Result<u8, CliError> {
    each(context, who, async |lead, name| {
        let runs = steer::set_paused(context, lead, name, paused).await?;
        let (word, now, later) = match paused {
            true => (
                "paused",
                "paused; mail waits until `brigade unpause`",
                "will be paused when its process starts",
            ),
            false => ("unpaused", "continues", "is not running; no longer paused"),
        };
        Ok(SteerEffect::confirmed(word, if runs { now } else { later }))
    })
    .await
}

pub(crate) async fn restart(context: &CliContext, asked: &RestartArgs) -> Result<u8, CliError> {
    let options = RestartOptions { fresh: asked.fresh, model: asked.model.clone() };
    each(context, &asked.members, async |lead, name| {
        steer::restart(context, lead, name, &options, &progress::print).await?;
        let session = if asked.fresh { "in a new session" } else { "in the same session" };
        Ok(SteerEffect::confirmed("restarted", format!("restarted {session}")))
    })
    .await
}

/// Does something for each member, and prints the effects. A failure for one member does not stop the others.
async fn each(
    context: &CliContext,
    who: &MembersArgs,
    act: impl AsyncFn(&Seat, &MemberName) -> Result<SteerEffect, CliError>,
) -> Result<u8, CliError> {
    let lead = context.seat_of(down::team_of_stopped(context).await?, MemberName::lead());
    let names = match who.all {
        true => down::members_here(context, &lead.team)?,
        false => who.names.clone(),
    };
    let mut document = Vec::new();
    let mut failures: Vec<CliError> = Vec::new();
    let mut is_confirmed = true;
    for name in &names {
        match act(&lead, name).await {
            Ok(effect) => {
                is_confirmed &= effect.is_confirmed;
                document.push(json!({ "name": name, "result": effect.word }));
                if !context.json {
                    output::print(&format!("{STRONG}{name}{STRONG:#}: {}\n", effect.text))?;
                }
            }
            Err(error) => {
                let why = error.to_string();
                document.push(json!({ "name": name, "result": "failed", "why": why }));
                failures.push(error);
            }
        }
    }
    if context.json {
        output::print_json(&Value::from(document))?;
    }
    first_failure(failures, names.len(), if is_confirmed { exit::DONE } else { exit::UNCONFIRMED })
}

/// Returns `code` if nothing failed, and otherwise the first failure. Prints the other failures. The error says whether a part
/// was done.
pub(super) fn first_failure(
    failures: Vec<CliError>,
    count: usize,
    code: u8,
) -> Result<u8, CliError> {
    let done = count - failures.len();
    let mut failures = failures.into_iter();
    let Some(mut first) = failures.next() else { return Ok(code) };
    for error in failures {
        output::note(&error.to_one_line());
    }
    if done > 0 {
        first.kind = ErrorKind::Partly;
    }
    Err(first)
}

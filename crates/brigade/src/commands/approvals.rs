//! `brigade approvals`

use std::collections::HashSet;
use std::time::Duration;

use brigade_core::approvals::{self, Approval};
use brigade_core::event::{Event, Record};
use brigade_core::seat::Seat;
use brigade_core::store::Watch;
use brigade_host::history_text::Story;
use jiff::tz::TimeZone;
use serde_json::json;

use crate::approval::{Shown, show};
use crate::context::Context;
use crate::error::CliError;
use crate::slow_notice::patiently;
use crate::{exit, output};

/// How often to look whether anybody still reads, while nothing happens.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &Context, follow: bool) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    // Begun before what waits is looked up, a watch misses nothing that comes after.
    let watch =
        if follow { Some(context.store.watch_proceedings(&seat.team).await?) } else { None };
    let waiting = patiently(approvals::waiting(&seat)).await?;
    let now = context.clock.now();
    if let Some(watch) = watch {
        let mut following =
            Following { context, seat, told: HashSet::new(), answered: HashSet::new() };
        following.tell(waiting)?;
        return following.go_on(watch).await;
    }
    if context.json {
        output::print_json(&waiting.iter().map(|its| Shown::of(its, now)).collect::<Vec<_>>())?;
    } else {
        let texts: Vec<String> =
            waiting.iter().map(|its| show(its, now, output::width())).collect();
        output::print(&texts.join("\n"))?;
    }
    if waiting.is_empty() {
        if !context.json {
            output::note("nothing waits for an answer");
        }
        return Ok(exit::NOTHING);
    }
    Ok(exit::DONE)
}

/// What was told to somebody who looks on.
struct Following<'c> {
    context: &'c Context,
    seat: Seat,
    told: HashSet<usize>,
    answered: HashSet<String>,
}

impl Following<'_> {
    /// Tells of requests that were not told of.
    fn tell(&mut self, waiting: Vec<Approval>) -> Result<(), CliError> {
        let now = self.context.clock.now();
        for approval in waiting {
            if !self.told.insert(approval.number) {
                continue;
            }
            if self.context.json {
                output::print_json(&json!({ "asked": Shown::of(&approval, now) }))?;
            } else {
                output::print(&show(&approval, now, output::width()))?;
            }
        }
        Ok(())
    }

    async fn go_on(&mut self, mut watch: Watch) -> Result<u8, CliError> {
        let start = self.context.clock.now();
        loop {
            let record = match tokio::time::timeout(LOOK, watch.next()).await {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(_) if output::is_abandoned() => break,
                Err(_) => continue,
            };
            match &record.event {
                Event::Sent { to, .. } | Event::Seen { to, .. }
                    if *to == self.seat.name.as_str() =>
                {
                    let waiting = patiently(approvals::waiting(&self.seat)).await?;
                    self.tell(waiting)?;
                }
                Event::Answered { request_id, .. }
                    if record.at >= start && self.answered.insert(request_id.clone()) =>
                {
                    self.tell_answer(&record)?;
                }
                Event::TeamDeleted {} => break,
                _ => {}
            }
        }
        Ok(exit::DONE)
    }

    fn tell_answer(&self, record: &Record) -> Result<(), CliError> {
        if self.context.json {
            output::print_json(&record)?;
        } else {
            output::print(&Story::new(TimeZone::system()).go_on(record, output::width()))?;
        }
        Ok(())
    }
}

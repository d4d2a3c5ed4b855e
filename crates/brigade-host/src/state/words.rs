//! The state of a member in words for people.

use brigade_core::clock::Timestamp;
use brigade_core::pulse::{Judgement, Liveness, Pulse, ReportedState, format_duration};

/// Describes what a member does, and for how long, in one line. `judged` was concluded from `pulse`.
pub(super) fn describe(pulse: Option<&Pulse>, judged: &Judgement, now: Timestamp) -> String {
    let time = pulse.map(|pulse| format_duration(now.duration_since(pulse.since)));
    let with_time = |word: &str| match &time {
        Some(time) => format!("{word} {time}"),
        None => word.to_owned(),
    };
    let state = pulse.map(|pulse| &pulse.state);
    match (judged.liveness, state) {
        (Liveness::Starting, _) if judged.evidence.starts_with("cannot be started") => {
            judged.evidence.clone()
        }
        (Liveness::Starting, _) => "starting".to_owned(),
        (Liveness::Working, Some(ReportedState::Working { retries: Some(why) })) => {
            format!("{}; its agent is retrying: {why}", with_time("working"))
        }
        (Liveness::Working, _) => with_time("working"),
        (Liveness::Idle, Some(ReportedState::Idle { failed: Some(why), .. })) => {
            format!("{}; its last turn failed: {why}", with_time("idle"))
        }
        (Liveness::Idle, _) => with_time("idle"),
        (Liveness::Waiting, Some(ReportedState::Waiting { unsent: Some(why), .. })) => {
            format!("cannot ask the lead: {why}")
        }
        (Liveness::Waiting, _) => with_time("waiting for an answer"),
        (Liveness::Paused, Some(ReportedState::HandedOver {})) => with_time("used in a terminal"),
        (Liveness::Paused, _) => with_time("paused"),
        (Liveness::Limited, Some(ReportedState::Limited { why })) => {
            format!("{}: {why}", with_time("rate-limited"))
        }
        (Liveness::Limited, _) => with_time("rate-limited"),
        (Liveness::Hung, _) => format!("hung: {}", judged.evidence),
        (Liveness::Dead, Some(ReportedState::Failed { why }))
            if judged.evidence.contains("agent failed") =>
        {
            format!("failed {} ago: {why}", time.as_deref().unwrap_or("some time"))
        }
        (Liveness::Dead, _) => match judged.evidence.strip_prefix("its process is not running") {
            Some(why) => format!("not running{why}"),
            None => format!("stopped: {}", judged.evidence),
        },
    }
}

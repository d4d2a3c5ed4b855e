//! The state of a member: what its own process reports, and what a reader of the report concludes from it.
//!
//! A member's process saves a [`Pulse`] whenever its state changes, and every few seconds otherwise. A reader
//! trusts the report only while the reporting process is still running. If the process is on another host, the
//! reader can check only the age of the report.
//!
//! ```
//! use brigade_core::clock::Timestamp;
//! use brigade_core::pulse::{Liveness, judge};
//!
//! let judged = judge(None, None, "this-host", Timestamp::now());
//! assert_eq!(judged.liveness, Liveness::Dead);
//! assert_eq!(judged.evidence, "its process is not running; it never reported");
//! ```

use std::time::Duration;

use brigade_wire::name::MemberName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::seat::Seat;
use crate::store::{NoteKind, RetryStats, StoreError};

/// How often a process reports even if its state has not changed.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// A running process that has not reported for this long counts as hung.
const REPORT_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
/// A report from another host is trusted for this long.
const REMOTE_REPORT_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);
/// If an agent produces no output for this long during a turn, it counts as hung. The limit is long, because a
/// command that the agent runs may take minutes.
const OUTPUT_TIMEOUT: SignedDuration = SignedDuration::from_mins(15);

/// Identifies a process. The system reuses process ids, but not with the same start time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The start time of the process, in the operating system's own format.
    pub began: String,
}

/// A report that a member's process saves about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pulse {
    /// The reporting process.
    pub process: Process,
    /// The host on which the process runs; empty in reports by older versions of brigade.
    #[serde(default)]
    pub host: String,
    /// When the process saved the report.
    pub at: Timestamp,
    /// The member's state.
    pub state: ReportedState,
    /// When the member's current state began.
    pub since: Timestamp,
    /// When the agent last produced output.
    #[serde(default)]
    pub heard: Option<Timestamp>,
    /// The agent's session id; `None` if every member can read the report.
    #[serde(default)]
    pub session: Option<String>,
    /// The number of tokens that the model has read and written in this conversation.
    #[serde(default)]
    pub tokens: (u64, u64),
    /// The cost of this conversation in US dollars, if the agent reports it.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The retry counters of the NATS store, if the team is stored on a NATS server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strain: Option<RetryStats>,
}

impl Pulse {
    /// Returns the report without the ids of the session and of requests.
    fn without_ids(&self) -> Self {
        let state = match &self.state {
            ReportedState::Waiting { requests, unsent } => {
                let requests = vec![String::new(); requests.len()];
                ReportedState::Waiting { requests, unsent: unsent.clone() }
            }
            state => state.clone(),
        };
        Self { session: None, state, ..self.clone() }
    }
}

/// The state of a member, according to its own process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReportedState {
    /// The agent's process is being started.
    Starting {},
    /// The agent is in a turn.
    Working {
        /// The agent's error message, if the agent cannot reach its vendor and is retrying.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retries: Option<String>,
    },
    /// The agent is between turns.
    Idle {
        /// Why the last turn failed; `None` if it did not fail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
        /// Whether a person has paused the member, so that it starts no turn.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
    },
    /// A person continues the agent's session in a terminal.
    HandedOver {},
    /// The agent waits for answers to its requests.
    Waiting {
        /// The ids of the requests whose answers the agent waits for. The ids are empty if every member can read the
        /// report.
        requests: Vec<String>,
        /// Why a request could not be sent to the lead yet; `None` if all requests were sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unsent: Option<String>,
    },
    /// The agent has reached the vendor's rate limit.
    Limited {
        /// The vendor's message about the limit.
        why: String,
    },
    /// The agent has failed repeatedly. brigade starts it again when the next message arrives.
    Failed {
        /// Why the agent failed.
        why: String,
    },
}

/// The state of a member, as concluded by a reader of its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// The member is not ready yet.
    Starting,
    /// The member is in a turn.
    Working,
    /// The member waits for work.
    Idle,
    /// The member waits for an answer to a request.
    Waiting,
    /// A person has paused the member, or continues its agent's session in a terminal.
    Paused,
    /// The vendor's rate limit has stopped the member.
    Limited,
    /// The member's process is running but makes no progress.
    Hung,
    /// The member's process is not running, or its agent keeps failing.
    Dead,
}

impl Liveness {
    /// Returns a short text for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Waiting => "waiting for approval",
            Self::Paused => "paused",
            Self::Limited => "rate-limited",
            Self::Hung => "hung",
            Self::Dead => "dead",
        }
    }
}

/// A member's state as concluded by a reader, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The state of the member.
    pub liveness: Liveness,
    /// Why the reader concludes this state, as text.
    pub evidence: String,
}

impl Pulse {
    /// Returns whether the report is from another host than `here`.
    pub fn is_remote(&self, here: &str) -> bool {
        !self.host.is_empty() && self.host != here
    }
}

/// Concludes a member's state from its last report and its running process on this host, if there is one. `here`
/// is the name of this host.
pub fn judge(
    pulse: Option<&Pulse>,
    running: Option<&Process>,
    here: &str,
    now: Timestamp,
) -> Judgement {
    let judged = |liveness, evidence| Judgement { liveness, evidence };
    let Some(process) = running else {
        if let Some(pulse) = pulse.filter(|pulse| pulse.is_remote(here)) {
            return judge_remote(pulse, now);
        }
        let last = pulse.map_or_else(
            || "it never reported".to_owned(),
            |pulse| format!("its last report was {} ago", ago(now, pulse.at)),
        );
        return judged(Liveness::Dead, format!("its process is not running; {last}"));
    };
    let pid = process.pid;
    let Some(pulse) = pulse.filter(|pulse| pulse.process == *process && !pulse.is_remote(here))
    else {
        let evidence = format!("process {pid} has not reported yet");
        return judged(Liveness::Starting, evidence);
    };
    let silent = now.duration_since(pulse.at);
    if silent > REPORT_TIMEOUT {
        let evidence = format!(
            "process {pid} is running but has not reported for {}",
            format_duration(silent)
        );
        return judged(Liveness::Hung, evidence);
    }
    judge_report(pulse, &format!("process {pid}"), now)
}

/// Concludes the state of a member on another host from the report and its age alone.
fn judge_remote(pulse: &Pulse, now: Timestamp) -> Judgement {
    let host = &pulse.host;
    let silent = now.duration_since(pulse.at);
    if silent > REMOTE_REPORT_TIMEOUT {
        let evidence =
            format!("no report for {}; its process ran on {host}", format_duration(silent));
        return Judgement { liveness: Liveness::Dead, evidence };
    }
    judge_report(pulse, &format!("on {host}"), now)
}

/// Returns the state that a report claims, without checking whether the reporting process still runs.
fn judge_report(pulse: &Pulse, who: &str, now: Timestamp) -> Judgement {
    let judged = |liveness, evidence| Judgement { liveness, evidence };
    let since = ago(now, pulse.since);
    let by = |what: &str| format!("{who}, {what} for {since}");
    match &pulse.state {
        ReportedState::Starting {} => judged(Liveness::Starting, by("starting its agent")),
        ReportedState::Idle { paused: true, .. } => judged(Liveness::Paused, by("paused")),
        ReportedState::HandedOver {} => {
            judged(Liveness::Paused, by("used by a person in a terminal"))
        }
        ReportedState::Idle { failed: None, .. } => judged(Liveness::Idle, by("waiting for work")),
        ReportedState::Idle { failed: Some(why), .. } => {
            judged(Liveness::Idle, format!("its last turn failed: {why}; {}", by("idle")))
        }
        ReportedState::Waiting { unsent: Some(why), .. } => {
            judged(Liveness::Waiting, format!("{}: {why}", by("waiting to ask the lead")))
        }
        ReportedState::Waiting { requests, unsent: None } => {
            let what = match requests.len() {
                0 | 1 => "waiting for an answer".to_owned(),
                count => format!("waiting for {count} answers"),
            };
            judged(Liveness::Waiting, by(&what))
        }
        ReportedState::Limited { why } => {
            judged(Liveness::Limited, format!("{}: {why}", by("rate-limited")))
        }
        ReportedState::Failed { why } => {
            judged(Liveness::Dead, format!("{who}, agent failed {since} ago: {why}"))
        }
        ReportedState::Working { retries } => {
            let heard = pulse.heard.unwrap_or(pulse.since);
            if now.duration_since(heard) > OUTPUT_TIMEOUT {
                let evidence = format!(
                    "{}; no output from its agent for {}",
                    by("in a turn"),
                    ago(now, heard)
                );
                judged(Liveness::Hung, evidence)
            } else {
                let why = retries.as_ref().map(|why| format!("; its agent is retrying: {why}"));
                judged(Liveness::Working, by("in a turn") + &why.unwrap_or_default())
            }
        }
    }
}

/// Reads the last report of a member's process.
pub async fn last_report(seat: &Seat, member: &MemberName) -> Result<Option<Pulse>, StoreError> {
    let note = seat.store.get_note(&seat.team, member, NoteKind::Pulse).await?;
    Ok(note.and_then(|note| serde_json::from_slice(&note).ok()))
}

/// Saves a report about the seat's own process.
pub async fn report(seat: &Seat, pulse: &Pulse) -> Result<(), StoreError> {
    let public = seat.store.pulses_are_public().then(|| pulse.without_ids());
    // Serializing plain data cannot fail.
    let note = serde_json::to_vec(public.as_ref().unwrap_or(pulse)).unwrap_or_default();
    seat.store.put_note(&seat.team, &seat.name, NoteKind::Pulse, Some(&note)).await
}

fn ago(now: Timestamp, then: Timestamp) -> String {
    format_duration(now.duration_since(then))
}

/// Formats a duration in one or two units, for example `5 s`.
pub fn format_duration(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: ReportedState = ReportedState::Idle { failed: None, paused: false };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn process(pid: u32) -> Process {
        Process { pid, began: "77".to_owned() }
    }

    fn pulse(state: ReportedState) -> Pulse {
        let (session, tokens, cost) = (None, (0, 0), None);
        Pulse {
            process: process(7),
            host: "here".to_owned(),
            at: at(0),
            since: at(0),
            heard: None,
            state,
            session,
            tokens,
            cost,
            strain: None,
        }
    }

    fn check(pulse: &Pulse, running: Option<u32>, now: i64, liveness: Liveness, evidence: &str) {
        let running = running.map(process);
        let judged = judge(Some(pulse), running.as_ref(), "here", at(now));
        assert_eq!((judged.liveness, judged.evidence.as_str()), (liveness, evidence));
    }

    #[test]
    fn each_state_has_its_evidence() {
        use Liveness::{Dead, Hung, Idle, Limited, Starting, Waiting, Working};
        let why = || "429".to_owned();
        let waiting = ReportedState::Waiting { requests: vec!["perm-1".to_owned()], unsent: None };
        let unsent = ReportedState::Waiting { requests: Vec::new(), unsent: Some("full".into()) };
        let evidence = "process 7, waiting to ask the lead for 5 s: full";
        check(&pulse(unsent), Some(7), 5, Waiting, evidence);
        check(&pulse(IDLE), Some(7), 5, Idle, "process 7, waiting for work for 5 s");
        check(
            &pulse(ReportedState::Idle { failed: Some("not logged in".to_owned()), paused: false }),
            Some(7),
            5,
            Idle,
            "its last turn failed: not logged in; process 7, idle for 5 s",
        );
        check(
            &pulse(ReportedState::Working { retries: None }),
            Some(7),
            5,
            Working,
            "process 7, in a turn for 5 s",
        );
        let retrying =
            pulse(ReportedState::Working { retries: Some("Reconnecting... 2/5".into()) });
        let evidence = "process 7, in a turn for 5 s; its agent is retrying: Reconnecting... 2/5";
        check(&retrying, Some(7), 5, Working, evidence);
        let evidence = "process 7, waiting for an answer for 5 s";
        check(&pulse(waiting), Some(7), 5, Waiting, evidence);
        check(
            &pulse(ReportedState::Limited { why: why() }),
            Some(7),
            5,
            Limited,
            "process 7, rate-limited for 5 s: 429",
        );
        check(
            &pulse(ReportedState::Failed { why: why() }),
            Some(7),
            5,
            Dead,
            "process 7, agent failed 5 s ago: 429",
        );
        let evidence = "process 7 is running but has not reported for 1 min";
        check(&pulse(IDLE), Some(7), 61, Hung, evidence);
        // The running process is not the one that reported.
        check(&pulse(IDLE), Some(8), 5, Starting, "process 8 has not reported yet");
        check(
            &pulse(ReportedState::Working { retries: None }),
            None,
            90,
            Dead,
            "its process is not running; its last report was 1 min ago",
        );
        let beating = Pulse { at: at(1000), ..pulse(ReportedState::Working { retries: None }) };
        check(
            &beating,
            Some(7),
            1001,
            Hung,
            "process 7, in a turn for 16 min; no output from its agent for 16 min",
        );
        let heard = Pulse { heard: Some(at(990)), ..beating };
        check(&heard, Some(7), 1001, Working, "process 7, in a turn for 16 min");
    }

    #[test]
    fn reports_of_older_versions_can_be_read() {
        let state: ReportedState = serde_json::from_str(r#"{"idle":{}}"#).unwrap();
        assert_eq!(state, IDLE);
        assert_eq!(serde_json::to_string(&IDLE).unwrap(), r#"{"idle":{}}"#);
    }

    #[test]
    fn reports_from_another_host_are_trusted_only_while_fresh() {
        use Liveness::{Dead, Idle, Starting, Working};
        let remote = |state| Pulse { host: "b".to_owned(), ..pulse(state) };
        check(&remote(IDLE), None, 30, Idle, "on b, waiting for work for 30 s");
        check(
            &remote(ReportedState::Working { retries: None }),
            None,
            5,
            Working,
            "on b, in a turn for 5 s",
        );
        check(&remote(IDLE), None, 31, Dead, "no report for 31 s; its process ran on b");
        // A process on this host may have the same pid as one on another host.
        check(&remote(IDLE), Some(7), 5, Starting, "process 7 has not reported yet");
        let old = Pulse { host: String::new(), ..pulse(IDLE) };
        check(&old, Some(7), 5, Idle, "process 7, waiting for work for 5 s");
    }
}

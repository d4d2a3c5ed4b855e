//! How a member is: told by its own process, and judged by whoever looks.
//!
//! A process writes down its [`Pulse`] whenever its state changes, and every few seconds though it does
//! not. What it says is believed only as far as the process is there, and is the one that said it. Of
//! another host's process nothing but the word can be seen, and that is believed for a while.
//!
//! ```
//! use brigade_core::clock::Timestamp;
//! use brigade_core::pulse::{Liveness, judge};
//!
//! let judged = judge(None, None, "this-host", Timestamp::now());
//! assert_eq!(judged.liveness, Liveness::Dead);
//! assert_eq!(judged.evidence, "no process plays it; it never said anything");
//! ```

use std::time::Duration;

use brigade_wire::name::MemberName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::seat::Seat;
use crate::store::{Shelf, StoreError, Strain};

/// How often a process says how it is, though nothing changed.
pub const BEAT: Duration = Duration::from_secs(10);
/// After this long without a word a process that is there does not go on.
const SILENT: SignedDuration = SignedDuration::from_secs(60);
/// For this long the word of a process of another host is believed.
const AFAR: SignedDuration = SignedDuration::from_secs(30);
/// After this long in a turn without a sign of its agent's the agent does not go on. A command that the
/// agent runs may well take minutes.
const STUCK: SignedDuration = SignedDuration::from_mins(15);

/// Which process, for ever: the system gives a number again, but not with this beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in the system's own words.
    pub began: String,
}

/// How a member's process says it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pulse {
    /// Who says so.
    pub process: Process,
    /// The host it is on; empty if it did not say.
    #[serde(default)]
    pub host: String,
    /// When.
    pub at: Timestamp,
    /// How it is.
    pub state: State,
    /// Since when.
    pub since: Timestamp,
    /// When its agent was last heard.
    #[serde(default)]
    pub heard: Option<Timestamp>,
    /// The agent's own id for its session.
    #[serde(default)]
    pub session: Option<String>,
    /// Tokens read and written by its model in this conversation.
    #[serde(default)]
    pub tokens: (u64, u64),
    /// What that cost in US dollars, where the agent says.
    #[serde(default)]
    pub cost: Option<f64>,
    /// What it had to do twice on the way to the engine, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strain: Option<Strain>,
}

/// How a member is, as its own process knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Its agent's program is being started.
    Starting {},
    /// In a turn.
    Working {
        /// That its agent does not get through to its vendor, if so, in the agent's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retries: Option<String>,
    },
    /// Between turns.
    Idle {
        /// Why its last turn failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// Requests of its wait for an answer.
    Waiting {
        /// Their ids.
        requests: Vec<String>,
    },
    /// Its vendor takes no more for now.
    Limited {
        /// In the vendor's words.
        why: String,
    },
    /// Its agent cannot be kept running; the next message tries again.
    Failed {
        /// Why.
        why: String,
    },
}

/// How a member is, as far as can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// It is not ready yet.
    Starting,
    /// It is in a turn.
    Working,
    /// It has nothing to do.
    Idle,
    /// It waits for an answer to a request.
    Waiting,
    /// Its vendor takes no more for now.
    Limited,
    /// It is there, and does not go on.
    Hung,
    /// Nobody is there.
    Dead,
}

impl Liveness {
    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Waiting => "waiting for approval",
            Self::Limited => "rate-limited",
            Self::Hung => "hung",
            Self::Dead => "dead",
        }
    }
}

/// How a member is, and what says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// How it is.
    pub liveness: Liveness,
    /// Why that is thought.
    pub evidence: String,
}

impl Pulse {
    /// Whether it was said on another host than this one.
    pub fn is_afar(&self, here: &str) -> bool {
        !self.host.is_empty() && self.host != here
    }
}

/// Judges how a member is, by what its process said last and by the process that plays it on the host
/// `here` now.
pub fn judge(pulse: Option<&Pulse>, plays: Option<&Process>, here: &str, now: Timestamp) -> Judged {
    let judged = |liveness, evidence| Judged { liveness, evidence };
    let Some(process) = plays else {
        if let Some(pulse) = pulse.filter(|pulse| pulse.is_afar(here)) {
            return judge_afar(pulse, now);
        }
        let last = pulse.map_or_else(
            || "it never said anything".to_owned(),
            |pulse| format!("last heard of {} ago", ago(now, pulse.at)),
        );
        return judged(Liveness::Dead, format!("no process plays it; {last}"));
    };
    let pid = process.pid;
    let Some(pulse) = pulse.filter(|pulse| pulse.process == *process && !pulse.is_afar(here))
    else {
        let evidence = format!("process {pid} has said nothing yet");
        return judged(Liveness::Starting, evidence);
    };
    let silent = now.duration_since(pulse.at);
    if silent > SILENT {
        let evidence = format!("process {pid} is there, and silent for {}", words(silent));
        return judged(Liveness::Hung, evidence);
    }
    believe(pulse, &format!("process {pid}"), now)
}

/// Judges by nothing but what was said, and when.
fn judge_afar(pulse: &Pulse, now: Timestamp) -> Judged {
    let host = &pulse.host;
    let silent = now.duration_since(pulse.at);
    if silent > AFAR {
        let evidence = format!("silent for {}; it was on {host}", words(silent));
        return Judged { liveness: Liveness::Dead, evidence };
    }
    believe(pulse, &format!("on {host}"), now)
}

/// How a member is, if what it said is so.
fn believe(pulse: &Pulse, who: &str, now: Timestamp) -> Judged {
    let judged = |liveness, evidence| Judged { liveness, evidence };
    let since = ago(now, pulse.since);
    let by = |what: &str| format!("{who}, {what} for {since}");
    match &pulse.state {
        State::Starting {} => judged(Liveness::Starting, by("starting its agent")),
        State::Idle { failed: None } => judged(Liveness::Idle, by("between turns")),
        State::Idle { failed: Some(why) } => {
            judged(Liveness::Idle, format!("its last turn failed: {why}; {}", by("idle")))
        }
        State::Waiting { requests } => {
            judged(Liveness::Waiting, format!("{}: {}", by("asking"), requests.join(", ")))
        }
        State::Limited { why } => judged(Liveness::Limited, format!("{}: {why}", by("limited"))),
        State::Failed { why } => {
            judged(Liveness::Dead, format!("{}: {why}", by("without its agent")))
        }
        State::Working { retries } => {
            let heard = pulse.heard.unwrap_or(pulse.since);
            if now.duration_since(heard) > STUCK {
                let evidence =
                    format!("{}; no sign of its agent for {}", by("in a turn"), ago(now, heard));
                judged(Liveness::Hung, evidence)
            } else {
                let why = retries.as_ref().map(|why| format!("; its agent tries again: {why}"));
                judged(Liveness::Working, by("in a turn") + &why.unwrap_or_default())
            }
        }
    }
}

/// What a member's process said last.
pub async fn of(seat: &Seat, member: &MemberName) -> Result<Option<Pulse>, StoreError> {
    let kept = seat.store.kept(&seat.team, member, Shelf::Pulse).await?;
    Ok(kept.and_then(|note| serde_json::from_slice(&note).ok()))
}

/// Writes down how the seat's own process is.
pub async fn beat(seat: &Seat, pulse: &Pulse) -> Result<(), StoreError> {
    // Plain data; this cannot fail.
    let note = serde_json::to_vec(pulse).unwrap_or_default();
    seat.store.keep(&seat.team, &seat.name, Shelf::Pulse, Some(&note)).await
}

fn ago(now: Timestamp, then: Timestamp) -> String {
    words(now.duration_since(then))
}

/// A time in one or two units.
pub fn words(time: SignedDuration) -> String {
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

    const IDLE: State = State::Idle { failed: None };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn process(pid: u32) -> Process {
        Process { pid, began: "77".to_owned() }
    }

    fn pulse(state: State) -> Pulse {
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

    fn check(pulse: &Pulse, plays: Option<u32>, now: i64, liveness: Liveness, evidence: &str) {
        let plays = plays.map(process);
        let judged = judge(Some(pulse), plays.as_ref(), "here", at(now));
        assert_eq!((judged.liveness, judged.evidence.as_str()), (liveness, evidence));
    }

    #[test]
    fn each_state_has_its_evidence() {
        use Liveness::{Dead, Hung, Idle, Limited, Starting, Waiting, Working};
        let why = || "429".to_owned();
        let waiting = State::Waiting { requests: vec!["perm-1".to_owned()] };
        check(&pulse(IDLE), Some(7), 5, Idle, "process 7, between turns for 5 s");
        check(
            &pulse(State::Idle { failed: Some("not logged in".to_owned()) }),
            Some(7),
            5,
            Idle,
            "its last turn failed: not logged in; process 7, idle for 5 s",
        );
        check(
            &pulse(State::Working { retries: None }),
            Some(7),
            5,
            Working,
            "process 7, in a turn for 5 s",
        );
        let cut_off = pulse(State::Working { retries: Some("Reconnecting... 2/5".into()) });
        let words = "process 7, in a turn for 5 s; its agent tries again: Reconnecting... 2/5";
        check(&cut_off, Some(7), 5, Working, words);
        check(&pulse(waiting), Some(7), 5, Waiting, "process 7, asking for 5 s: perm-1");
        check(
            &pulse(State::Limited { why: why() }),
            Some(7),
            5,
            Limited,
            "process 7, limited for 5 s: 429",
        );
        check(
            &pulse(State::Failed { why: why() }),
            Some(7),
            5,
            Dead,
            "process 7, without its agent for 5 s: 429",
        );
        check(&pulse(IDLE), Some(7), 61, Hung, "process 7 is there, and silent for 1 min");
        // Another process than the one that spoke: what was said is not its word.
        check(&pulse(IDLE), Some(8), 5, Starting, "process 8 has said nothing yet");
        check(
            &pulse(State::Working { retries: None }),
            None,
            90,
            Dead,
            "no process plays it; last heard of 1 min ago",
        );
        let beating = Pulse { at: at(1000), ..pulse(State::Working { retries: None }) };
        check(
            &beating,
            Some(7),
            1001,
            Hung,
            "process 7, in a turn for 16 min; no sign of its agent for 16 min",
        );
        let heard = Pulse { heard: Some(at(990)), ..beating };
        check(&heard, Some(7), 1001, Working, "process 7, in a turn for 16 min");
    }

    #[test]
    fn what_older_processes_wrote_down_is_understood() {
        let state: State = serde_json::from_str(r#"{"idle":{}}"#).unwrap();
        assert_eq!(state, IDLE);
        assert_eq!(serde_json::to_string(&IDLE).unwrap(), r#"{"idle":{}}"#);
    }

    #[test]
    fn of_another_host_a_fresh_word_is_believed_and_an_old_one_is_not() {
        use Liveness::{Dead, Idle, Starting, Working};
        let afar = |state| Pulse { host: "b".to_owned(), ..pulse(state) };
        check(&afar(IDLE), None, 30, Idle, "on b, between turns for 30 s");
        check(&afar(State::Working { retries: None }), None, 5, Working, "on b, in a turn for 5 s");
        check(&afar(IDLE), None, 31, Dead, "silent for 31 s; it was on b");
        // A process of this host may have the number of another's.
        check(&afar(IDLE), Some(7), 5, Starting, "process 7 has said nothing yet");
        let old = Pulse { host: String::new(), ..pulse(IDLE) };
        check(&old, Some(7), 5, Idle, "process 7, between turns for 5 s");
    }
}

//! Synchronizes the team files on this host with the store that all hosts share, so that one team
//! can span several hosts.
//!
//! Claude Code only knows its own files. On each host that has native members, a link therefore copies
//! mail, tasks and the roster between these files and the shared store.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use brigade_core::clock::SystemClock;
//! use brigade_core::store::Store;
//! use brigade_files::FileStore;
//! use brigade_link::{Link, LinkConfig, LinkError, LinkStateStore, LinkTiming};
//!
//! async fn link(
//!     local: Arc<FileStore>,
//!     shared: Arc<dyn Store>,
//!     state_store: Arc<dyn LinkStateStore>,
//! ) -> Result<(), LinkError> {
//!     let mut link = Link::new(LinkConfig {
//!         local,
//!         shared,
//!         clock: Arc::new(SystemClock),
//!         host: "laptop".into(),
//!         team: "demo".parse().expect("a name"),
//!         acts_for: Default::default(),
//!         signer: None,
//!         state_store,
//!         on_event: Arc::new(|event| println!("{event:?}")),
//!         timing: LinkTiming::default(),
//!     })?;
//!     link.once().await
//! }
//! ```
//!
//! # Parts
//!
//! - `run` reacts to events from both sides, the files and the shared store; `pass` does the
//!   pending work. `connection` reports that the shared store became unreachable, or reachable again.
//! - `roster` synchronizes the rosters. `member_decision` decides which members run here, `member_host`
//!   stores the host of each member in the shared store, `team_config` writes single entries.
//! - `mail` copies mail in both directions, and reports which mail was read. `notice` sends notices
//!   to local members.
//! - `board` synchronizes tasks. `task_decision` decides which side's task to keep; if both
//!   changed, the shared store wins. `new_task` handles tasks created on this host.
//! - `end` recognizes that the team has ended, and deletes the copies of an ended team.
//! - `saved_state` is the state that survives a restart. `link_event` defines the events that a
//!   link reports.
//!
//! # Why nothing is copied in circles
//!
//! On each host, a member is either *local* or *remote*. A member is remote if a link has marked the member's
//! entry in the files on that host with [`REMOTE`](brigade_core::wire::backend::REMOTE). From the files to the
//! shared store, a link copies only mail that a local member wrote to a remote member. From the shared store to
//! the files, it copies only mail to local members. So no link, on any host, copies mail that a link has
//! delivered.
//!
//! # Why every message arrives once
//!
//! A message keeps its id when it is copied. A message without an id gets one that is derived from
//! its content. After startup and after every error, the link does not know whether a message was
//! already copied. It then searches the history of the recipient's mailbox: in the shared store for
//! outgoing mail, in the files for incoming mail. Outgoing mail is marked as read in the files only
//! after it was copied. If the link dies before marking a message, the next link finds the message
//! unmarked, searches the history, and marks the message.
//!
//! The link's saved state ([`LinkStateStore`]) shows which side has changed since the last
//! synchronization. If the saved state is lost, the shared store wins for all tasks, the authors of
//! lost changes are informed, and no member is removed from the team.
//!
//! # Limits of a link
//!
//! - It uses the shared store only through [`Store`], and sends only mail that local members wrote. The
//!   one exception: when a team whose lead ran on this host has ended, the link asks the members on other hosts to
//!   stop, in the lead's name.
//! - It waits for the shared store only as long as [`LinkTiming`] allows, and holds none of Claude
//!   Code's locks while it waits.
//! - It reads no environment variables, prints nothing and starts no processes.

#![forbid(unsafe_code)]

mod board;
mod connection;
mod end;
mod link_event;
mod mail;
mod member_decision;
mod member_host;
mod new_task;
mod notice;
mod pass;
mod roster;
mod run;
mod saved_state;
mod task_decision;
mod team_config;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use brigade_wire::name::{MemberName, TaskId, TeamName};
use thiserror::Error;
use tokio::time::Instant;

pub use self::end::EndedSide;
pub use self::link_event::LinkEvent;
use self::mail::MailboxSync;
pub use self::member_host::MemberHost;
use self::roster::MemberSides;
use self::saved_state::LinkState;
pub use self::saved_state::LinkStateStore;
pub use self::team_config::is_mirror;
use brigade_core::clock::Clock;
use brigade_core::event::MessageKey;
use brigade_core::signature::Signer;
use brigade_core::store::{Actor, Store, StoreError};
use brigade_files::FileStore;

/// The actor that a link records for its changes to the files on this host.
const LINK_ACTOR: &str = "link";

/// The two stores that a link synchronizes, and the link's settings.
#[derive(Clone)]
pub struct LinkConfig {
    /// The store in the files on this host.
    pub local: Arc<FileStore>,
    /// The store that all hosts share.
    pub shared: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The name of this host, which must be unique within the team.
    pub host: String,
    /// The team.
    pub team: TeamName,
    /// The members that the link may act for, according to its credentials. They are expected to
    /// run on this host. Empty if the link may act for all members.
    pub acts_for: BTreeSet<MemberName>,
    /// Signs the lead's messages to local members that verify signatures.
    pub signer: Option<Arc<dyn Signer>>,
    /// Stores the link's state.
    pub state_store: Arc<dyn LinkStateStore>,
    /// Receives the link's events.
    pub on_event: Arc<dyn Fn(&LinkEvent) + Send + Sync>,
    /// The link's timing.
    pub timing: LinkTiming,
}

impl fmt::Debug for LinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { team, host, .. } = self;
        f.debug_struct("LinkConfig").field("team", team).field("host", host).finish_non_exhaustive()
    }
}

/// The link's timing.
#[derive(Clone, Copy, Debug)]
pub struct LinkTiming {
    /// Interval between two full checks, which find changes that the event streams missed.
    pub sweep: Duration,
    /// Time limit for one call to the shared store.
    pub call_timeout: Duration,
    /// Delay before the first retry. The delay doubles with each retry, up to five times this
    /// value.
    pub retry: Duration,
    /// Interval between two checks of the connection to the shared store.
    pub connection_check: Duration,
    /// How long a team has to be gone before the link treats it as ended. Claude Code deletes and
    /// re-creates a team within milliseconds when it resumes a session.
    pub end_grace: Duration,
    /// How long remote members may take to answer the request to stop, after their team has ended.
    pub stop_wait: Duration,
}

impl Default for LinkTiming {
    fn default() -> Self {
        // The call timeout is long enough for the NATS servers to elect a new leader.
        Self {
            sweep: Duration::from_secs(30),
            call_timeout: Duration::from_secs(20),
            retry: Duration::from_secs(1),
            connection_check: Duration::from_secs(1),
            end_grace: Duration::from_secs(5),
            stop_wait: Duration::from_secs(15),
        }
    }
}

/// An error of a link.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The shared store did not answer, or rejected the call.
    #[error("NATS store: {0}")]
    Shared(#[source] StoreError),
    /// The files on this host could not be read or written.
    #[error(transparent)]
    Local(StoreError),
    /// The team exists neither on this host nor in the shared store.
    #[error("team {team} exists neither on this host nor in the NATS store")]
    NoTeam {
        /// The team.
        team: TeamName,
    },
    /// This host and the shared store have different teams of the same name.
    #[error(
        "the team {team} on this host and the one in the NATS store are different teams with the same name"
    )]
    OtherTeam {
        /// The name of both teams.
        team: TeamName,
    },
    /// The team was deleted on this host or in the shared store.
    #[error("team {team} was deleted {side}")]
    Ended {
        /// The team.
        team: TeamName,
        /// Where the team was deleted.
        side: EndedSide,
    },
    /// The team seems to have ended. The link checks again before it acts.
    #[error("team {team} is gone {side}; checking again")]
    MaybeEnded {
        /// The team.
        team: TeamName,
        /// Where the team is gone.
        side: EndedSide,
    },
    /// Claude Code's folder of teams is missing, so the link cannot know whether the team still exists.
    #[error("the folder of Claude Code's teams is missing on this host")]
    NoTeamsFolder,
    /// The link's state could not be saved.
    #[error("cannot save the link's state")]
    SavedState(#[source] io::Error),
}

impl LinkError {
    /// Returns whether trying again is useless until a person acts.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::NoTeam { .. } | Self::OtherTeam { .. } | Self::Ended { .. })
    }

    /// Returns whether the shared store cannot be reached. A store that rejected the call was reached.
    fn is_unreachable(&self) -> bool {
        let is_unreachable = |error: &StoreError| {
            matches!(
                error,
                StoreError::Engine { .. } | StoreError::Io { .. } | StoreError::Locked(_)
            )
        };
        matches!(self, Self::Shared(error) if is_unreachable(error))
    }

    /// Renders the error with its cause.
    fn with_cause(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let error_text = error.to_string();
            // The text of a store error is already part of the link's error.
            if !text.contains(&error_text) {
                text = format!("{text}: {error_text}");
            }
            cause = error.source();
        }
        text
    }

    fn is_conflict(&self) -> bool {
        matches!(self, Self::Shared(StoreError::Conflict) | Self::Local(StoreError::Conflict))
    }

    fn is_forbidden(&self) -> bool {
        let forbids = |error: &StoreError| {
            matches!(error, StoreError::Forbidden { .. } | StoreError::EventRefused(_))
        };
        matches!(self, Self::Shared(error) if forbids(error))
    }

    fn is_no_task(&self) -> bool {
        let none = |error: &StoreError| matches!(error, StoreError::NoTask { .. });
        matches!(self, Self::Shared(error) | Self::Local(error) if none(error))
    }
}

/// A link for one team.
pub struct Link {
    config: LinkConfig,
    state: LinkState,
    /// Which members are local and which are remote, as of the last check.
    sides: Option<MemberSides>,
    /// The known state of local members' mailboxes, in the files and in the shared store.
    mailboxes: HashMap<MemberName, MailboxSync>,
    /// For each remote member, the messages known to be in its mailbox in the shared store.
    forwarded: HashMap<MemberName, HashSet<MessageKey>>,
    /// When each remote member's entry was last written to the files.
    written_entries: HashMap<MemberName, Instant>,
    /// When each task was last copied from the shared store to the files.
    written_tasks: HashMap<TaskId, Instant>,
    /// The local member that last changed each task, if known.
    changed_by: HashMap<TaskId, String>,
    /// The tasks that a link has synchronized before, according to the journal. Loaded only if the
    /// saved state is lost.
    synced_before: Option<HashSet<u64>>,
    /// Tasks that just got their number on the shared board and must be checked again.
    recheck: BTreeSet<TaskId>,
    /// Problems that were already reported.
    reported: HashSet<String>,
    /// Whether the link keeps running, so that it can check twice before it treats a team as ended.
    keeps_running: bool,
    /// Where the team seems to have ended, and since when.
    end_sign: Option<(EndedSide, Instant)>,
    /// Whether the remote members of the ended team were asked to stop.
    asked_to_stop: bool,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Link {
    /// Creates a link that starts with the saved state of an earlier link.
    pub fn new(config: LinkConfig) -> Result<Self, LinkError> {
        let state = LinkState::load(config.state_store.as_ref()).map_err(LinkError::SavedState)?;
        Ok(Self {
            config,
            state,
            sides: None,
            mailboxes: HashMap::new(),
            forwarded: HashMap::new(),
            written_entries: HashMap::new(),
            written_tasks: HashMap::new(),
            changed_by: HashMap::new(),
            synced_before: None,
            recheck: BTreeSet::new(),
            reported: HashSet::new(),
            keeps_running: false,
            end_sign: None,
            asked_to_stop: false,
        })
    }

    fn emit(&self, event: &LinkEvent) {
        (self.config.on_event)(event);
    }

    /// Reports a problem, unless the same problem was already reported.
    fn report_problem(&mut self, why: String) {
        if self.reported.insert(why.clone()) {
            self.emit(&LinkEvent::Trouble { why });
        }
    }

    fn save(&mut self) -> Result<(), LinkError> {
        self.state.save(self.config.state_store.as_ref()).map_err(LinkError::SavedState)
    }
}

impl LinkConfig {
    /// Runs one call to the shared store with a time limit.
    async fn call_shared<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, LinkError> {
        match tokio::time::timeout(self.timing.call_timeout, call).await {
            Ok(result) => result.map_err(LinkError::Shared),
            Err(_) => Err(LinkError::Shared(StoreError::Engine {
                doing: "complete the call in time".into(),
                source: "no answer".into(),
            })),
        }
    }
}

/// Returns the actor for changes that a link makes to the files.
fn link_actor() -> Actor {
    Actor(LINK_ACTOR.to_owned())
}

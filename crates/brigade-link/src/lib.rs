//! Keeps the team files of this host and the store that all hosts share in step, so that one team spans
//! several hosts.
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
//! - `run` reacts to events of both sides; `pass` does the pending work.
//! - `roster` synchronizes the rosters. `member_decision` decides which members run here, `member_host`
//!   stores the host of each member in the shared store, `team_config` writes single entries.
//! - `mail` carries mail out and in, and reports which mail was read. `notice` informs local members.
//! - `board` synchronizes tasks; `task_decision` decides, and the shared store wins. `new_task` handles
//!   tasks created here.
//! - `saved_state` is the state that survives a restart. `link_event` has the events a link reports.
//!
//! # Why nothing is copied in circles
//!
//! Each member is *local* or *remote*, never both: its entry in the files of this host either has the
//! marker of a link ([`REMOTE`](brigade_core::wire::backend::REMOTE)) or does not. Mail leaves the files
//! only from inboxes of remote members, and only if a local member wrote it. Mail enters the files only in
//! inboxes of local members. So no link, on any host, picks up mail that a link has put somewhere.
//!
//! # Why every message arrives once
//!
//! A message keeps its id on its way; a message without one gets an id derived from its content. If it
//! is unknown whether a message was sent, the link first searches the history of its mailbox: in the
//! shared store on the way out, in the files on the way in. That is the case after a start and after
//! every error. A message is marked only after it was sent. A link that dies in between therefore finds
//! the message unmarked, searches, and marks it.
//!
//! The link's saved state ([`LinkStateStore`]) distinguishes a change from an old state. It may be lost:
//! then the shared store wins for all tasks, the authors of lost changes are informed, and no member is
//! removed from the team.
//!
//! # What it must not do
//!
//! - It uses the shared store only through [`Store`], and sends only mail that local members wrote.
//! - It waits for the shared store only as long as [`LinkTiming`] allows, and holds no lock of Claude Code meanwhile.
//! - It reads no environment variables, prints nothing and starts no processes.

#![forbid(unsafe_code)]

mod board;
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

/// The actor that a link records for its changes to the files of this host.
const LINK_ACTOR: &str = "link";

/// The two sides of a link, and its settings.
#[derive(Clone)]
pub struct LinkConfig {
    /// The store in the files of this host.
    pub local: Arc<FileStore>,
    /// The store that all hosts share.
    pub shared: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The name of this host. It must be unique within the team.
    pub host: String,
    /// The team.
    pub team: TeamName,
    /// The members that the link's credentials allow it to act for, and that are expected to run here.
    /// Empty if it may act for all.
    pub acts_for: BTreeSet<MemberName>,
    /// Signs the lead's messages for local members that verify them with a key.
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
    /// Interval of the full check that backs up the event streams.
    pub sweep: Duration,
    /// Time limit of one call to the shared store.
    pub call_timeout: Duration,
    /// First delay before a retry. The delay doubles up to five times this value.
    pub retry: Duration,
}

impl Default for LinkTiming {
    fn default() -> Self {
        // Long enough for the NATS servers to elect a new leader.
        let (sweep, patience) = (Duration::from_secs(30), Duration::from_secs(20));
        Self { sweep, call_timeout: patience, retry: Duration::from_secs(1) }
    }
}

/// An error of a link.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The shared store did not answer, or refused.
    #[error("NATS store: {0}")]
    Shared(#[source] StoreError),
    /// The files of this host could not be read or written.
    #[error(transparent)]
    Local(StoreError),
    /// The team exists on neither side.
    #[error("team {team} exists neither on this host nor in the NATS store")]
    NoTeam {
        /// The team.
        team: TeamName,
    },
    /// The two sides have different teams of the same name.
    #[error(
        "the team {team} on this host and the one in the NATS store are different teams with the same name"
    )]
    OtherTeam {
        /// The name.
        team: TeamName,
    },
    /// The team was deleted on one side.
    #[error("team {team} was deleted {side}")]
    Ended {
        /// The team.
        team: TeamName,
        /// The side it was deleted from.
        side: &'static str,
    },
    /// The link's state could not be saved.
    #[error("cannot save the link's state")]
    SavedState(#[source] io::Error),
}

impl LinkError {
    /// Whether the shared store cannot be reached, as opposed to having refused.
    fn is_unreachable(&self) -> bool {
        let is_unreachable = |error: &StoreError| {
            matches!(
                error,
                StoreError::Engine { .. } | StoreError::Io { .. } | StoreError::Locked(_)
            )
        };
        matches!(self, Self::Shared(error) if is_unreachable(error))
    }

    fn is_conflict(&self) -> bool {
        matches!(self, Self::Shared(StoreError::Conflict) | Self::Local(StoreError::Conflict))
    }

    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Shared(StoreError::Forbidden { .. }))
    }

    fn is_no_task(&self) -> bool {
        let none = |error: &StoreError| matches!(error, StoreError::NoTask { .. });
        matches!(self, Self::Shared(error) | Self::Local(error) if none(error))
    }
}

/// The link of one team.
pub struct Link {
    config: LinkConfig,
    state: LinkState,
    /// Which members are local and remote, as of the last check.
    sides: Option<MemberSides>,
    /// The known state of local members' mailboxes on both sides.
    mailboxes: HashMap<MemberName, MailboxSync>,
    /// The messages known to be in remote members' mailboxes in the shared store.
    forwarded: HashMap<MemberName, HashSet<MessageKey>>,
    /// When a remote member's entry was last written to the files.
    written_entries: HashMap<MemberName, Instant>,
    /// When a task was last written to the files from the shared store.
    written_tasks: HashMap<TaskId, Instant>,
    /// The local member that last changed a task, if known.
    changed_by: HashMap<TaskId, String>,
    /// The tasks that were in step at some time, according to the journal. Loaded only if the saved
    /// state is lost.
    synced_before: Option<HashSet<u64>>,
    /// Tasks that just got their number and must be checked again.
    recheck: BTreeSet<TaskId>,
    /// Problems that were already reported.
    reported: HashSet<String>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Link {
    /// Creates a link, with the saved state of an earlier one.
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
        })
    }

    fn emit(&self, event: &LinkEvent) {
        (self.config.on_event)(event);
    }

    /// Reports a problem, once.
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

/// The actor for changes to the files.
fn link_actor() -> Actor {
    Actor(LINK_ACTOR.to_owned())
}

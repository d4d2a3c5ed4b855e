//! One team on several hosts: the files of this host and the engine, kept in step.
//!
//! Claude Code knows its own files and nothing else. So on each host that has native members a link
//! stands between those files and the store that all hosts share, the *far* one, and carries mail,
//! tasks and the roster both ways. It asks of the far store nothing but [`Store`].
//!
//! - `roster`: who lives here and who elsewhere, as `judge` has it; `home`: how the far store says so;
//! - `mail`: what goes out, what comes in, and what was read of it;
//! - `board`: tasks, of which the far store has the last word, by `step`; `new_task`: those made here;
//! - `memory`: what the link remembers over a restart; `news`: what it says of its doings.
//!
//! # Why nothing goes round in circles
//!
//! A member of the team is *local* or *remote*, never both: its entry in the files of this host either
//! bears the mark of a link ([`REMOTE`]) or does not. Mail is taken out of the files only from inboxes
//! of remote members, and only if a local member wrote it. Mail is put into the files only into
//! inboxes of local members. So nothing that a link put somewhere is ever where a link takes from, on
//! this host or on another.
//!
//! # Why everything arrives once
//!
//! A message keeps its id on its way, and one without gets one that is made of what it says. Before a
//! message whose fate is unknown is sent, the history of its mailbox is asked whether it is there: that
//! of the far store on the way out, that of the files on the way in. The fate is unknown when the link
//! starts and after every error. Only behind the sending the message is marked. So whoever dies in
//! between finds it unmarked, asks, and marks it.
//!
//! What the link remembers ([`Notebook`]) tells a change from what was there, and may be lost: then the
//! far store is right about tasks, whose losers are told, and nobody leaves the team by it.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use brigade_core::clock::SystemClock;
//! use brigade_link::{Ends, Link, LinkError, Notebook, Pace};
//! use brigade_core::store::Store;
//! use brigade_files::FileStore;
//!
//! async fn link(
//!     local: Arc<FileStore>,
//!     far: Arc<dyn Store>,
//!     notebook: Arc<dyn Notebook>,
//! ) -> Result<(), LinkError> {
//!     let mut link = Link::new(Ends {
//!         local,
//!         far,
//!         clock: Arc::new(SystemClock),
//!         host: "laptop".into(),
//!         team: "demo".parse().expect("a name"),
//!         speaks_for: Default::default(),
//!         signer: None,
//!         notebook,
//!         hears: Arc::new(|news| println!("{news:?}")),
//!         pace: Pace::default(),
//!     })?;
//!     link.once().await
//! }
//! ```

#![forbid(unsafe_code)]

mod board;
mod home;
mod judge;
mod mail;
mod memory;
mod new_task;
mod news;
mod pass;
mod place;
mod roster;
mod run;
mod step;
mod tell;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use brigade_wire::name::{MemberName, TaskId, TeamName};
use thiserror::Error;
use tokio::time::Instant;

pub use self::home::Home;
use self::mail::Post;
use self::memory::Memory;
pub use self::memory::Notebook;
pub use self::news::News;
pub use self::place::is_mirror;
use self::roster::Sides;
use brigade_core::clock::Clock;
use brigade_core::event::MessageKey;
use brigade_core::signature::Signer;
use brigade_core::store::{Actor, Store, StoreError};
use brigade_files::FileStore;

/// What stands as `backendType` in the entry of a member that lives on another host.
///
/// Claude Code keeps a word it does not know there. `tmux` and `in-process` would be wrong: it looks for
/// a pane or a task of its own, and a lead of the new generation would take the member for one that it
/// started itself.
pub const REMOTE: &str = "remote";

/// Who writes in the files of this host what happened elsewhere, for the record.
const LINK: &str = "link";

/// What a link is between.
#[derive(Clone)]
pub struct Ends {
    /// The files of this host.
    pub local: Arc<FileStore>,
    /// Where all hosts meet.
    pub far: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What this host is called. No two hosts of a team may be called the same.
    pub host: String,
    /// Which team.
    pub team: TeamName,
    /// Those for whom the link may speak in the far store, and who are to live here; nobody in particular
    /// where it may speak for all.
    pub speaks_for: BTreeSet<MemberName>,
    /// Who signs what the lead writes to those here who know it by a key.
    pub signer: Option<Arc<dyn Signer>>,
    /// Where the link remembers.
    pub notebook: Arc<dyn Notebook>,
    /// Who hears of what the link does.
    pub hears: Arc<dyn Fn(&News) + Send + Sync>,
    /// How patient it is.
    pub pace: Pace,
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { team, host, .. } = self;
        f.debug_struct("Ends").field("team", team).field("host", host).finish_non_exhaustive()
    }
}

/// How patient a link is.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often everything is looked at, behind the watches.
    pub sweep: Duration,
    /// How long one call to the far store may take.
    pub patience: Duration,
    /// How long to wait before it is tried again, at first; the wait doubles up to five times as long.
    pub retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        // A call lasts through an election of the engine's servers.
        let (sweep, patience) = (Duration::from_secs(30), Duration::from_secs(20));
        Self { sweep, patience, retry: Duration::from_secs(1) }
    }
}

/// Why a link did not do what it should.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The far store did not answer, or refused.
    #[error("the engine: {0}")]
    Far(#[source] StoreError),
    /// The files of this host did not let us.
    #[error(transparent)]
    Here(StoreError),
    /// There is no such team on either side.
    #[error("there is no team {team}, neither here nor in the engine")]
    NoTeam {
        /// Which.
        team: TeamName,
    },
    /// Two teams have the name.
    #[error(
        "the team {team} here and the one in the engine were created at different times: they are two"
    )]
    OtherTeam {
        /// Which name.
        team: TeamName,
    },
    /// The team came to its end on one side.
    #[error("team {team} is gone {side}")]
    Ended {
        /// Which team.
        team: TeamName,
        /// From where.
        side: &'static str,
    },
    /// What is to be remembered cannot be kept.
    #[error("cannot keep the link's notes")]
    Notes(#[source] io::Error),
}

impl LinkError {
    /// Whether the far store cannot be reached, as against: would not.
    fn is_cut(&self) -> bool {
        let cut = |error: &StoreError| {
            matches!(
                error,
                StoreError::Engine { .. } | StoreError::Io { .. } | StoreError::Locked(_)
            )
        };
        matches!(self, Self::Far(error) if cut(error))
    }

    fn is_conflict(&self) -> bool {
        matches!(self, Self::Far(StoreError::Conflict) | Self::Here(StoreError::Conflict))
    }

    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Far(StoreError::Forbidden { .. }))
    }

    fn is_no_task(&self) -> bool {
        let none = |error: &StoreError| matches!(error, StoreError::NoTask { .. });
        matches!(self, Self::Far(error) | Self::Here(error) if none(error))
    }
}

/// A link of one team.
pub struct Link {
    ends: Ends,
    memory: Memory,
    /// Who lives where, as of the last look.
    sides: Option<Sides>,
    /// What is known of the mailboxes of local members, on both sides.
    posts: HashMap<MemberName, Post>,
    /// What the far mailboxes of remote members are known to hold.
    sent: HashMap<MemberName, HashSet<MessageKey>>,
    /// When a remote member's entry was last written here.
    mirrored: HashMap<MemberName, Instant>,
    /// When a task was last written here from elsewhere.
    placed: HashMap<TaskId, Instant>,
    /// Who of ours changed a task last, where that is known.
    changed_by: HashMap<TaskId, String>,
    /// The tasks that were in step once, by the journal; asked for where the memory is lost.
    once_in_step: Option<HashSet<u64>>,
    /// Tasks that got their number a moment ago, and are to be looked at again.
    again: BTreeSet<TaskId>,
    /// What was said already, and is not said again.
    said: HashSet<String>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl Link {
    /// A link between these ends, with what the notebook remembers of an earlier one.
    pub fn new(ends: Ends) -> Result<Self, LinkError> {
        let memory = Memory::load(ends.notebook.as_ref()).map_err(LinkError::Notes)?;
        Ok(Self {
            ends,
            memory,
            sides: None,
            posts: HashMap::new(),
            sent: HashMap::new(),
            mirrored: HashMap::new(),
            placed: HashMap::new(),
            changed_by: HashMap::new(),
            once_in_step: None,
            again: BTreeSet::new(),
            said: HashSet::new(),
        })
    }

    fn say(&self, news: &News) {
        (self.ends.hears)(news);
    }

    /// Says what is wrong, once.
    fn complain(&mut self, why: String) {
        if self.said.insert(why.clone()) {
            self.say(&News::Trouble { why });
        }
    }

    fn save(&mut self) -> Result<(), LinkError> {
        self.memory.save(self.ends.notebook.as_ref()).map_err(LinkError::Notes)
    }
}

impl Ends {
    /// One call to the far store, which has its time.
    async fn far<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, LinkError> {
        match tokio::time::timeout(self.pace.patience, call).await {
            Ok(done) => done.map_err(LinkError::Far),
            Err(_) => Err(LinkError::Far(StoreError::Engine {
                doing: "do it in time".into(),
                source: "there was no answer".into(),
            })),
        }
    }
}

/// For the record of the files.
fn link() -> Actor {
    Actor(LINK.to_owned())
}

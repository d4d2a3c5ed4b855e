//! `brigade link`

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brigade_core::clock::Clock;
use brigade_core::store::Store;
use brigade_core::text;
use brigade_files::FileStore;
use brigade_link::{Ends, Link, LinkError, News, Notebook, Pace};
use brigade_wire::name::{MemberName, TeamName};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::cli::{self, Global};
use crate::context::Context;
use crate::error::{CliError, CliTrouble, Trouble};
use crate::{env, exit, output};
use brigade_host::process_lock::{self, Held};
use brigade_host::signals::stop_signal;

/// How often it is looked for teams that are new in the engine, and for the engine where it was not
/// there at the start.
const LOOK: Duration = Duration::from_secs(5);

pub(crate) async fn run(global: Global, asked: cli::Link) -> Result<u8, CliError> {
    if global.home.engine().is_none() {
        let error = CliError::usage(CliTrouble::NothingToLink);
        return Err(error.hint("name it: --store nats://HOST:PORT"));
    }
    let mut told = std::pin::pin!(stop_signal());
    let house = tokio::select! {
        house = House::open(global, &asked) => house?,
        told = &mut told => return told.map(|_| exit::DONE),
    };
    if asked.once {
        return house.once().await;
    }
    tokio::select! {
        done = house.go_on() => done,
        told = &mut told => told.map(|_| exit::DONE),
    }
}

/// What all links of a host have in common.
struct House {
    context: Context,
    local: Arc<FileStore>,
    host: String,
    named: BTreeSet<TeamName>,
    speaks_for: BTreeSet<MemberName>,
    /// Where the links remember.
    folder: PathBuf,
}

impl House {
    /// Opens both sides. Who is to run on waits for an engine that is not there yet.
    async fn open(global: Global, asked: &cli::Link) -> Result<Self, CliError> {
        let mut said = false;
        let context = loop {
            match Context::new(global.clone()).await {
                Ok(context) => break context,
                Err(error) if asked.once || !error.is_unreachable() => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut said, true) {
                        output::note(&format!("{error}; waiting for it"));
                    }
                    tokio::time::sleep(LOOK).await;
                }
            }
        };
        let local = Arc::clone(&context.files);
        let home = context.home();
        let (claude_dir, state_dir) = context.folders();
        let folder = state_dir.join("link").join(home.key(claude_dir));
        let speaks_for = match home.engine() {
            Some(engine) => engine.speaks_for()?.into_iter().collect(),
            None => BTreeSet::new(),
        };
        let host = asked.host.clone().unwrap_or_else(env::host_name);
        let named = asked.teams.iter().chain(context.named_team()).cloned().collect();
        Ok(Self { context, local, host, named, speaks_for, folder })
    }

    /// The teams to be linked: those named, or else all of the engine.
    async fn teams(&self) -> Result<BTreeSet<TeamName>, CliError> {
        if !self.named.is_empty() {
            return Ok(self.named.clone());
        }
        Ok(self.context.store.teams().await?.into_iter().collect())
    }

    async fn once(&self) -> Result<u8, CliError> {
        let teams = self.teams().await?;
        if teams.is_empty() {
            output::note("there is no team in the engine");
            return Ok(exit::NOTHING);
        }
        for team in teams {
            let (mut link, _held) = self.link(&team).await?;
            link.once().await.map_err(failed)?;
        }
        Ok(exit::DONE)
    }

    /// Keeps every team in step, each by itself: what is wrong with one does not stop the others.
    async fn go_on(&self) -> Result<u8, CliError> {
        let mut running: BTreeMap<TeamName, tokio::task::AbortHandle> = BTreeMap::new();
        let mut links = JoinSet::new();
        let mut said = false;
        loop {
            let teams = self.teams().await;
            let is_none = teams.as_ref().is_ok_and(BTreeSet::is_empty) && running.is_empty();
            if is_none && !std::mem::replace(&mut said, true) {
                output::note("there is no team in the engine yet; waiting for one");
            }
            // An engine that is cut off is seen to by the links.
            for team in teams.unwrap_or_default() {
                if running.contains_key(&team) {
                    continue;
                }
                let (mut link, held) = self.link(&team).await?;
                let ends = async move {
                    let _held = held;
                    link.run(std::future::pending()).await.map_err(failed)
                };
                running.insert(team, links.spawn(ends));
            }
            tokio::select! {
                Some(ended) = links.join_next() => {
                    if let Ok(Err(error)) = ended {
                        return Err(error);
                    }
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            if output::is_abandoned() {
                return Ok(exit::DONE);
            }
        }
    }

    /// A link of one team, which no other process links from these files.
    async fn link(&self, team: &TeamName) -> Result<(Link, Held), CliError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|source| io_failed("make", &self.folder, source))?;
        let lock = self.folder.join(format!("{team}.lock"));
        let held =
            process_lock::take(&lock).await.map_err(|source| io_failed("lock", &lock, source))?;
        let held = held.ok_or_else(|| {
            CliError::failed(CliTrouble::LinkedAlready { team: team.to_string() })
        })?;
        let (json, name) = (self.context.json, team.clone());
        let ends = Ends {
            local: Arc::clone(&self.local),
            far: Arc::clone(&self.context.store) as Arc<dyn Store>,
            clock: Arc::clone(&self.context.clock) as Arc<dyn Clock>,
            host: self.host.clone(),
            team: team.clone(),
            speaks_for: self.speaks_for.clone(),
            signer: Some(Arc::new(self.context.keys_of_files(team)) as _),
            notebook: Arc::new(Page { path: self.folder.join(format!("{team}.json")) }),
            hears: Arc::new(move |news: &News| show(json, &name, news)),
            pace: Pace::default(),
        };
        Ok((Link::new(ends).map_err(failed)?, held))
    }
}

/// One thing a link did, for programs.
#[derive(Serialize)]
struct Line<'l> {
    team: &'l TeamName,
    #[serde(flatten)]
    news: &'l News,
}

/// Shows what a link did. If nobody reads it any more, that is seen elsewhere.
fn show(json: bool, team: &TeamName, news: &News) {
    let _abandoned = if json {
        output::print_json(&Line { team, news })
    } else {
        output::print(&format!("{team}: {}\n", text::plain(&news.to_string())))
    };
}

/// What a link remembers, in a file of its own.
#[derive(Debug)]
struct Page {
    path: PathBuf,
}

impl Notebook for Page {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        // Only one process holds the lock of this team, so that nobody else writes the draft.
        let draft = self.path.with_extension("draft");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(text)?;
        fs::rename(draft, &self.path)
    }
}

fn failed(error: LinkError) -> CliError {
    match error {
        LinkError::Far(error) | LinkError::Here(error) => error.into(),
        error => CliError::failed(error),
    }
}

fn io_failed(doing: &str, path: &Path, source: io::Error) -> CliError {
    CliError::failed(Trouble::Io { doing: format!("{doing} {}", path.display()), source })
}

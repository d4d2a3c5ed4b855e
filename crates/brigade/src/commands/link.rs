//! `brigade link`

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::clock::Clock;
use brigade_core::store::Store;
use brigade_core::text;
use brigade_files::FileStore;
use brigade_link::{Link, LinkConfig, LinkError, LinkEvent, LinkStateStore, LinkTiming};
use brigade_wire::name::{MemberName, TeamName};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::cli::{self, GlobalArgs};
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::{env, exit, output};
use brigade_host::error::file_failed;
use brigade_host::process_lock::{self, ProcessLock};
use brigade_host::signals::stop_signal;

/// How often to check for new teams on the NATS server, and to retry if the server was unreachable at startup.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) async fn run(global: GlobalArgs, asked: cli::LinkArgs) -> Result<u8, CliError> {
    if global.home.nats().is_none() {
        let error = CliError::usage(CliTrouble::NothingToLink);
        return Err(error.hint("add `--store nats://HOST:PORT`"));
    }
    let mut ended = std::pin::pin!(stop_signal());
    let links = tokio::select! {
        links = HostLinks::open(global, &asked) => links?,
        ended = &mut ended => return ended.map(|_| exit::DONE),
    };
    if asked.once {
        return links.once().await;
    }
    tokio::select! {
        done = links.keep_linked() => done,
        ended = &mut ended => ended.map(|_| exit::DONE),
    }
}

/// State shared by all links of this host.
struct HostLinks {
    context: CliContext,
    local: Arc<FileStore>,
    host: String,
    named: BTreeSet<TeamName>,
    speaks_for: BTreeSet<MemberName>,
    /// The folder in which the links save their state.
    folder: PathBuf,
}

impl HostLinks {
    /// Opens both stores. Waits for an unreachable NATS server, except with `--once`.
    async fn open(global: GlobalArgs, asked: &cli::LinkArgs) -> Result<Self, CliError> {
        let mut noted = false;
        let context = loop {
            match CliContext::new(global.clone()).await {
                Ok(context) => break context,
                Err(error) if asked.once || !error.is_unreachable() => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut noted, true) {
                        output::note(&format!("{error}; retrying"));
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        };
        let local = Arc::clone(&context.files);
        let home = context.location();
        let (claude_dir, state_dir) = context.folders();
        let folder = state_dir.join("link").join(home.key(claude_dir));
        let speaks_for = match home.nats() {
            Some(engine) => engine.speaks_for()?.into_iter().collect(),
            None => BTreeSet::new(),
        };
        let host = asked.host.clone().unwrap_or_else(env::host_name);
        let named = asked.teams.iter().chain(context.named_team()).cloned().collect();
        Ok(Self { context, local, host, named, speaks_for, folder })
    }

    /// Returns the teams to link: those named on the command line, or all teams on the NATS server.
    async fn teams(&self) -> Result<BTreeSet<TeamName>, CliError> {
        if !self.named.is_empty() {
            return Ok(self.named.clone());
        }
        Ok(self.context.teams().await?.into_iter().collect())
    }

    async fn once(&self) -> Result<u8, CliError> {
        let teams = self.teams().await?;
        if teams.is_empty() {
            output::note("there is no team on the NATS server");
            return Ok(exit::NOTHING);
        }
        for team in teams {
            let (mut link, _held) = self.link(&team).await?;
            link.once().await.map_err(failed)?;
        }
        Ok(exit::DONE)
    }

    /// Keeps every team synchronized, with one task per team. Returns the first error that ends a link.
    async fn keep_linked(&self) -> Result<u8, CliError> {
        let mut running: BTreeMap<TeamName, tokio::task::AbortHandle> = BTreeMap::new();
        let mut links = JoinSet::new();
        let mut noted = false;
        loop {
            let teams = self.teams().await;
            let is_none = teams.as_ref().is_ok_and(BTreeSet::is_empty) && running.is_empty();
            if is_none && !std::mem::replace(&mut noted, true) {
                output::note("there is no team on the NATS server yet; waiting for one");
            }
            // Ignore a failure to list the teams: the running links handle a lost connection themselves.
            for team in teams.unwrap_or_default() {
                if running.contains_key(&team) {
                    continue;
                }
                let (mut link, held) = self.link(&team).await?;
                let run = async move {
                    let _held = held;
                    link.run(std::future::pending()).await.map_err(failed)
                };
                running.insert(team, links.spawn(run));
            }
            tokio::select! {
                Some(ended) = links.join_next() => {
                    if let Ok(Err(error)) = ended {
                        return Err(error);
                    }
                }
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
            if output::is_stdout_closed() {
                return Ok(exit::DONE);
            }
        }
    }

    /// Opens the link of one team, and locks the team so that no other process on this host links it.
    async fn link(&self, team: &TeamName) -> Result<(Link, ProcessLock), CliError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|source| file_failed("make", &self.folder, source))?;
        let lock = self.folder.join(format!("{team}.lock"));
        let held =
            process_lock::take(&lock).await.map_err(|source| file_failed("lock", &lock, source))?;
        let held = held.ok_or_else(|| {
            CliError::failed(CliTrouble::LinkedAlready { team: team.to_string() })
        })?;
        let (json, name) = (self.context.json, team.clone());
        let ends = LinkConfig {
            local: Arc::clone(&self.local),
            shared: Arc::clone(&self.context.store) as Arc<dyn Store>,
            clock: Arc::clone(&self.context.clock) as Arc<dyn Clock>,
            host: self.host.clone(),
            team: team.clone(),
            acts_for: self.speaks_for.clone(),
            signer: Some(Arc::new(self.context.file_store_keys(team)) as _),
            state_store: Arc::new(LinkStateFile { path: self.folder.join(format!("{team}.json")) }),
            on_event: Arc::new(move |news: &LinkEvent| show(json, &name, news)),
            timing: LinkTiming::default(),
        };
        Ok((Link::new(ends).map_err(failed)?, held))
    }
}

/// The JSON form of an event of a link.
#[derive(Serialize)]
struct NewsDocument<'l> {
    team: &'l TeamName,
    #[serde(flatten)]
    news: &'l LinkEvent,
}

/// Prints an event of a link. Ignores write errors, because the main loop notices if standard output was closed.
fn show(json: bool, team: &TeamName, news: &LinkEvent) {
    let _abandoned = if json {
        output::print_json(&NewsDocument { team, news })
    } else {
        output::print(&format!("{team}: {}\n", text::plain(&news.to_string())))
    };
}

/// The file in which a link saves its state.
#[derive(Debug)]
struct LinkStateFile {
    path: PathBuf,
}

impl LinkStateStore for LinkStateFile {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        // This process holds the team's lock, so no other process writes the temporary file.
        let draft = self.path.with_extension("draft");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(text)?;
        fs::rename(draft, &self.path)
    }
}

fn failed(error: LinkError) -> CliError {
    match error {
        LinkError::Shared(error) | LinkError::Local(error) => error.into(),
        error => CliError::failed(error),
    }
}

//! Where a command works: which files, which team, in whose name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brigade_core::authority::Denied;
use brigade_core::clock::{Clock, SystemClock};
use brigade_core::seat::{Hand, Seat};
use brigade_core::signature::LeadKey;
use brigade_core::store::Store;
use brigade_core::store::file::{FileStore, LOCK_WAIT, Options};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use clap::ValueEnum;

use crate::cli::{DurabilityWord, Global};
use crate::error::{CliError, Trouble, members_are};
use crate::home::{Engine, Home};
use crate::host::Host;
use crate::host::folder::Folder;
use crate::host::keys::KeyRing;
use crate::host::start::Again;
use crate::{env, installed, team_file};

/// How long a command that only looks waits for a lock; without it, it shows what is there.
const GLANCE: Duration = Duration::from_millis(100);

/// Where a command works.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) store: Arc<dyn Store>,
    /// Claude Code's files on this host, wherever the teams live.
    pub(crate) files: Arc<FileStore>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the answer is for a program.
    pub(crate) json: bool,
    team: Option<TeamName>,
    me: Option<MemberName>,
    lead_key: Option<LeadKey>,
    claude_dir: PathBuf,
    state_dir: PathBuf,
    home: Home,
    /// Whether the agent that acts may answer, if an agent is said to.
    answers: Option<bool>,
}

impl Context {
    /// For commands that change something.
    pub(crate) async fn new(global: Global) -> Result<Self, CliError> {
        Self::open(global, LOCK_WAIT, false).await
    }

    /// For what goes on by itself: it bears with an engine that is out of reach for a while.
    pub(crate) async fn lasting(global: Global) -> Result<Self, CliError> {
        Self::open(global, LOCK_WAIT, true).await
    }

    /// For commands that only look: what a lock keeps from them they do without.
    pub(crate) async fn glancing(global: Global) -> Result<Self, CliError> {
        Self::open(global, GLANCE, false).await
    }

    async fn open(global: Global, lock_wait: Duration, lasts: bool) -> Result<Self, CliError> {
        let (claude_dir, state_dir) = dirs(&global)?;
        let durability = match global.durability {
            Some(word) => word,
            None => {
                let word = |word: &str| DurabilityWord::from_str(word, false);
                variable(env::DURABILITY, |text| word(text).map_err(|_| "use process or power"))?
                    .unwrap_or(DurabilityWord::Process)
            }
        };
        let (claude, state) = (claude_dir.clone(), state_dir.clone());
        let options = Options::new(claude_dir, state_dir)
            .with_durability(durability.into())
            .with_lock_wait(lock_wait);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let files = Arc::new(FileStore::new(options, Arc::clone(&clock)));
        let store: Arc<dyn Store> = match &global.home {
            Home::Files => Arc::clone(&files) as _,
            Home::Engine(engine) => engine.open(lasts).await?,
        };
        let team = named_team(&global)?;
        let me = match global.me {
            Some(me) => Some(me),
            None => variable(env::AS, str::parse)?,
        };
        // Credentials are of a team, and often of one member.
        let seat = global.home.engine().and_then(Engine::seat);
        let team = team.or_else(|| seat.as_ref().map(|seat| seat.0.clone()));
        let me = me.or_else(|| seat.and_then(|seat| seat.1));
        let lead_key = variable(env::LEAD_KEY, str::parse)?;
        let answers = variable(env::ANSWERS, |word| match word {
            "person" => Ok(false),
            "lead" => Ok(true),
            _ => Err("use person or lead"),
        })?;
        let (json, home) = (global.json, global.home);
        let (claude_dir, state_dir) = (claude, state);
        Ok(Self {
            store,
            files,
            clock,
            json,
            team,
            me,
            lead_key,
            claude_dir,
            state_dir,
            home,
            answers,
        })
    }

    /// What runs on this host.
    pub(crate) fn host(&self) -> Result<Host, CliError> {
        host_at(&self.home, &self.claude_dir, &self.state_dir)
    }

    fn folder(&self) -> Folder {
        folder_at(&self.home, &self.claude_dir, &self.state_dir)
    }

    /// The keys by which members in the files of this host know their lead.
    pub(crate) fn keys_of_files(&self, team: &TeamName) -> KeyRing {
        let key = Home::Files.key(&self.claude_dir);
        Folder::new(self.state_dir.join("host").join(key)).keys(team)
    }

    /// Where the teams live.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Claude Code's folder.
    pub(crate) fn claude_dir(&self) -> &Path {
        &self.claude_dir
    }

    /// Claude Code's folder, and brigade's own.
    pub(crate) fn folders(&self) -> (&Path, &Path) {
        (&self.claude_dir, &self.state_dir)
    }

    /// Refuses to act in the lead's seat for whoever says that they are somebody else. In an engine the
    /// credentials decide.
    pub(crate) fn refuse_to_lead(
        &self,
        team: &TeamName,
        what: &'static str,
    ) -> Result<(), CliError> {
        match &self.me {
            Some(me) if *me != MemberName::lead() && self.home.engine().is_none() => {
                let (who, team) = (me.clone(), team.to_string());
                Err(Denied::LeadOnly { what, who, team }.into())
            }
            _ => Ok(()),
        }
    }

    /// The team that was named, if one was.
    pub(crate) fn named_team(&self) -> Option<&TeamName> {
        self.team.as_ref()
    }

    /// Who it was said to be, if it was said.
    pub(crate) fn named_me(&self) -> Option<&MemberName> {
        self.me.as_ref()
    }

    /// The same place with another team named.
    pub(crate) fn on(self, team: Option<TeamName>) -> Self {
        let team = team.or(self.team);
        Self { team, ..self }
    }

    /// The team: the one named, which must be there, or the only one there is, or that of the `brigade.toml` of this
    /// folder.
    pub(crate) async fn team(&self) -> Result<TeamName, CliError> {
        if let Some(team) = &self.team {
            if self.store.team(team).await?.is_some() {
                return Ok(team.clone());
            }
            let error = brigade_core::store::StoreError::NoTeam { team: team.clone() };
            let error = CliError::from(error);
            return Err(match self.teams().await?.as_slice() {
                [] => error.hint(format!("`brigade team create {team}` makes it")),
                teams => error
                    .hint(format!("teams are {}", teams.join(", ")))
                    .hint(format!("`brigade team create {team}` makes a new one")),
            });
        }
        let teams = self.store.teams().await?;
        match teams.as_slice() {
            [] => {
                let error = CliError::failed(Trouble::NoTeams);
                Err(error.hint(
                    "`brigade team create NAME` makes one, `brigade new` and `brigade up` one from a file",
                ))
            }
            [team] => Ok(team.clone()),
            // In a project's folder its team is meant.
            teams => match team_file::here().filter(|team| teams.contains(team)) {
                Some(team) => Ok(team),
                None => {
                    let error = CliError::failed(Trouble::SeveralTeams(self.teams().await?));
                    Err(error.hint(format!("choose with `--team TEAM`, or set {}", env::TEAM)))
                }
            },
        }
    }

    /// The seat of whoever runs the command.
    pub(crate) async fn seat(&self) -> Result<Seat, CliError> {
        let team = self.team().await?;
        let name = self.identity(&team).await?;
        Ok(self.seat_of(team, name))
    }

    /// A seat for looking: who looks does not matter.
    pub(crate) async fn reader(&self) -> Result<Seat, CliError> {
        let name = self.me.clone().unwrap_or_else(MemberName::lead);
        Ok(self.seat_of(self.team().await?, name))
    }

    /// The seat of whoever was named, or else of `name`, who does something about itself.
    pub(crate) async fn seat_or(&self, name: &MemberName) -> Result<Seat, CliError> {
        let name = self.me.clone().unwrap_or_else(|| name.clone());
        Ok(self.seat_of(self.team().await?, name))
    }

    pub(crate) fn seat_of(&self, team: TeamName, name: MemberName) -> Seat {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        // The command line is a person's, unless whoever started an agent says that this is the agent.
        let hand = self.answers.map_or(Hand::Person, |answers| Hand::Agent { answers });
        // In an engine the server says who wrote something, and the keys of a host are not known to others.
        let keys = self.home.engine().is_none().then(|| self.folder().keys(&team));
        let mut seat = Seat::new(store, team, name).with_clock(clock).with_hand(hand);
        seat.lead_key.clone_from(&self.lead_key);
        seat.signer = keys.map(|keys| Arc::new(keys) as _);
        seat
    }

    /// The hand of whoever is behind the tools, which is always an agent.
    pub(crate) fn agent(&self) -> Hand {
        Hand::Agent { answers: self.answers.unwrap_or(true) }
    }

    /// Who runs the command. In a team that brigade created nobody else holds the lead's seat, so
    /// whoever does not say otherwise is the lead. In a team of Claude Code the lead is Claude, and
    /// nobody speaks in its name by forgetting an option.
    pub(crate) async fn identity(&self, team: &TeamName) -> Result<MemberName, CliError> {
        if let Some(me) = &self.me {
            return Ok(me.clone());
        }
        if self.store.is_ours(team).await? {
            return Ok(MemberName::lead());
        }
        let error = CliError::failed(Trouble::WhoAreYou { team: team.to_string() });
        let config = self.store.team(team).await?;
        let roster = config.as_ref().and_then(|config| Team::read(&config.bytes).ok());
        let members: Vec<String> = roster
            .iter()
            .flat_map(Team::members)
            .filter_map(|member| Some(member.name()?.into_owned()))
            .collect();
        let error = error.hint(format!("say `--as NAME`, or set {}", env::AS));
        Err(if members.is_empty() { error } else { error.hint(members_are(&members)) })
    }

    async fn teams(&self) -> Result<Vec<String>, CliError> {
        let teams = self.store.teams().await?;
        Ok(teams.iter().map(ToString::to_string).collect())
    }
}

/// Claude Code's folder, and brigade's own.
fn dirs(global: &Global) -> Result<(PathBuf, PathBuf), CliError> {
    let no_home = || CliError::failed(Trouble::NoHome);
    let claude_dir = global.claude_dir.clone().or_else(env::claude_dir).ok_or_else(no_home)?;
    Ok((claude_dir, env::state_dir().ok_or_else(no_home)?))
}

/// The team that is named on the command line or in the environment.
pub(crate) fn named_team(global: &Global) -> Result<Option<TeamName>, CliError> {
    match &global.team {
        Some(team) => Ok(Some(team.clone())),
        None => variable(env::TEAM, str::parse),
    }
}

/// What runs on this host, though where its teams live cannot be reached.
pub(crate) fn host_alone(global: &Global) -> Result<Host, CliError> {
    let (claude_dir, state_dir) = dirs(global)?;
    host_at(&global.home, &claude_dir, &state_dir)
}

fn host_at(home: &Home, claude_dir: &Path, state_dir: &Path) -> Result<Host, CliError> {
    let absolute = std::path::absolute(claude_dir).map_err(|source| {
        let doing = "find the current folder".into();
        CliError::failed(Trouble::Io { doing, source })
    })?;
    let mut options = vec!["--claude-dir".into(), absolute.into_os_string()];
    options.extend(home.options());
    let again = Again { program: installed::itself()?.into_os_string(), options };
    Ok(Host {
        folder: folder_at(home, claude_dir, state_dir),
        again,
        worktrees: state_dir.join("worktrees"),
        is_shared: home.engine().is_some(),
        may_lead: home.engine().is_none_or(Engine::may_lead),
    })
}

fn folder_at(home: &Home, claude_dir: &Path, state_dir: &Path) -> Folder {
    Folder::new(state_dir.join("host").join(home.key(claude_dir)))
}

/// What a variable says, if it is set.
pub(crate) fn variable<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, CliError> {
    let Some(value) = env::read(name) else { return Ok(None) };
    let invalid = |source| CliError::usage(Trouble::Variable { variable: name, source });
    let value = value.to_str().ok_or_else(|| invalid("it is not UTF-8".into()))?;
    parse(value).map(Some).map_err(|error| invalid(error.into()))
}

/// The directory a member works in, for the record.
pub(crate) fn cwd() -> String {
    let cwd: PathBuf = std::env::current_dir().unwrap_or_default();
    cwd.to_string_lossy().into_owned()
}

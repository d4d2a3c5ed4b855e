//! Where a command works: which files, which team, in whose name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brigade_core::authority::Denied;
use brigade_core::clock::{Clock, SystemClock};
use brigade_core::seat::{Hand, Seat};
use brigade_core::signature::LeadKey;
use brigade_core::store::Store;
use brigade_files::{Durability, FileStore, Options};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;

use crate::error::{HostError, Trouble, failed, members_are};
use crate::host::Host;
use crate::installed::Programs;
use crate::keys::KeyRing;
use crate::location::{Location, NatsServers};
use crate::progress::Report;
use crate::registry::Registry;
use crate::start::SelfCommand;
use crate::{team_file, variables};

/// What a front end knows from its arguments and its environment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the teams are stored.
    pub location: Location,
    /// Claude Code's folder.
    pub claude_dir: PathBuf,
    /// Brigade's own folder.
    pub state_dir: PathBuf,
    /// Which failures an acknowledged message survives.
    pub durability: Durability,
    /// How long to wait for a lock.
    pub lock_wait: Duration,
    /// Whether the process keeps running while the NATS server cannot be reached.
    pub is_lasting: bool,
    /// The team that was named.
    pub team: Option<TeamName>,
    /// The member that was named.
    pub me: Option<MemberName>,
    /// The key by which the member checks the messages of its lead.
    pub lead_key: Option<LeadKey>,
    /// Whether the agent that acts may answer requests, if an agent acts.
    pub answers: Option<bool>,
    /// Where programs are looked for.
    pub programs: Arc<Programs>,
    /// The name of this host.
    pub host_name: String,
    /// The current folder.
    pub cwd: PathBuf,
}

/// The store, the team and the member a front end acts for.
#[derive(Debug)]
pub struct Context {
    /// Where the teams are stored.
    pub store: Arc<dyn Store>,
    /// Claude Code's files on this host, wherever the teams are stored.
    pub files: Arc<FileStore>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The current folder.
    pub cwd: PathBuf,
    team: Option<TeamName>,
    me: Option<MemberName>,
    lead_key: Option<LeadKey>,
    claude_dir: PathBuf,
    state_dir: PathBuf,
    home: Location,
    answers: Option<bool>,
    programs: Arc<Programs>,
    host_name: String,
}

impl Context {
    /// Opens the store that these settings name.
    pub async fn open(settings: Settings, report: Report<'_>) -> Result<Self, HostError> {
        let options = Options::new(settings.claude_dir.clone(), settings.state_dir.clone())
            .with_durability(settings.durability)
            .with_lock_wait(settings.lock_wait);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let files = Arc::new(FileStore::new(options, Arc::clone(&clock)));
        let store: Arc<dyn Store> = match &settings.location {
            Location::Files => Arc::clone(&files) as _,
            Location::Nats(servers) => servers.open(settings.is_lasting, report).await?,
        };
        // Credentials are of a team, and often of one member.
        let seat = settings.location.engine().and_then(NatsServers::seat);
        let team = settings.team.or_else(|| seat.as_ref().map(|seat| seat.0.clone()));
        let me = settings.me.or_else(|| seat.and_then(|seat| seat.1));
        Ok(Self {
            store,
            files,
            clock,
            cwd: settings.cwd,
            team,
            me,
            lead_key: settings.lead_key,
            claude_dir: settings.claude_dir,
            state_dir: settings.state_dir,
            home: settings.location,
            answers: settings.answers,
            programs: settings.programs,
            host_name: settings.host_name,
        })
    }

    /// What runs on this host.
    pub fn host(&self) -> Result<Host, HostError> {
        let programs = Arc::clone(&self.programs);
        host_at(&self.home, &self.claude_dir, &self.state_dir, programs, self.host_name.clone())
    }

    fn registry(&self) -> Registry {
        registry_at(&self.home, &self.claude_dir, &self.state_dir)
    }

    /// The keys by which members in the files of this host know their lead.
    pub fn keys_of_files(&self, team: &TeamName) -> KeyRing {
        let key = Location::Files.key(&self.claude_dir);
        Registry::new(self.state_dir.join("host").join(key)).keys(team)
    }

    /// Where the teams live.
    pub fn home(&self) -> &Location {
        &self.home
    }

    /// Claude Code's folder.
    pub fn claude_dir(&self) -> &Path {
        &self.claude_dir
    }

    /// Claude Code's folder, and brigade's own.
    pub fn folders(&self) -> (&Path, &Path) {
        (&self.claude_dir, &self.state_dir)
    }

    /// Refuses to act in the lead's seat for whoever says that they are somebody else. In an engine the
    /// credentials decide.
    pub fn refuse_to_lead(&self, team: &TeamName, what: &'static str) -> Result<(), HostError> {
        match &self.me {
            Some(me) if *me != MemberName::lead() && self.home.engine().is_none() => {
                let (who, team) = (me.clone(), team.to_string());
                Err(Denied::LeadOnly { what, who, team }.into())
            }
            _ => Ok(()),
        }
    }

    /// The team that was named, if one was.
    pub fn named_team(&self) -> Option<&TeamName> {
        self.team.as_ref()
    }

    /// Who it was said to be, if it was said.
    pub fn named_me(&self) -> Option<&MemberName> {
        self.me.as_ref()
    }

    /// The same place with another team named.
    pub fn on(self, team: Option<TeamName>) -> Self {
        let team = team.or(self.team);
        Self { team, ..self }
    }

    /// The team: the one named, which must be there, or the only one there is, or that of the `brigade.toml` of this
    /// folder.
    pub async fn team(&self) -> Result<TeamName, HostError> {
        if let Some(team) = &self.team {
            if self.store.team(team).await?.is_some() {
                return Ok(team.clone());
            }
            let error = brigade_core::store::StoreError::NoTeam { team: team.clone() };
            let error = HostError::from(error);
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
                let error = HostError::failed(Trouble::NoTeams);
                Err(error.hint(
                    "`brigade team create NAME` makes one, `brigade new` and `brigade up` one from a file",
                ))
            }
            [team] => Ok(team.clone()),
            // In a project's folder its team is meant.
            teams => match team_file::team_of(&self.cwd).filter(|team| teams.contains(team)) {
                Some(team) => Ok(team),
                None => {
                    let error = HostError::failed(Trouble::SeveralTeams(self.teams().await?));
                    Err(error
                        .hint(format!("choose with `--team TEAM`, or set {}", variables::TEAM)))
                }
            },
        }
    }

    /// The seat of whoever runs the command.
    pub async fn seat(&self) -> Result<Seat, HostError> {
        let team = self.team().await?;
        let name = self.identity(&team).await?;
        Ok(self.seat_of(team, name))
    }

    /// A seat for looking: who looks does not matter.
    pub async fn reader(&self) -> Result<Seat, HostError> {
        let name = self.me.clone().unwrap_or_else(MemberName::lead);
        Ok(self.seat_of(self.team().await?, name))
    }

    /// The seat of whoever was named, or else of `name`, who does something about itself.
    pub async fn seat_or(&self, name: &MemberName) -> Result<Seat, HostError> {
        let name = self.me.clone().unwrap_or_else(|| name.clone());
        Ok(self.seat_of(self.team().await?, name))
    }

    pub fn seat_of(&self, team: TeamName, name: MemberName) -> Seat {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        // The command line is a person's, unless whoever started an agent says that this is the agent.
        let hand = self.answers.map_or(Hand::Person, |answers| Hand::Agent { answers });
        // In an engine the server says who wrote something, and the keys of a host are not known to others.
        let keys = self.home.engine().is_none().then(|| self.registry().keys(&team));
        let mut seat = Seat::new(store, team, name).with_clock(clock).with_hand(hand);
        seat.lead_key.clone_from(&self.lead_key);
        seat.signer = keys.map(|keys| Arc::new(keys) as _);
        seat
    }

    /// The hand of whoever is behind the tools, which is always an agent.
    pub fn agent(&self) -> Hand {
        Hand::Agent { answers: self.answers.unwrap_or(true) }
    }

    /// Who runs the command. In a team that brigade created nobody else holds the lead's seat, so
    /// whoever does not say otherwise is the lead. In a team of Claude Code the lead is Claude, and
    /// nobody speaks in its name by forgetting an option.
    pub async fn identity(&self, team: &TeamName) -> Result<MemberName, HostError> {
        if let Some(me) = &self.me {
            return Ok(me.clone());
        }
        if self.store.is_ours(team).await? {
            return Ok(MemberName::lead());
        }
        let error = HostError::failed(Trouble::WhoAreYou { team: team.to_string() });
        let config = self.store.team(team).await?;
        let roster = config.as_ref().and_then(|config| Team::read(&config.bytes).ok());
        let members: Vec<String> = roster
            .iter()
            .flat_map(Team::members)
            .filter_map(|member| Some(member.name()?.into_owned()))
            .collect();
        let error = error.hint(format!("say `--as NAME`, or set {}", variables::AS));
        Err(if members.is_empty() { error } else { error.hint(members_are(&members)) })
    }

    async fn teams(&self) -> Result<Vec<String>, HostError> {
        let teams = self.store.teams().await?;
        Ok(teams.iter().map(ToString::to_string).collect())
    }
}

/// What runs on this host for teams that are stored there, whether or not the store can be reached.
pub fn host_at(
    home: &Location,
    claude_dir: &Path,
    state_dir: &Path,
    programs: Arc<Programs>,
    name: String,
) -> Result<Host, HostError> {
    let absolute = std::path::absolute(claude_dir)
        .map_err(|source| failed("find the current folder", source))?;
    let mut options = vec!["--claude-dir".into(), absolute.into_os_string()];
    options.extend(home.options());
    let self_command = SelfCommand { program: programs.itself()?.into_os_string(), options };
    Ok(Host {
        registry: registry_at(home, claude_dir, state_dir),
        self_command,
        programs,
        name,
        worktrees: state_dir.join("worktrees"),
        is_shared: home.engine().is_some(),
        may_lead: home.engine().is_none_or(NatsServers::may_lead),
    })
}

fn registry_at(home: &Location, claude_dir: &Path, state_dir: &Path) -> Registry {
    Registry::new(state_dir.join("host").join(home.key(claude_dir)))
}

impl Context {
    /// The key ring of the host, and the programs it knows.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The name of this host.
    pub fn host_name(&self) -> &str {
        &self.host_name
    }
}

//! The store, the team and the member that a command works with.

mod default_team;
mod ended_session;

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brigade_agents::driver;
use brigade_core::authority::Denied;
use brigade_core::clock::{Clock, SystemClock};
use brigade_core::event::RefusedEvent;
use brigade_core::seat::{Seat, SeatUser};
use brigade_core::signature::LeadKey;
use brigade_core::store::event_log::{EventStream, RecordLookupHandle};
use brigade_core::store::{IncompleteWrite, Store};
use brigade_core::text;
use brigade_files::{Durability, FileStore, FileStoreOptions};
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use jiff::Timestamp;

use crate::claude_session::ClaudeSession;
use crate::error::{HostError, Trouble, failed, members_hint};
use crate::host::Host;
use crate::installed::Programs;
use crate::keys::KeyRing;
use crate::location::{Location, NatsServers, ServerWait};
use crate::origin::{self, FolderTeam};
use crate::progress::ReportProgress;
use crate::registry::Registry;
use crate::start::SelfCommand;
use crate::team_choice::{AnnounceTeam, TeamChoice, TeamSource};
use crate::{suggest, variables};

pub use self::ended_session::EndedSession;

/// The settings that a front end reads from its arguments and its environment.
#[derive(Clone, Debug)]
pub struct ContextSettings {
    /// Where the teams are stored.
    pub location: Location,
    /// Claude Code's folder.
    pub claude_dir: PathBuf,
    /// Brigade's own folder.
    pub state_dir: PathBuf,
    /// The folder of the person's configuration. `None` if there is no home directory.
    pub config_dir: Option<PathBuf>,
    /// The durability of acknowledged messages.
    pub durability: Durability,
    /// How long to wait for a file lock.
    pub lock_wait: Duration,
    /// Whether reading leaves the files of teams as they are.
    pub is_read_only: bool,
    /// Whether the process keeps running and reconnects while the NATS server cannot be reached.
    pub is_lasting: bool,
    /// How long to wait for NATS servers that do not answer.
    pub wait: ServerWait,
    /// The team named by an option, a variable or a team file.
    pub team: Option<TeamName>,
    /// The member that the caller claims to be.
    pub me: Option<MemberName>,
    /// The key with which the member verifies messages from its lead.
    pub lead_key: Option<LeadKey>,
    /// Whether the agent that runs the command may answer requests. `None` if a person runs the command.
    pub answers: Option<bool>,
    /// The search path and the variables that locate programs.
    pub programs: Arc<Programs>,
    /// The name of this host.
    pub host_name: String,
    /// The current folder.
    pub cwd: PathBuf,
    /// The id of the Claude Code session in which the caller runs, if any.
    pub claude_session: Option<String>,
    /// The task list that Claude Code named for this process, if any.
    pub task_list: Option<TeamName>,
    /// Receives the team that was chosen among several.
    pub announce: AnnounceTeam,
}

/// The store, the team and the member that a front end acts for.
#[derive(Clone, Debug)]
pub struct Context {
    /// The store that contains the teams.
    pub store: Arc<dyn Store>,
    /// The store in Claude Code's folder on this host, even if `store` is on NATS servers.
    pub files: Arc<FileStore>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The current folder.
    pub cwd: PathBuf,
    team: Option<TeamName>,
    me: Option<MemberName>,
    lead_key: Option<LeadKey>,
    claude_dir: PathBuf,
    state_dir: PathBuf,
    config_dir: Option<PathBuf>,
    home: Location,
    answers: Option<bool>,
    programs: Arc<Programs>,
    host_name: String,
    claude_session: Option<String>,
    announce: AnnounceTeam,
    /// The name of the token with which the person uses the web server.
    web_token: Option<String>,
}

impl Context {
    /// Opens the store that these settings name.
    pub async fn open(
        settings: ContextSettings,
        report: ReportProgress<'_>,
    ) -> Result<Self, HostError> {
        let options =
            FileStoreOptions::new(settings.claude_dir.clone(), settings.state_dir.clone())
                .with_durability(settings.durability)
                .with_lock_wait(settings.lock_wait)
                .with_read_only(settings.is_read_only)
                .with_task_list(settings.task_list);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let files = Arc::new(FileStore::new(options, Arc::clone(&clock)));
        let store: Arc<dyn Store> = match &settings.location {
            Location::Files => Arc::clone(&files) as _,
            Location::Nats(servers) => {
                servers.open(settings.is_lasting, settings.wait, report).await?
            }
        };
        // NATS credentials name a team and often a single member. Use both as defaults.
        let seat = settings.location.nats().and_then(NatsServers::seat);
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
            config_dir: settings.config_dir,
            home: settings.location,
            answers: settings.answers,
            programs: settings.programs,
            host_name: settings.host_name,
            claude_session: settings.claude_session,
            announce: settings.announce,
            web_token: None,
        })
    }

    /// Returns this host, for starting and stopping members.
    pub fn host(&self) -> Result<Host, HostError> {
        self.host_at(&self.home)
    }

    /// Returns this host for teams in Claude Code's files, whatever store this context uses.
    pub fn files_host(&self) -> Result<Host, HostError> {
        self.host_at(&Location::Files)
    }

    /// Returns this host for teams at another location.
    pub(crate) fn host_at(&self, location: &Location) -> Result<Host, HostError> {
        let programs = Arc::clone(&self.programs);
        host_at(location, &self.claude_dir, &self.state_dir, programs, self.host_name.clone())
    }

    pub(crate) fn registry(&self) -> Registry {
        registry_at(&self.home, &self.claude_dir, &self.state_dir)
    }

    /// Returns the keys with which members verify their lead. The team must be stored in files on this host.
    pub fn file_store_keys(&self, team: &TeamName) -> KeyRing {
        let key = Location::Files.key(&self.claude_dir);
        Registry::new(self.state_dir.join("host").join(key)).keys(team)
    }

    /// Returns where the teams are stored.
    pub fn location(&self) -> &Location {
        &self.home
    }

    /// Returns Claude Code's folder.
    pub fn claude_dir(&self) -> &Path {
        &self.claude_dir
    }

    /// Returns Claude Code's folder and brigade's own folder.
    pub fn folders(&self) -> (&Path, &Path) {
        (&self.claude_dir, &self.state_dir)
    }

    /// Fails if the caller claims to be a member other than the lead. With a NATS store this check is skipped,
    /// because the server checks the caller's credentials.
    pub fn refuse_to_lead(&self, team: &TeamName, what: &'static str) -> Result<(), HostError> {
        match &self.me {
            Some(me) if *me != MemberName::lead() && self.home.nats().is_none() => {
                let (who, team) = (me.clone(), team.to_string());
                Err(Denied::LeadOnly { what, who, team }.into())
            }
            _ => Ok(()),
        }
    }

    /// Fails if the caller may not start a member with this name and agent. Only a person may start a member whose
    /// agent is a command.
    pub(crate) fn check_may_start(
        &self,
        seat: &Seat,
        name: &MemberName,
        agent: &str,
    ) -> Result<(), HostError> {
        // With a member's NATS credentials, a person may start that member.
        let is_own = |me: &MemberName| self.home.nats().is_some() && me == name;
        if let Some(me) = &self.me
            && *me != MemberName::lead()
            && !is_own(me)
        {
            let (who, team) = (me.clone(), seat.team.to_string());
            return Err(Denied::LeadOnly { what: "start a member", who, team }.into());
        }
        match seat.user {
            SeatUser::Agent { .. } if driver::is_command(agent) => {
                let team = seat.team.to_string();
                Err(Denied::CommandByAgent { team }.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the team that an option, a variable or a team file names, if any.
    pub fn named_team(&self) -> Option<&TeamName> {
        self.team.as_ref()
    }

    /// Returns the member that the caller claims to be, if the caller named one.
    pub fn named_member(&self) -> Option<&MemberName> {
        self.me.as_ref()
    }

    /// Replaces the named team with `team`, unless `team` is `None`.
    pub fn with_team(self, team: Option<TeamName>) -> Self {
        let team = team.or(self.team);
        Self { team, ..self }
    }

    /// Returns the context of a request to the web server with this token. It announces nothing.
    pub fn for_web(&self, token: &str) -> Self {
        let web_token = Some(token.to_owned());
        Self { web_token, announce: |_| {}, ..self.clone() }
    }

    /// Returns the team to work with: the named team, the team of the `brigade.toml` for the current folder or, if
    /// there is no such file, the team of the Claude Code session in which the caller runs, the person's default team, or the
    /// only team in the store. Fails if the team does not exist. Announces a team that was chosen among several.
    pub async fn team(&self) -> Result<TeamName, HostError> {
        if let Some(team) = &self.team {
            self.check_exists(team).await?;
            return Ok(team.clone());
        }
        let teams = self.teams().await?;
        let choice = self.choose_among(&teams).await?;
        if teams.len() > 1 {
            (self.announce)(&choice);
        }
        Ok(choice.team)
    }

    /// Returns the team to work with like [`team`](Self::team), and why. Announces nothing.
    pub async fn team_choice(&self) -> Result<TeamChoice, HostError> {
        if let Some(team) = &self.team {
            self.check_exists(team).await?;
            return Ok(TeamChoice::new(team.clone(), TeamSource::Named));
        }
        self.choose_among(&self.teams().await?).await
    }

    /// Chooses one of the teams in the store, if the caller named none.
    async fn choose_among(&self, teams: &[TeamName]) -> Result<TeamChoice, HostError> {
        match (origin::folder_team(&self.cwd)?, teams) {
            (Some(folder), teams) if teams.contains(&folder.team) => {
                let team = self.check_folder_team(folder).await?;
                Ok(TeamChoice::new(team, TeamSource::Folder))
            }
            (Some(folder), []) => Err(not_started(folder)),
            (Some(folder), teams) => Err(not_started(folder).hint(format!(
                "there are other teams ({}); {}",
                team_names(teams).join(", "),
                origin::choose_hint()
            ))),
            (None, []) => Err(self.no_team_error().await?),
            (None, teams) => match self.session_team(teams).await? {
                Some(team) => Ok(TeamChoice::new(team, TeamSource::Session)),
                None => self.default_among(teams),
            },
        }
    }

    /// Fails if the store does not have this team.
    pub async fn check_exists(&self, team: &TeamName) -> Result<(), HostError> {
        if self.team_exists(team).await? {
            return Ok(());
        }
        if let Ok(Some(folder)) = origin::folder_team(&self.cwd)
            && folder.team == *team
        {
            return Err(not_started(folder));
        }
        let error = brigade_core::store::StoreError::NoTeam { team: team.clone() };
        let error = HostError::from(error);
        if ClaudeSession::names_team(team) {
            return Err(error.hint(format!(
                "if Claude Code's session has ended, `brigade resume {team}` shows how to continue it"
            )));
        }
        Err(match team_names(&self.teams().await?).as_slice() {
            [] => error.hint(format!("`brigade team create {team}` creates it")),
            teams => error
                .hint(format!(
                    "{}teams: {}",
                    suggest::question(team.as_str(), teams),
                    teams.join(", ")
                ))
                .hint(format!("`brigade team create {team}` creates a new one")),
        })
    }

    /// Returns which of these teams the Claude Code session leads in which the caller runs.
    async fn session_team(&self, teams: &[TeamName]) -> Result<Option<TeamName>, HostError> {
        let Some(id) = &self.claude_session else { return Ok(None) };
        let Some(session) = ClaudeSession::of_id(&self.claude_dir, id) else {
            // Older versions of Claude Code do not describe their sessions.
            return Ok(ClaudeSession::usual_team(id).filter(|team| teams.contains(team)));
        };
        for team in teams {
            if let Some(config) = self.store.team(team).await?
                && Team::read(&config.bytes).is_ok_and(|roster| session.leads(&roster))
            {
                return Ok(Some(team.clone()));
            }
        }
        Ok(None)
    }

    /// Returns the team of a folder. Fails if the team of this name belongs to another team file.
    pub(crate) async fn check_folder_team(
        &self,
        folder: FolderTeam,
    ) -> Result<TeamName, HostError> {
        let FolderTeam { file, team } = folder;
        let lead = self.seat_of(team.clone(), MemberName::lead());
        let is_shared = self.home.nats().is_some();
        let owner = origin::other_owner(&self.registry(), &lead, is_shared, &file).await?;
        let Some(owner) = owner else { return Ok(team) };
        let name = team.to_string();
        let error = HostError::failed(Trouble::FolderOfOther { team: name, file, owner });
        Err(error
            .hint(format!("`--team {team}` chooses that team"))
            .hint("to start a team of your own here, change `team` in the file to another name"))
    }

    /// Returns the seat of the member that runs the command.
    pub async fn seat(&self) -> Result<Seat, HostError> {
        let team = self.team().await?;
        let name = self.identity(&team).await?;
        Ok(self.seat_of(team, name))
    }

    /// Returns the seat with which the caller answers requests and stops members: the named member, or else the lead.
    ///
    /// In a team that Claude Code leads, a person answers beside Claude Code, and the first answer counts. An agent has to
    /// name itself there.
    pub async fn answering_seat(&self) -> Result<Seat, HostError> {
        let team = self.team().await?;
        let name = match (&self.me, self.answers) {
            (None, None) => MemberName::lead(),
            _ => self.identity(&team).await?,
        };
        Ok(self.seat_of(team, name))
    }

    /// Returns a seat for reading the team: the seat of the member that the caller claims to be, or else the
    /// lead's seat.
    pub async fn reader(&self) -> Result<Seat, HostError> {
        let name = self.me.clone().map_or_else(|| self.default_reader(), Ok)?;
        Ok(self.seat_of(self.team().await?, name))
    }

    /// Returns the seat of the member that the caller claims to be. If the caller named no member, returns the
    /// seat of `name`.
    pub async fn seat_or(&self, name: &MemberName) -> Result<Seat, HostError> {
        let name = self.me.clone().unwrap_or_else(|| name.clone());
        Ok(self.seat_of(self.team().await?, name))
    }

    /// Returns the seat of a member of a team.
    pub fn seat_of(&self, team: TeamName, name: MemberName) -> Seat {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        // A person runs the command line, unless the environment says that an agent does.
        let person = || match &self.web_token {
            Some(token) => SeatUser::WebPerson { token: token.clone() },
            None => SeatUser::Person,
        };
        let hand = self.answers.map_or_else(person, |answers| SeatUser::Agent { answers });
        // Messages on a NATS server need no signature: the server verifies the sender, and other hosts do not have
        // this host's keys.
        let keys = self.home.nats().is_none().then(|| self.registry().keys(&team));
        let mut seat = Seat::new(store, team, name).with_clock(clock).with_user(hand);
        seat.lead_key.clone_from(&self.lead_key);
        seat.signer = keys.map(|keys| Arc::new(keys) as _);
        seat
    }

    /// Returns the seat with the keys of the person on this host. Members of a team that Claude Code leads accept messages
    /// with these keys beside those of Claude Code. Fails if an agent uses the seat, or if Claude Code runs the command: its
    /// model could have chosen the command.
    pub(crate) fn person_seat(&self, seat: &Seat) -> Result<Seat, HostError> {
        if self.claude_session.is_some() || !seat.user.is_person() {
            let error = HostError::failed(Trouble::NotAPerson { team: seat.team.to_string() });
            return Err(error.hint("act in Claude Code, or in a terminal of your own"));
        }
        let registry = self.registry();
        let keys = registry.keys(&seat.team).or(registry.claude_led().keys(&seat.team));
        Ok(seat.clone().with_signer(Arc::new(keys)))
    }

    /// Returns whether a person runs the command, as far as the environment tells: neither the agent of a member nor Claude
    /// Code does.
    pub(crate) fn is_run_by_person(&self) -> bool {
        self.answers.is_none() && self.claude_session.is_none()
    }

    /// Fails if an agent runs the command, as far as the environment tells: an agent of a member, Claude Code, or a caller
    /// that names itself as a teammate.
    pub fn require_person(&self, what: &'static str) -> Result<(), HostError> {
        let is_teammate = self.me.as_ref().is_some_and(|me| *me != MemberName::lead());
        if self.is_run_by_person() && !is_teammate {
            return Ok(());
        }
        let error = HostError::failed(Trouble::PersonOnly { what });
        Err(error.hint("run the command in a terminal that no agent uses"))
    }

    /// Returns the folder of the person's configuration.
    pub(crate) fn config_dir(&self) -> Result<&Path, HostError> {
        self.config_dir.as_deref().ok_or_else(|| HostError::failed(Trouble::NoConfigDir))
    }

    /// Returns the [`SeatUser`] for an agent that calls the MCP tools.
    pub fn agent(&self) -> SeatUser {
        SeatUser::Agent { answers: self.answers.unwrap_or(true) }
    }

    /// Returns the member that runs the command.
    ///
    /// In a team that brigade created, no other program acts as the lead, so the caller is the lead by default.
    /// In a team that Claude Code leads, the caller has to name itself, so that a caller who forgets the option
    /// does not act as Claude Code.
    pub async fn identity(&self, team: &TeamName) -> Result<MemberName, HostError> {
        if let Some(me) = &self.me {
            return Ok(me.clone());
        }
        self.check_default_member()?;
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
        let lead = roster.as_ref().and_then(Team::lead).and_then(|lead| lead.name());
        let lead =
            lead.map(|lead| format!("; `--as {lead}` acts as Claude Code")).unwrap_or_default();
        let error = error.hint(format!("add `--as NAME`, or set {}{lead}", variables::AS));
        Err(if members.is_empty() { error } else { error.hint(members_hint(&members)) })
    }

    /// Fails if the NATS credentials are for several members and the lead is none of them. Then the caller has to name
    /// itself.
    fn check_default_member(&self) -> Result<(), HostError> {
        let members = self.credential_members()?;
        let Some(hint) = which_member_hint(&members) else { return Ok(()) };
        let members: Vec<String> = members.iter().map(ToString::to_string).collect();
        Err(HostError::failed(Trouble::WhichMember { members }).hint(hint))
    }

    /// Returns the members that the NATS credentials are for; empty if there is no such limit.
    fn credential_members(&self) -> Result<Vec<MemberName>, HostError> {
        self.home.nats().map_or_else(|| Ok(Vec::new()), NatsServers::speaks_for)
    }

    /// Returns the member as which to read the team if the caller named none: the lead, or a member of the credentials
    /// if they do not include the lead.
    fn default_reader(&self) -> Result<MemberName, HostError> {
        let members = self.credential_members()?;
        let lead = MemberName::lead();
        Ok(match members.first() {
            Some(first) if !members.contains(&lead) => first.clone(),
            _ => lead,
        })
    }

    /// Returns the teams in the store.
    pub async fn teams(&self) -> Result<Vec<TeamName>, HostError> {
        Ok(self.store.teams().await?)
    }

    /// Returns whether the store has this team.
    pub async fn team_exists(&self, team: &TeamName) -> Result<bool, HostError> {
        Ok(self.store.team(team).await?.is_some())
    }

    /// Streams the past events of a team, then its new events as they happen. Also works for a deleted team.
    pub async fn event_stream(
        &self,
        team: &TeamName,
    ) -> Result<(EventStream, RecordLookupHandle), HostError> {
        Ok(self.store.event_stream(team).await?)
    }

    /// Like [`Context::event_stream`], but may leave out old events; see [`EventLog::recent_event_stream`].
    ///
    /// [`EventLog::recent_event_stream`]: brigade_core::store::EventLog::recent_event_stream
    pub async fn recent_event_stream(
        &self,
        team: &TeamName,
        bytes: u64,
        work: bool,
    ) -> Result<(EventStream, Option<Timestamp>), HostError> {
        Ok(self.store.recent_event_stream(team, bytes, work).await?)
    }

    /// Returns notes about the events that were ignored while reading, because their authors may not record them.
    pub fn refused_event_notes(&self, team: &TeamName) -> Vec<String> {
        let note = |(refused, count): (RefusedEvent, usize)| {
            format!("ignored {}: {refused}", text::count(count, "event"))
        };
        self.store.refused_events(team).into_iter().map(note).collect()
    }

    /// Returns whether the NATS servers demand credentials, so that members have credentials of their own.
    pub fn has_credentials(&self) -> bool {
        self.home.nats().is_some_and(|servers| servers.creds.is_some())
    }

    /// Returns what the person should know about the changes since the last call: later steps that failed, and tasks that
    /// were moved away.
    pub fn change_notes(&self) -> Vec<String> {
        let note = |write: IncompleteWrite| {
            let mut note = write.to_string();
            let mut cause = write.source();
            while let Some(error) = cause {
                note = format!("{note}: {error}");
                cause = error.source();
            }
            note
        };
        let moved = self.store.moved_tasks().into_iter().map(|moved| {
            format!(
                "{} already had {}; moved to {}",
                moved.from.display(),
                text::count(moved.tasks, "task"),
                moved.to.display()
            )
        });
        self.store.incomplete_writes().into_iter().map(note).chain(moved).collect()
    }

    /// Returns the search path and the variables that locate programs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Returns the name of this host.
    pub fn host_name(&self) -> &str {
        &self.host_name
    }
}

/// Returns the error for a command whose team has a file but does not exist.
fn not_started(folder: FolderTeam) -> HostError {
    let FolderTeam { file, team } = folder;
    let error = HostError::failed(Trouble::FolderNotStarted { team: team.to_string(), file });
    error.hint("`brigade up` starts it")
}

/// Returns the error for a command that could mean several teams.
pub(crate) fn several_teams(names: Vec<String>) -> HostError {
    let error = HostError::usage(Trouble::SeveralTeams(names));
    error.hint(format!(
        "choose a team with `--team TEAM` or `brigade use TEAM`, or set {}",
        variables::TEAM
    ))
}

/// Returns how to choose a member if credentials are for these members: `None` if there is no choice, or if the lead is one of
/// them and therefore the default.
pub fn which_member_hint(members: &[MemberName]) -> Option<String> {
    if members.len() < 2 || members.contains(&MemberName::lead()) {
        return None;
    }
    let members: Vec<&str> = members.iter().map(MemberName::as_str).collect();
    Some(format!("add `--as {}`, or set {}", members.join("` or `--as "), variables::AS))
}

fn team_names(teams: &[TeamName]) -> Vec<String> {
    teams.iter().map(ToString::to_string).collect()
}

/// Returns this host for teams stored at `home`. Does not connect to the store.
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
        is_shared: home.nats().is_some(),
        may_lead: home.nats().is_none_or(NatsServers::may_lead),
        credentials: home.nats().and_then(|nats| nats.creds.clone()),
        is_claude_led: false,
        claude_dir: claude_dir.to_owned(),
    })
}

fn registry_at(home: &Location, claude_dir: &Path, state_dir: &Path) -> Registry {
    Registry::new(state_dir.join("host").join(home.key(claude_dir)))
}

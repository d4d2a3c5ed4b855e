//! The supervisor of a host. It starts members and links that should be running but are not, and acts as the lead of
//! teams that brigade created.
//!
//! All of the supervisor's state is on disk. When the supervisor dies, members keep running, and the next
//! supervisor finds them by the locks they hold.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use brigade_core::approvals::Approval;
use brigade_core::board;
use brigade_core::event::Event;
use brigade_core::mail::{self, MessageText};
use brigade_core::pulse::Process;
use brigade_core::roster::{self, Activity, MemberPlan, RosterError};
use brigade_core::seat::Seat;
use brigade_core::signature::SigningKey;
use brigade_wire::name::{MemberName, NameError, TeamName};
use rustix::process::{Signal, setsid};
use tokio::process::Child;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::context::Context;
use crate::error::{HostError, failed};
use crate::history_cleanup::HistoryCleanup;
use crate::links::SupervisedLinks;
use crate::policy_answers::{RequestSchedule, Requests};
use crate::process::send_signal;
use crate::progress::Log;
use crate::registry::Registry;
use crate::registry_watch::RegistryWatch;
use crate::restarts::{RestartStep, Restarts};
use crate::spec::{MemberPlace, MemberSpec};
use crate::{
    Host, down, policy_answers, process, process_lock, roster_entry, shutdown, signals, start,
    state, up,
};

/// How often to check all teams while something is expected to change, or while changes are not reported.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often to check all teams while all members run, and every change is reported.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);
/// How often to check a member completely while its process runs and its files do not change.
const MEMBER_INTERVAL: Duration = Duration::from_secs(60);
/// After this time, a further change of a folder has another time.
const FOLDER_SETTLES: Duration = Duration::from_millis(100);
/// How long to wait until a command has removed the folder of a team that has ended, and how often to look.
const REMOVAL_LIMIT: Duration = Duration::from_secs(2);
const REMOVAL_POLL: Duration = Duration::from_millis(10);
/// How long the supervisor keeps running when no team is up and no link should run, and none ever was.
const LINGER: Duration = Duration::from_secs(3);

/// A team that this process supervises.
struct SupervisedTeam {
    /// The lead's seat.
    seat: Seat,
    members: HashMap<MemberName, SupervisedMember>,
    /// The members that should run, and when the team's folder had last changed when they were listed.
    listed: Option<(SystemTime, Vec<MemberName>)>,
    /// Whether a permission request has arrived and was not checked against the rules yet.
    asked: Arc<AtomicBool>,
    request_schedule: RequestSchedule,
    /// Whether the last check of the team failed.
    has_failed: bool,
    /// The background task that wakes the supervisor when the team has a new event.
    watching: JoinHandle<()>,
}

impl Drop for SupervisedTeam {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl SupervisedTeam {
    /// Returns whether the system reports the next change of the team.
    fn is_steady(&self) -> bool {
        !self.has_failed
            && self.listed.is_some()
            && !self.asked.load(Ordering::Relaxed)
            && self.members.values().all(SupervisedMember::is_steady)
    }

    /// Returns the members that should run on this host. They are listed again when the team's folder or a member has changed.
    fn list_members(&mut self, registry: &Registry) -> Result<Vec<MemberName>, HostError> {
        let changed = folder_changed(&registry.team_dir(&self.seat.team));
        if let (Some(changed), Some((listed, names))) = (changed, &self.listed)
            && changed == *listed
        {
            return Ok(names.clone());
        }
        let names = registry.members(&self.seat.team)?;
        self.members.retain(|name, _| names.contains(name));
        self.listed = changed.map(|changed| (changed, names.clone()));
        Ok(names)
    }
}

/// A member that this process supervises.
#[derive(Default)]
struct SupervisedMember {
    restarts: Restarts,
    child: Option<Child>,
    /// The last error of this member, which is logged and recorded once; `None` before the first check.
    last_error: Option<String>,
    /// The facts at the last complete check, if the member's process ran.
    running: Option<RunningMember>,
}

/// A member whose process runs.
struct RunningMember {
    process: Process,
    /// When the files in the member's folder last changed.
    folder_changed: Option<SystemTime>,
    /// When the member was checked completely.
    checked: Duration,
}

impl SupervisedMember {
    /// Returns whether the system reports the next change: the process runs and is a child of this process.
    fn is_steady(&self) -> bool {
        let has_settled = |running: &RunningMember| running.folder_changed.is_some();
        self.child.is_some() && self.running.as_ref().is_some_and(has_settled)
    }

    /// Returns whether nothing has happened since the last complete check: the process runs, and no command has changed the
    /// member's files. This check costs little, so that a large idle team costs little.
    fn is_unchanged(
        &mut self,
        registry: &Registry,
        team: &TeamName,
        name: &MemberName,
        now: Duration,
    ) -> bool {
        let Some(running) = &self.running else { return false };
        let has_exited = match &mut self.child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => !process::is_running(&running.process),
        };
        !has_exited
            && now.saturating_sub(running.checked) < MEMBER_INTERVAL
            && running.folder_changed.is_some()
            && folder_changed(&registry.member_dir(team, name)) == running.folder_changed
    }
}

/// Returns when the list of files in a folder last changed. `None` just after a change: the next one may have the same time.
fn folder_changed(folder: &Path) -> Option<SystemTime> {
    let folder = std::fs::metadata(folder);
    let changed = folder.and_then(|folder| folder.modified()).ok()?;
    changed.elapsed().is_ok_and(|age| age > FOLDER_SETTLES).then_some(changed)
}

struct Supervisor<'c> {
    context: &'c Context,
    log: Log<'c>,
    host: Host,
    teams: HashMap<TeamName, SupervisedTeam>,
    links: SupervisedLinks,
    began: Instant,
    woken: Arc<Notify>,
    registry_watch: RegistryWatch,
    history_cleanup: HistoryCleanup,
}

/// Supervises until no team is up and no link should run, or until a signal asks this process to end. Returns immediately if another
/// supervisor is running. `config` is the path of the user's configuration.
pub async fn run(
    context: &Context,
    config: Option<PathBuf>,
    log: Log<'_>,
) -> Result<(), HostError> {
    let host = context.host()?;
    let lock = process_lock::take(&host.registry.supervisor()?).await;
    let Some(_lock) = lock.map_err(|source| failed("acquire the supervisor's lock", source))?
    else {
        return Ok(());
    };
    // Ignore an error: it only means that this process is already a session leader.
    let _is_leader = setsid();
    let woken = Arc::new(Notify::new());
    let (teams, links) = (HashMap::new(), SupervisedLinks::default());
    let registry_watch = RegistryWatch::start(Arc::clone(&woken));
    let began = Instant::now();
    let history_cleanup = HistoryCleanup::new(config);
    let mut supervisor = Supervisor {
        context,
        log,
        host,
        teams,
        links,
        began,
        woken,
        registry_watch,
        history_cleanup,
    };
    supervisor.run_loop().await?;
    let registry = &supervisor.host.registry;
    wait_for_removals(registry).await;
    registry.remove_if_empty()
}

/// Waits until the folders of the ended teams are removed, because the folder of the registry can only be removed after them. A
/// command that ends a team first removes the team from the registry, and the supervisor notices that at once.
async fn wait_for_removals(registry: &Registry) {
    let end = Instant::now() + REMOVAL_LIMIT;
    let is_removing = || registry.has_folders() && registry.teams().is_ok_and(|up| up.is_empty());
    while is_removing() && Instant::now() < end {
        tokio::time::sleep(REMOVAL_POLL).await;
    }
}

impl Supervisor<'_> {
    async fn run_loop(&mut self) -> Result<(), HostError> {
        let mut signal = std::pin::pin!(signals::stop_signal());
        let mut child_ended = unix::signal(SignalKind::child())
            .map_err(|source| failed("listen for signals", source))?;
        let mut last_up = Instant::now();
        let mut was_up = false;
        loop {
            let is_watched = self.registry_watch.watch(&self.host.registry);
            let (files, clock) = (&self.context.files, &self.context.clock);
            self.history_cleanup.check(&self.host.registry, files, clock, self.log).await;
            // While the NATS server is unreachable, a check may take minutes. A signal interrupts the check.
            let is_up = tokio::select! {
                signal = &mut signal => return signal.map(drop),
                is_up = self.check_teams() => is_up?,
            };
            if is_up {
                last_up = Instant::now();
                was_up = true;
            } else if was_up || last_up.elapsed() > LINGER {
                return Ok(());
            }
            let is_steady = is_watched && is_up && self.is_steady();
            let interval = if is_steady { IDLE_INTERVAL } else { POLL_INTERVAL };
            tokio::select! {
                signal = &mut signal => return signal.map(drop),
                () = tokio::time::sleep(interval) => {}
                () = self.woken.notified() => {}
                _ = child_ended.recv() => {}
            }
        }
    }

    /// Returns whether the system reports every change to which the supervisor has to react.
    fn is_steady(&self) -> bool {
        !self.links.has_any() && self.teams.values().all(SupervisedTeam::is_steady)
    }

    /// Checks every link and every team that is up. Returns whether any team is up or any link should run.
    async fn check_teams(&mut self) -> Result<bool, HostError> {
        let is_linked = self.links.check(self.context, self.log, self.began.elapsed())?;
        let up = self.host.registry.teams()?;
        self.teams.retain(|team, _| up.contains(team));
        for team in &up {
            let checked = self.check_team(team).await;
            if let Some(supervised) = self.teams.get_mut(team) {
                supervised.has_failed = checked.is_err();
            }
            if let Err(error) = checked {
                (self.log)(&format!("team {team}: {error}"));
            }
        }
        Ok(is_linked || !up.is_empty())
    }

    async fn check_team(&mut self, team: &TeamName) -> Result<(), HostError> {
        // The team was deleted from the store. `brigade resume` can restore it.
        if !self.context.team_exists(team).await? {
            self.teams.remove(team);
            // A team without members on this host has nothing to resume here.
            if self.host.registry.members(team)?.is_empty() {
                let lead = self.context.seat_of(team.clone(), MemberName::lead());
                down::complete_deletion(&self.host, &lead).await?;
                self.host.registry.remove_team(team)?;
            }
            return Ok(());
        }
        if !self.teams.contains_key(team) {
            let supervised = self.supervise_team(team).await?;
            self.teams.insert(team.clone(), supervised);
        }
        let Some(supervised) = self.teams.get_mut(team) else { return Ok(()) };
        let now = self.began.elapsed();
        let asked = supervised.asked.swap(false, Ordering::Relaxed);
        if supervised.request_schedule.is_due(asked, now) {
            match policy_answers::answer_by_rule(
                self.context,
                &self.host,
                &supervised.seat,
                self.log,
            )
            .await
            {
                Ok(Requests::Wait) => supervised.request_schedule.renew(now),
                Ok(Requests::None) => {}
                Err(error) => {
                    supervised.asked.store(true, Ordering::Relaxed);
                    (self.log)(&format!("team {team}: {error}"));
                }
            }
        }
        for name in supervised.list_members(&self.host.registry)? {
            let member = supervised.members.entry(name.clone()).or_default();
            if member.is_unchanged(&self.host.registry, team, &name, now) {
                continue;
            }
            // The member may have been withdrawn.
            supervised.listed = None;
            let checked =
                check_member(&self.host, &supervised.seat, &name, member, now, self.log).await;
            let error = checked.err().map(|error| error.to_one_line()).unwrap_or_default();
            if member.last_error.as_deref() != Some(error.as_str()) {
                let why = (!error.is_empty()).then_some(error.as_str());
                if let Some(why) = why {
                    (self.log)(&format!("{name} of team {team}: {why}"));
                }
                // `brigade status` shows the reason. An error means that the member has been removed meanwhile.
                let _removed = self.host.registry.set_problem(team, &name, why);
            }
            member.last_error = Some(error);
        }
        Ok(())
    }

    async fn supervise_team(&self, team: &TeamName) -> Result<SupervisedTeam, HostError> {
        let seat = self.context.seat_of(team.clone(), MemberName::lead());
        let mut watch = seat.watch_without_work().await?;
        let woken = Arc::clone(&self.woken);
        // Requests may have arrived while no supervisor was running.
        let asked = Arc::new(AtomicBool::new(true));
        let (lead, has_asked) = (seat.name.clone(), Arc::clone(&asked));
        let watching = tokio::spawn(async move {
            while let Some(record) = watch.next_shared().await {
                let has_request = record.event.mailbox() == Some(lead.as_str())
                    && Approval::from_record(&record, 0).is_some();
                if has_request {
                    has_asked.store(true, Ordering::Relaxed);
                }
                // Other events, such as mail between members, need no reaction.
                if has_request
                    || matches!(record.event, Event::MemberLeft { .. } | Event::TeamDeleted {})
                {
                    woken.notify_one();
                }
            }
        });
        Ok(SupervisedTeam {
            seat,
            members: HashMap::new(),
            listed: None,
            asked,
            request_schedule: RequestSchedule::default(),
            has_failed: false,
            watching,
        })
    }
}

async fn check_member(
    host: &Host,
    seat: &Seat,
    name: &MemberName,
    member: &mut SupervisedMember,
    now: Duration,
    log: Log<'_>,
) -> Result<(), HostError> {
    let (registry, team) = (&host.registry, &seat.team);
    member.running = None;
    let folder_changed = folder_changed(&registry.member_dir(team, name));
    let Some(spec) = registry.member(team, name)? else { return Ok(()) };
    // If shortening the log fails, the next check tries again.
    let _shortened = start::shorten(&registry.log(team, name));
    let process = host.member_process(team, name)?;
    if let Some(child) = &mut member.child
        && let Ok(Some(_)) = child.try_wait()
    {
        member.child = None;
        member.restarts.ended(now);
    }
    if process.is_none() && !on_roster(host, seat, &spec).await? {
        // The member has left the team, so it must not be started again.
        return shutdown::remove_left(host, seat, &spec).await;
    }
    if registry.is_restart_requested(team, name) {
        if let Some(process) = &process {
            // The process may not react to SIGTERM.
            send_signal(process, Signal::KILL);
            return Ok(());
        }
        registry.clear_restart(team, name)?;
        member.restarts = Restarts::default();
    }
    let is_marked_failed = registry.failure(team, name).is_some();
    match is_marked_failed {
        // A command such as `brigade resume` cleared the failure, so that the member is started again.
        false if member.restarts.is_failed() => member.restarts = Restarts::default(),
        // An earlier supervisor marked the member as failed.
        true if member.restarts.is_new() && process.is_none() => {
            member.restarts = Restarts::failed();
        }
        true if process.is_some() => registry.set_failure(team, name, None)?,
        _ => {}
    }
    let step = member.restarts.step(process.is_some(), spec.restart, now);
    if step == RestartStep::Wait {
        let checked = now;
        member.running = process.map(|process| RunningMember { process, folder_changed, checked });
    }
    if step != RestartStep::Wait
        && let Some(other) = state::remote_host(host, seat, name).await?
    {
        // Two processes under one name would both answer the member's mail. Its tasks are those of the other process.
        log(&format!("{name} of team {team}: runs on {other}, so it is not started here"));
        member.restarts = Restarts::failed();
        return registry.set_failure(team, name, Some(&format!("it runs on {other}")));
    }
    match step {
        RestartStep::Wait => Ok(()),
        RestartStep::Start => {
            log(&format!("{name} of team {team}: started"));
            // An earlier process of the member may have been killed while it held a lock.
            shutdown::clear_leftovers(seat).await;
            let started = start::member(&host.self_command, registry, team, &spec);
            member.child = started.map_err(|source| failed("start it", source))?;
            Ok(())
        }
        RestartStep::Fail => {
            log(&format!("{name} of team {team}: marked failed"));
            let acting = host.acting_seat(seat, name).await?;
            // Release the tasks first: a member that is marked is not checked again.
            board::release(&acting, name).await?;
            registry.set_failure(team, name, Some(&failure_reason(host, seat, &spec)))?;
            roster::set_activity(&acting, name, Activity::Idle).await?;
            // The mark comes last: the next supervisor leaves a marked member alone.
            registry.set_failure(team, name, Some(&failure_reason(host, seat, &spec)))
        }
    }
}

/// Adds the member to the roster, and sends the member its prompt and its tasks, unless that was done before. Returns false if
/// the member has left the team.
async fn on_roster(host: &Host, seat: &Seat, spec: &MemberSpec) -> Result<bool, HostError> {
    let is_listed = seat.for_member(spec.name.clone()).role().await?.is_some();
    let acting = host.acting_seat(seat, &spec.name).await?;
    if host.registry.has_joined(&seat.team, &spec.name) {
        return Ok(is_listed);
    }
    if !is_listed {
        let plan = MemberPlan {
            agent_type: &spec.agent,
            model: spec.model.as_deref().unwrap_or(roster_entry::UNKNOWN_MODEL),
            prompt: spec.prompt.as_deref().unwrap_or_default(),
            cwd: &spec.cwd.to_string_lossy(),
            backend_type: roster_entry::backend_type(spec.place),
        };
        match roster::join(&acting, &spec.name, plan).await {
            Ok(_) | Err(RosterError::Name(NameError::Taken { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if acting.name == seat.name {
        // Create the member's key before sending the first message, so that this message is signed, too.
        let keys = host.registry.keys(&seat.team);
        let key = match spec.place {
            MemberPlace::Native => {
                keys.native_key(&spec.name, seat.clock.as_ref()).map(|(key, _)| key)
            }
            MemberPlace::Headless | MemberPlace::Tmux | MemberPlace::Pane => {
                keys.member_key(&spec.name)
            }
        };
        let key = key.map_err(HostError::failed)?;
        if let Some(prompt) = &spec.prompt {
            send_prompt(seat, &spec.name, prompt, &key).await?;
        }
    }
    // In a team that Claude Code leads, the prompt is not mailed: the member's first turn contains it as user text.
    if acting.name == seat.name
        && let Some(team) = host.registry.team(&seat.team)?
    {
        up::assign_tasks(seat, &team.tasks, |owner| *owner == spec.name).await?;
    }
    host.registry.set_joined(&seat.team, &spec.name)?;
    Ok(true)
}

/// Sends the member its prompt, unless that was done before. The id of the message includes the join time, so that a
/// later member of the same name gets its own prompt, and the member's key, so that no other member can use the id
/// first.
async fn send_prompt(
    seat: &Seat,
    name: &MemberName,
    prompt: &str,
    key: &SigningKey,
) -> Result<(), HostError> {
    let roster = seat.roster().await?;
    let joined = roster.team().member(name.as_str()).and_then(|member| member.joined_at());
    let prompt_id = format!("prompt {} {}", joined.unwrap_or_default(), key.private_id());
    let text = MessageText { text: prompt, summary: None };
    mail::send_once(seat, name, &prompt_id, text).await?;
    Ok(())
}

/// Returns the reason for marking a member as failed, including the last line of the member's log.
fn failure_reason(host: &Host, seat: &Seat, spec: &MemberSpec) -> String {
    let log = std::fs::read_to_string(host.registry.log(&seat.team, &spec.name));
    let log = log.unwrap_or_default();
    match log.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("its process keeps ending; last log line: {line}"),
        None => "its process keeps ending".to_owned(),
    }
}

//! Runs an agent as a member of a team until the member leaves the team.
//!
//! One loop owns all state of the member. It reads the output of the agent's program, the team's events and the
//! lines that a person types, and carries out the actions that [`Delivery`] returns. `conversation` handles one
//! process of the agent's program from start to exit, `mailroom` sorts incoming messages, `report` informs the
//! lead, and `work_recorder` records the member's work in the journal.
//!
//! ```no_run
//! use brigade_agents::driver;
//! use brigade_agents::program::BrigadeProgram;
//! use brigade_core::seat::Seat;
//! use brigade_files::FileStoreOptions;
//! use brigade_agents::teammate::{self, TeammateConfig};
//!
//! async fn codex(bob: Seat, files: &FileStoreOptions) -> Result<(), Box<dyn std::error::Error>> {
//!     let codex = driver::agent("codex").ok_or("no such agent")?;
//!     let brigade = BrigadeProgram::on_files("brigade", &files.claude_dir, &files.state_dir);
//!     let plan = TeammateConfig::agent(bob, codex, &brigade, "/work").await?;
//!     Ok(teammate::run(plan).await?)
//! }
//! ```

mod carry_over;
mod config;
mod control;
mod conversation;
mod input;
mod mailroom;
mod report;
mod running_agent;
mod takeover_record;
mod unsent;
mod vitals;
mod work_recorder;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use brigade_wire::generation::Generation;
use brigade_wire::name::MemberName;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

pub use self::carry_over::{Membership, carry_over};
pub use self::config::{SessionUse, TeammateConfig};
use self::control::{OpenCalls, PendingCommands};
use self::conversation::{ConversationEnd, EventEffect};
use self::input::next_input;
pub use self::input::{CommandResult, InteractiveCommand, MemberCommand, MemberInput};
use self::report::Turn;
pub use self::running_agent::AgentRunner;
use self::running_agent::RunningAgent;
use self::unsent::UnsentMail;
use self::vitals::Vitals;
use self::work_recorder::WorkRecorder;
use crate::delivery::{Delivery, SavedState};
use crate::driver::{Access, AgentEvent, AskId, Driver, LaunchOptions, ResumeTiming, TurnEnd};
use crate::program::RunningProgram;
use crate::worker;
use brigade_core::authority::Denied;
use brigade_core::board::{self, BoardError};
use brigade_core::event::MessageKey;
use brigade_core::handshake::{HandshakeError, RequestKind, is_plan_approved};
use brigade_core::mail::MailError;
use brigade_core::pulse::{self, REPORT_INTERVAL};
use brigade_core::roster::{Activity, RosterError};
use brigade_core::seat::Seat;
use brigade_core::store::{NoteKind, StoreError, Watch};

/// After this time, a member repeats what it could not do: read its inbox, send a message, mark a message as shown.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// How long a member waits for its roster entry to appear.
const ENTRY_WAIT: Duration = Duration::from_secs(10);
/// How often the member checks whether its roster entry has appeared.
const ENTRY_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Delay before the first restart of an agent. Each further restart waits twice as long.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(500);
/// The agent is marked as failed after this many failed starts in a row. The next message resets the count and
/// starts the agent again.
const MAX_FAILED_STARTS: u32 = 5;
/// How long a member retries to resume a session that another program has open. Codex keeps a session open for up to 55 s.
const BUSY_SESSION_WAIT: Duration = Duration::from_secs(60);
/// Delay before a member retries to resume a session that another program has open.
const BUSY_SESSION_RETRY: Duration = Duration::from_secs(3);
/// Delay before a failed store operation is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// A start counts as successful if the program runs for at least this time, or completes a turn.
const SUCCESSFUL_RUN: Duration = Duration::from_secs(60);

/// An event of a running member, passed to the observer of [`run_observed`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TeammateEvent {
    /// The agent's program was started or restarted.
    Started,
    /// Text was sent to the agent.
    Given(String),
    /// The agent's driver reported an event.
    Did(AgentEvent),
    /// The agent waits for the answer to a request.
    Waits {
        /// The id of the request.
        request_id: String,
        /// The tool, and what the agent wants to use it for.
        what: String,
    },
    /// A request was answered.
    Answered {
        /// The id of the request.
        request_id: String,
        /// Whether the request was approved.
        yes: bool,
    },
    /// An error occurred. The text describes the error and, if that is not obvious, how the member reacts.
    Trouble(String),
}

/// The reason why a member stopped running.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TeammateError {
    /// The member is not on the roster.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A handshake failed.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The roster could not be changed.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// Mail could not be read or sent.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// The member's tasks could not be released.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The part of a member's state that survives a restart of the member's process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SavedTeammate {
    /// When the team was created. This distinguishes teams with the same name.
    team_created: u64,
    /// When the member joined the team. A later member with the same name must not inherit the session or the
    /// approved plan.
    joined: u64,
    #[serde(rename = "memory")]
    delivery: SavedState,
    /// Whether the member's plan was approved.
    #[serde(default, rename = "planned")]
    plan_approved: bool,
    /// The minute in which the agent's session was started, counted from 1970.
    #[serde(default, rename = "minute")]
    session_minute: i64,
    /// Whether a person took the session over, and the end of that is not recorded in the history yet.
    #[serde(default, rename = "takenOver")]
    is_taken_over: bool,
}

/// A running member.
struct TeammateLoop<S> {
    config: TeammateConfig,
    driver: Box<dyn Driver>,
    delivery: Delivery,
    team_created: u64,
    joined: u64,
    /// Whether reports to the lead contain the final text of a turn.
    reports_result: bool,
    lead: Option<MemberName>,
    access: Access,
    plan_approved: bool,
    /// The minute in which the agent's session was started, counted from 1970.
    session_minute: i64,
    /// Whether a person took the session over, and the end of that is not recorded in the history yet.
    is_taken_over: bool,
    /// The requests that wait for the lead's answer, by request id. The driver knows a request by its `AskId`.
    asks: HashMap<String, (RequestKind, AskId)>,
    /// Why the member's state can never be saved.
    cannot_save: Option<StoreError>,
    /// Requests and reports that could not be sent to the lead yet.
    unsent: UnsentMail,
    /// Whether the agent's current process has reported that it is ready.
    ready: bool,
    /// Whether the agent's current process reported a fatal error before it was ready. Stays false if the process
    /// exits without such a report.
    failed_to_start: bool,
    turn: Turn,
    /// Whether the agent's current process has completed a turn.
    completed_turn: bool,
    /// Messages that the agent has received, but that are not marked as shown in the store yet.
    shown: Vec<MessageKey>,
    /// Messages that the agent's model saw while this process was running.
    seen: HashSet<MessageKey>,
    /// Messages that were sent while this process was watching. The model has not seen them, unless they are in `seen`. Whether
    /// the model saw any other message is found out from the mailbox's history.
    just_sent: HashSet<MessageKey>,
    /// The failure that was last reported to the lead. Reset by a turn that does not fail.
    failed: Option<String>,
    /// The activity that the roster shows, as far as it is known.
    activity: Option<Activity>,
    in_turn: bool,
    /// Whether a person has paused the member. A paused member starts no turn.
    paused: bool,
    /// Whether a person continues the agent's session in a terminal.
    handed_over: bool,
    /// The commands that have not taken effect yet.
    commands: PendingCommands,
    open_calls: OpenCalls,
    /// When the roster must show the member as active; `None` outside a turn, or if the roster shows that already.
    active_at: Option<Instant>,
    vitals: Vitals,
    /// The team's events that concern the member.
    watch: Watch,
    /// The most important effect of the events that were read at the end of a turn.
    noticed: Option<EventEffect>,
    observer: S,
}

/// Runs a member until the member leaves the team. Records the member's work in the journal.
///
/// Dropping the future ends the agent's program and all processes that the program started, but leaves the
/// member on the team. Running the member again resumes the session and delivers the mail that the model has
/// not seen.
pub async fn run(config: TeammateConfig) -> Result<(), TeammateError> {
    let (_sender, inputs) = mpsc::unbounded_channel();
    run_observed(config, inputs, |_| {}).await
}

/// Like [`run`], but also passes each event to `observer` and accepts lines and commands from `inputs`. The
/// member keeps running when `inputs` is closed.
pub async fn run_observed<S: FnMut(TeammateEvent)>(
    config: TeammateConfig,
    inputs: mpsc::UnboundedReceiver<MemberInput>,
    mut observer: S,
) -> Result<(), TeammateError> {
    let recorder = WorkRecorder::new(config.seat.clone());
    let observe = |event| {
        recorder.observe(&event);
        observer(event);
    };
    let result = run_until_left(config, inputs, observe).await;
    recorder.finish().await;
    result
}

async fn run_until_left<S: FnMut(TeammateEvent)>(
    config: TeammateConfig,
    inputs: mpsc::UnboundedReceiver<MemberInput>,
    observer: S,
) -> Result<(), TeammateError> {
    let watch = config.seat.watch_own().await?;
    wait_for_roster_entry(&config.seat).await?;
    let mut teammate = TeammateLoop::new(config, watch, observer).await?;
    let mut inputs = Some(inputs);
    let mut failed_starts = 0;
    let mut busy_since = None;
    loop {
        if !teammate.wait_while_used(&mut inputs).await {
            return release_tasks(&teammate.config.seat, teammate.team_created).await;
        }
        let began = Instant::now();
        teammate.wait_to_resume().await;
        // A new process has no open requests. Requests of the previous process can no longer be answered.
        teammate.withdraw_requests(|_| true).await;
        let exit_reason = match teammate.start() {
            Ok(mut agent) => {
                let end = teammate.converse(&mut agent, &mut inputs).await;
                let died = match end {
                    ConversationEnd::Commanded => {
                        agent.end().await.ok();
                        failed_starts = 0;
                        if teammate.after_command(&mut inputs).await {
                            continue;
                        }
                        return release_tasks(&teammate.config.seat, teammate.team_created).await;
                    }
                    ConversationEnd::Left => None,
                    ConversationEnd::Died(why) => {
                        Some(with_last_output(why, &agent.last_output().await))
                    }
                };
                // This also ends the processes that the agent left behind.
                if let Ok(Some(code)) = agent.end().await {
                    teammate.program_exited(code).await;
                }
                died
            }
            Err(error) => Some(format!("cannot start {}: {error}", teammate.config.agent.program)),
        };
        if let Some(error) = teammate.cannot_save.take() {
            return Err(error.into());
        }
        let Some(why) = exit_reason else {
            return release_tasks(&teammate.config.seat, teammate.team_created).await;
        };
        let is_busy = teammate.config.agent.is_session_busy(&why);
        if is_busy && busy_since.get_or_insert(began).elapsed() < BUSY_SESSION_WAIT {
            teammate
                .handle_exit(&format!("another program has the session open; trying again: {why}"));
            teammate.beat().await;
            tokio::time::sleep(BUSY_SESSION_RETRY).await;
            continue;
        }
        busy_since = None;
        let why = teammate.config.agent.explain_failure(&why);
        let start_failed = began.elapsed() < SUCCESSFUL_RUN && !teammate.completed_turn;
        failed_starts = if start_failed { failed_starts + 1 } else { 1 };
        teammate.handle_exit(&why);
        teammate.beat().await;
        // A session that another program has open is not lost.
        let may_forget = failed_starts > 1 && teammate.failed_to_start && !is_busy;
        if may_forget && teammate.delivery.forget_session() {
            let new = "the agent's session cannot be resumed; starting a new one";
            (teammate.observer)(TeammateEvent::Trouble(new.to_owned()));
        }
        if failed_starts < MAX_FAILED_STARTS {
            tokio::time::sleep(FIRST_RESTART_DELAY * 2u32.pow(failed_starts - 1)).await;
            continue;
        }
        teammate.mark_failed(&why).await;
        if !teammate.wait_for_reason(&mut inputs).await {
            return Ok(());
        }
        failed_starts = 0;
        // Forget the reported failure. If the agent fails in the same way again, the lead must be informed again.
        teammate.failed = None;
    }
}

/// Waits until the member is on the roster. Claude Code 2.1.50 starts a teammate first and writes
/// the teammate's roster entry later.
async fn wait_for_roster_entry(seat: &Seat) -> Result<(), TeammateError> {
    let began = Instant::now();
    while seat.role().await?.is_none() {
        if began.elapsed() >= ENTRY_WAIT {
            return Err(seat.not_a_member_error().await?.into());
        }
        tokio::time::sleep(ENTRY_CHECK_INTERVAL).await;
    }
    Ok(())
}

/// Releases the tasks of a member that has left the team. Normally, the tool that removed the member has already
/// released them. But that tool may have been killed together with the agent.
///
/// The member keeps its tasks if the team was deleted, or was created again: then the member may join it again.
async fn release_tasks(seat: &Seat, team_created: u64) -> Result<(), TeammateError> {
    let Some(roster) = seat.find_roster().await? else { return Ok(()) };
    let team = roster.team();
    let is_same = team.created_at().unwrap_or_default() == team_created;
    if is_same && team.member(seat.name.as_str()).is_none() {
        board::release(seat, &seat.name).await?;
    }
    Ok(())
}

fn with_last_output(why: String, output: &str) -> String {
    match output.lines().last() {
        Some(line) => format!("{why}; last output: {line}"),
        None => why,
    }
}

impl<S: FnMut(TeammateEvent)> TeammateLoop<S> {
    async fn new(config: TeammateConfig, watch: Watch, observer: S) -> Result<Self, TeammateError> {
        let seat = &config.seat;
        let (team_created, joined, generation, lead) = {
            let roster = seat.roster().await?;
            let team = roster.team();
            // If this member is the lead, it reports to no one.
            let lead = team.lead().and_then(|lead| lead.name()?.parse().ok());
            let lead = lead.filter(|lead| *lead != seat.name);
            let joined = team.member(seat.name.as_str()).and_then(|member| member.joined_at());
            let created = team.created_at().unwrap_or_default();
            (created, joined.unwrap_or_default(), team.generation(), lead)
        };
        // Claude Code of the old generation does not know the field. If brigade leads the team, brigade reads it.
        let reports_result =
            generation == Generation::New || seat.store.is_ours(&seat.team).await?;
        let saved = seat.store.get_note(&seat.team, &seat.name, NoteKind::Memory).await?;
        let saved: Option<SavedTeammate> =
            saved.and_then(|note| serde_json::from_slice(&note).ok());
        let is_same =
            |saved: &SavedTeammate| (saved.team_created, saved.joined) == (team_created, joined);
        let saved = saved.filter(is_same).unwrap_or_else(|| SavedTeammate {
            team_created,
            joined,
            delivery: SavedState::new(Uuid::new_v4().as_u64_pair().0),
            plan_approved: false,
            session_minute: 0,
            is_taken_over: false,
        });
        let vitals = Vitals::continued(
            pulse::last_report(seat, &seat.name).await?.as_ref(),
            saved.delivery.session.as_deref(),
        );
        let access = match config.launch.access {
            // Others than the member can write its notes, so the note does not decide alone.
            Access::ReadOnly if saved.plan_approved && is_plan_approved(seat).await? => Access::Ask,
            access => access,
        };
        let address = format!("{}@{}", seat.name, seat.team);
        let mut delivery = Delivery::new(address, config.agent.can.mid_turn, saved.delivery);
        let paused = config.paused;
        // The agent is not ready yet, so there is nothing to do.
        let _no_actions = delivery.hold(paused);
        let driver = (config.agent.driver)(config.launch.clone());
        Ok(Self {
            driver,
            delivery,
            team_created,
            joined,
            reports_result,
            lead,
            access,
            plan_approved: saved.plan_approved,
            session_minute: saved.session_minute,
            is_taken_over: saved.is_taken_over,
            asks: HashMap::new(),
            cannot_save: None,
            unsent: UnsentMail::default(),
            ready: false,
            failed_to_start: false,
            turn: Turn::default(),
            completed_turn: false,
            shown: Vec::new(),
            seen: HashSet::new(),
            just_sent: HashSet::new(),
            failed: None,
            activity: None,
            in_turn: false,
            paused,
            handed_over: false,
            commands: PendingCommands::default(),
            open_calls: OpenCalls::default(),
            active_at: None,
            vitals,
            watch,
            noticed: None,
            observer,
            config,
        })
    }

    /// Waits until the agent's session can be resumed.
    async fn wait_to_resume(&mut self) {
        let waits = self.config.agent.can.resumes == ResumeTiming::NextMinute
            && self.delivery.saved().session.is_some();
        if waits && self.this_minute() == self.session_minute {
            (self.observer)(TeammateEvent::Trouble(
                "waiting for the next minute to resume the agent's session".to_owned(),
            ));
            while self.this_minute() == self.session_minute {
                self.beat().await;
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Returns the current minute, counted from 1970.
    fn this_minute(&self) -> i64 {
        self.config.seat.clock.now().as_second().div_euclid(60)
    }

    /// Starts the agent's program, which resumes the agent's session if there is one. For an in-process member,
    /// creates the next worker instead.
    fn start(&mut self) -> std::io::Result<RunningAgent> {
        let resume = self.delivery.saved().session.clone();
        let is_resumed = resume.is_some();
        let launch = LaunchOptions { access: self.access, resume, ..self.config.launch.clone() };
        self.driver = (self.config.agent.driver)(launch);
        self.vitals.begin_process(is_resumed, self.driver.usage_restarts());
        let agent = match &self.config.runner {
            AgentRunner::Program(start) => {
                let invocation = self.driver.invocation();
                let mut start = start.clone();
                start.args = invocation.args.into_iter().map(Into::into).collect();
                let env = invocation.env.into_iter();
                start.env.extend(env.map(|(name, value)| (name.into(), value.into())));
                RunningAgent::Program(Box::new(RunningProgram::start(&start)?))
            }
            AgentRunner::Workers(workers) => {
                RunningAgent::Worker(worker::RunningWorker::start(workers, &self.config.seat))
            }
        };
        (self.observer)(TeammateEvent::Started);
        self.ready = false;
        self.failed_to_start = false;
        self.completed_turn = false;
        self.driver.start();
        Ok(agent)
    }

    /// Saves the state that must survive a crash. Retries until that succeeds: if text were sent to the agent
    /// before the state is saved, a message could be shown twice. If the team was deleted or the store forbids it, sets
    /// `cannot_save`, which ends the member's process.
    async fn save(&mut self) {
        let delivery = self.delivery.saved().clone();
        let saved = SavedTeammate {
            team_created: self.team_created,
            joined: self.joined,
            delivery,
            plan_approved: self.plan_approved,
            session_minute: self.session_minute,
            is_taken_over: self.is_taken_over,
        };
        // Serializing plain data cannot fail.
        let note = serde_json::to_vec(&saved).unwrap_or_default();
        let seat = self.config.seat.clone();
        while let Err(error) =
            seat.store.put_note(&seat.team, &seat.name, NoteKind::Memory, Some(&note)).await
        {
            self.trouble("cannot save the member's state", &error);
            if matches!(error, StoreError::NoTeam { .. } | StoreError::Forbidden { .. }) {
                self.cannot_save = Some(error);
                return;
            }
            self.beat().await;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Logs the error and passes it to the observer. The operation may succeed later.
    fn trouble(&mut self, what: &str, error: &dyn std::error::Error) {
        let (team, member) = (&self.config.seat.team, &self.config.seat.name);
        tracing::warn!(%team, %member, %error, what);
        (self.observer)(TeammateEvent::Trouble(format!("{what}: {error}")));
    }

    /// Resets the member's state after the agent's program has ended, before a restart.
    fn handle_exit(&mut self, why: &str) {
        tracing::warn!(team = %self.config.seat.team, member = %self.config.seat.name, why, "the agent's program ended");
        (self.observer)(TeammateEvent::Trouble(why.to_owned()));
        self.forget_process();
    }

    /// Resets the state that belongs to one process of the agent's program.
    fn forget_process(&mut self) {
        self.forget_interrupts();
        self.delivery.agent_exited();
        self.ready = false;
        self.in_turn = false;
        self.active_at = None;
        self.asks.clear();
        self.unsent.asks.clear();
    }

    /// Marks the agent as failed and informs the lead.
    async fn mark_failed(&mut self, why: &str) {
        self.end_turn().await;
        self.vitals.failure = Some(why.to_owned());
        // A reader that is woken by the report to the lead must find that the agent failed.
        self.beat().await;
        self.inform_lead(&TurnEnd::Failed(why.to_owned())).await;
        self.settle_restart(CommandResult::Failed(why.to_owned()));
    }

    /// Waits for a reason to start the agent again: mail, unless the member is paused, or input. Returns `false` if the member
    /// has left the team.
    async fn wait_for_reason(
        &mut self,
        inputs: &mut Option<mpsc::UnboundedReceiver<MemberInput>>,
    ) -> bool {
        loop {
            match self.noticed.take() {
                Some(EventEffect::Mail) if !self.paused => return true,
                Some(EventEffect::Left) => return false,
                _ => {}
            }
            self.beat().await;
            tokio::select! {
                () = tokio::time::sleep(REPORT_INTERVAL) => self.send_unsent().await,
                record = self.watch.next_shared() => match record.map(|record| self.on_team_event(&record)) {
                    Some(EventEffect::Mail) if !self.paused => return true,
                    Some(EventEffect::Mail | EventEffect::None) => {}
                    Some(EventEffect::Left) | None => return false,
                },
                input = next_input(inputs) => {
                    let is_line = matches!(input, MemberInput::Line(_));
                    let was_paused = self.paused;
                    if self.on_input(input).await {
                        return self.after_command(inputs).await;
                    }
                    if is_line || (was_paused && !self.paused) {
                        return true;
                    }
                }
            }
        }
    }
}

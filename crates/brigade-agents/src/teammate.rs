//! An agent as a member of a team, from its start to its end.
//!
//! One loop owns everything: it hears the agent's program, the team and whoever types, and does what
//! [`Delivery`] and the rules of a good member say. `conversation` is one life of the agent,
//! `mailroom` what becomes of a message, `report` what the team hears of the member, `scribe` what is
//! written down of its work.
//!
//! ```no_run
//! use brigade_agents::driver;
//! use brigade_agents::program::Brigade;
//! use brigade_core::seat::Seat;
//! use brigade_files::Options;
//! use brigade_agents::teammate::{self, Plan};
//!
//! async fn codex(bob: Seat, files: &Options) -> Result<(), Box<dyn std::error::Error>> {
//!     let codex = driver::agent("codex").ok_or("no such agent")?;
//!     let brigade = Brigade::on_files("brigade", files);
//!     let plan = Plan::agent(bob, codex, &brigade, "/work").await?;
//!     Ok(teammate::run(plan).await?)
//! }
//! ```

mod conversation;
mod life;
mod mailroom;
mod plan;
mod report;
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

use self::conversation::{News, Over, next_line};
use self::life::Life;
pub use self::life::Player;
pub use self::plan::Plan;
use self::report::Turn;
use self::vitals::Vitals;
use self::work_recorder::Scribe;
use crate::delivery::{Delivery, Memory};
use crate::driver::{Access, AskId, Driver, End, Event, Launch, Resumes};
use crate::program::Program;
use crate::worker;
use brigade_core::authority::Denied;
use brigade_core::board::{self, BoardError};
use brigade_core::event::MessageKey;
use brigade_core::handshake::{HandshakeError, Kind};
use brigade_core::mail::MailError;
use brigade_core::pulse::BEAT;
use brigade_core::roster::{Activity, RosterError};
use brigade_core::seat::Seat;
use brigade_core::store::{Shelf, StoreError, Watch};

/// How often the inbox is looked at though nothing was heard of it.
const SLOW_LOOK: Duration = Duration::from_secs(10);
/// How long a member waits for its entry in the roster, and how often it looks for it.
const ENTRY_WAIT: Duration = Duration::from_secs(10);
const ENTRY_LOOK: Duration = Duration::from_millis(50);
/// How long the first restart of an agent waits; each one after waits twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// How often in a row an agent is started in vain before it is given up. The next message begins
/// anew.
const TRIES: u32 = 5;
/// How long is waited before something that has to be done is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// An agent that ran for this long did not start in vain, nor did one that ended a turn.
const RAN: Duration = Duration::from_secs(60);

/// What can be seen of a member at work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sight {
    /// Its program was started, or started again.
    Started,
    /// A message was given to it.
    Given(String),
    /// The agent did something.
    Did(Event),
    /// It waits for somebody to answer a request.
    Waits {
        /// Which.
        request_id: String,
        /// For what.
        what: String,
    },
    /// A request was answered.
    Answered {
        /// Which.
        request_id: String,
        /// Whether with yes.
        yes: bool,
    },
    /// Something went wrong, and what is done about it.
    Trouble(String),
}

/// Why a member could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TeammateError {
    /// Nobody put it on the roster.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A handshake failed.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The roster could not be changed.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// Mail could not be had or sent.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// Its tasks could not be given back.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is kept of a member between two lives of its process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// Which team of that name, by the time it was created.
    team_created: u64,
    /// Which member of that name, by the time it joined: a newcomer has nobody's session, and nobody's
    /// plan was approved.
    joined: u64,
    memory: Memory,
    /// Whether its plan was approved.
    #[serde(default)]
    planned: bool,
    /// In which minute since 1970 its session was begun.
    #[serde(default)]
    minute: i64,
}

/// A member at work.
struct Teammate<S> {
    plan: Plan,
    driver: Box<dyn Driver>,
    delivery: Delivery,
    team_created: u64,
    joined: u64,
    generation: Generation,
    lead: Option<MemberName>,
    access: Access,
    planned: bool,
    /// In which minute since 1970 its session was begun.
    minute: i64,
    /// Requests that wait for an answer, and what the agent asked.
    asks: HashMap<String, (Kind, AskId)>,
    /// Whether its program got as far as a conversation.
    ready: bool,
    /// Whether it said since then that it cannot go on, and was not ready. To have died is no such word.
    refused: bool,
    turn: Turn,
    /// Whether the agent has ended a turn since its program was started.
    got_on: bool,
    /// What the agent has, and is not marked yet.
    shown: Vec<MessageKey>,
    /// What was ever put before its model; not known before the first message.
    seen: Option<HashSet<MessageKey>>,
    /// Why its last turn failed, if it did and the lead was told.
    failed: Option<String>,
    activity: Option<Activity>,
    vitals: Vitals,
    sights: S,
}

/// Runs a member until it leaves the team. What can be seen of it goes into the journal.
///
/// Whoever drops it ends the agent's program and everything that started, and leaves the member on the team:
/// run again, it goes on with its session and the mail it has not seen.
pub async fn run(plan: Plan) -> Result<(), TeammateError> {
    let (_nobody, typed) = mpsc::unbounded_channel();
    run_seen(plan, typed, |_| {}).await
}

/// The same, where somebody looks: what can be seen of the member goes to `sights`, too, and what somebody types
/// comes from `typed`, whose end changes nothing.
pub async fn run_seen<S: FnMut(Sight)>(
    plan: Plan,
    typed: mpsc::UnboundedReceiver<String>,
    mut sights: S,
) -> Result<(), TeammateError> {
    let scribe = Scribe::new(plan.seat.clone());
    let seen = |sight| {
        scribe.see(&sight);
        sights(sight);
    };
    let stayed = stay(plan, typed, seen).await;
    scribe.end().await;
    stayed
}

async fn stay<S: FnMut(Sight)>(
    plan: Plan,
    typed: mpsc::UnboundedReceiver<String>,
    sights: S,
) -> Result<(), TeammateError> {
    let mut watch = plan.seat.store.watch_proceedings(&plan.seat.team).await?;
    expected(&plan.seat).await?;
    let mut teammate = Teammate::sit_down(plan, sights).await?;
    let mut typed = Some(typed);
    let mut tries = 0;
    loop {
        let began = Instant::now();
        teammate.wait_to_resume().await;
        // A program that begins has asked for nothing; what an earlier one asked for ended with it.
        teammate.take_back(|_| true).await;
        let over = match teammate.start() {
            Ok(mut life) => {
                let over = teammate.converse(&mut life, &mut watch, &mut typed).await;
                let died = match over {
                    Over::Left => None,
                    Over::Died(why) => Some(with_last_words(why, &life.last_words().await)),
                };
                // The conversation is over; what it left behind goes, too.
                if let Ok(Some(code)) = life.end().await {
                    teammate.ended(code).await;
                }
                died
            }
            Err(error) => Some(format!("cannot start {}: {error}", teammate.plan.agent.program)),
        };
        let Some(why) = over else { return clear_up(&teammate.plan.seat).await };
        let in_vain = began.elapsed() < RAN && !teammate.got_on;
        tries = if in_vain { tries + 1 } else { 1 };
        teammate.down(&why);
        teammate.beat().await;
        if tries > 1 && teammate.refused && teammate.delivery.forget_session() {
            let new = "its session cannot be resumed; it begins a new one";
            (teammate.sights)(Sight::Trouble(new.to_owned()));
        }
        if tries < TRIES {
            tokio::time::sleep(FIRST_WAIT * 2u32.pow(tries - 1)).await;
            continue;
        }
        teammate.give_up(&why).await;
        if !teammate.wait_for_mail(&mut watch, &mut typed).await {
            return Ok(());
        }
        tries = 0;
        // Whoever writes to it anew shall hear anew what became of it.
        teammate.failed = None;
    }
}

/// Waits until the seat is on the roster. Claude Code 2.1.50 starts a teammate first and writes its
/// entry afterwards.
async fn expected(seat: &Seat) -> Result<(), TeammateError> {
    let began = Instant::now();
    while seat.role().await?.is_none() {
        if began.elapsed() >= ENTRY_WAIT {
            return Err(seat.absent().await?.into());
        }
        tokio::time::sleep(ENTRY_LOOK).await;
    }
    Ok(())
}

/// Gives its tasks back once it has left. Its tools began to, and may have been ended with the agent
/// before they were through.
async fn clear_up(seat: &Seat) -> Result<(), TeammateError> {
    match seat.role().await {
        Ok(None) => {}
        // It is still a member, or there is no team any more.
        Ok(Some(_)) | Err(StoreError::NoTeam { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    board::release(seat, &seat.name).await?;
    Ok(())
}

fn with_last_words(why: String, words: &str) -> String {
    match words.lines().last() {
        Some(words) => format!("{why}; it said last: {words}"),
        None => why,
    }
}

impl<S: FnMut(Sight)> Teammate<S> {
    async fn sit_down(plan: Plan, sights: S) -> Result<Self, TeammateError> {
        let seat = &plan.seat;
        let (team_created, joined, generation, lead) = {
            let config = seat.config().await?;
            let team = seat.read(&config)?;
            // Who leads has nobody to report to.
            let lead = team.lead().and_then(|lead| lead.name()?.parse().ok());
            let lead = lead.filter(|lead| *lead != seat.name);
            let joined = team.member(seat.name.as_str()).and_then(|member| member.joined_at());
            let created = team.created_at().unwrap_or_default();
            (created, joined.unwrap_or_default(), team.generation(), lead)
        };
        let kept = seat.store.kept(&seat.team, &seat.name, Shelf::Memory).await?;
        let kept: Option<Kept> = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
        let same = |kept: &Kept| (kept.team_created, kept.joined) == (team_created, joined);
        let kept = kept.filter(same).unwrap_or_else(|| Kept {
            team_created,
            joined,
            memory: Memory::new(Uuid::new_v4().as_u64_pair().0),
            planned: false,
            minute: 0,
        });
        let access = match plan.launch.access {
            Access::ReadOnly if kept.planned => Access::Ask,
            access => access,
        };
        let address = format!("{}@{}", seat.name, seat.team);
        let delivery = Delivery::new(address, plan.agent.can.mid_turn, kept.memory);
        let driver = (plan.agent.driver)(plan.launch.clone());
        Ok(Self {
            driver,
            delivery,
            team_created,
            joined,
            generation,
            lead,
            access,
            planned: kept.planned,
            minute: kept.minute,
            asks: HashMap::new(),
            ready: false,
            refused: false,
            turn: Turn::default(),
            got_on: false,
            shown: Vec::new(),
            seen: None,
            failed: None,
            activity: None,
            vitals: Vitals::default(),
            sights,
            plan,
        })
    }

    /// Waits until the agent's session can be gone on with.
    async fn wait_to_resume(&mut self) {
        let waits = self.plan.agent.can.resumes == Resumes::NextMinute
            && self.delivery.memory().session.is_some();
        if waits && self.this_minute() == self.minute {
            (self.sights)(Sight::Trouble(
                "its session is free again in the next minute".to_owned(),
            ));
            while self.this_minute() == self.minute {
                self.beat().await;
                tokio::time::sleep(TRY_AGAIN).await;
            }
        }
    }

    /// The minute of the clock, since 1970.
    fn this_minute(&self) -> i64 {
        self.plan.seat.clock.now().as_second().div_euclid(60)
    }

    /// Starts the agent's program, with its session if it has one; or makes the next worker.
    fn start(&mut self) -> std::io::Result<Life> {
        let resume = self.delivery.memory().session.clone();
        let launch = Launch { access: self.access, resume, ..self.plan.launch.clone() };
        self.driver = (self.plan.agent.driver)(launch);
        let life = match &self.plan.player {
            Player::Program(start) => {
                let invocation = self.driver.invocation();
                let mut start = start.clone();
                start.args = invocation.args.into_iter().map(Into::into).collect();
                let env = invocation.env.into_iter();
                start.env.extend(env.map(|(name, value)| (name.into(), value.into())));
                Life::Program(Box::new(Program::start(&start)?))
            }
            Player::Workers(workers) => Life::Worker(worker::Life::start(workers, &self.plan.seat)),
        };
        (self.sights)(Sight::Started);
        self.ready = false;
        self.refused = false;
        self.got_on = false;
        self.driver.start();
        Ok(life)
    }

    /// Writes down what has to be known after a crash. Nothing goes on before it stands: what is
    /// given to the agent without it would be given twice.
    async fn keep(&mut self) {
        let memory = self.delivery.memory().clone();
        let kept = Kept {
            team_created: self.team_created,
            joined: self.joined,
            memory,
            planned: self.planned,
            minute: self.minute,
        };
        // Plain data; this cannot fail.
        let note = serde_json::to_vec(&kept).unwrap_or_default();
        let seat = self.plan.seat.clone();
        while let Err(error) =
            seat.store.keep(&seat.team, &seat.name, Shelf::Memory, Some(&note)).await
        {
            self.trouble("nothing can be written down", &error);
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// Something went wrong that a later try may mend.
    fn trouble(&mut self, what: &str, error: &dyn std::error::Error) {
        let (team, member) = (&self.plan.seat.team, &self.plan.seat.name);
        tracing::warn!(%team, %member, %error, what);
        (self.sights)(Sight::Trouble(format!("{what}: {error}")));
    }

    /// The agent's program has ended, and is to be started again.
    fn down(&mut self, why: &str) {
        tracing::warn!(team = %self.plan.seat.team, member = %self.plan.seat.name, why, "the agent died");
        (self.sights)(Sight::Trouble(why.to_owned()));
        self.delivery.down();
        self.ready = false;
        self.asks.clear();
    }

    /// Says honestly that nothing goes on here.
    async fn give_up(&mut self, why: &str) {
        self.set_activity(Activity::Idle).await;
        self.vitals.given_up = Some(why.to_owned());
        if let Err(error) = self.report(&End::Failed(why.to_owned())).await {
            self.trouble("the lead could not be told", &error);
        }
    }

    /// Waits until there is a reason to try again; whether there was one.
    async fn wait_for_mail(
        &mut self,
        watch: &mut Watch,
        typed: &mut Option<mpsc::UnboundedReceiver<String>>,
    ) -> bool {
        loop {
            self.beat().await;
            tokio::select! {
                () = tokio::time::sleep(BEAT) => {}
                record = watch.next_shared() => match record.map(|record| self.happened(&record)) {
                    Some(News::Mail) => return true,
                    Some(News::None) => {}
                    Some(News::Left) | None => return false,
                },
                line = next_line(typed) => {
                    self.typed(line).await;
                    return true;
                }
            }
        }
    }
}

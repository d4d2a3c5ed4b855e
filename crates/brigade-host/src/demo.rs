//! A team of scripted agents that shows brigade without any vendor's agent.
//!
//! The agents are scripted, and everything else is real: the team's files, mail, board, permission requests and journal are
//! those of every team, in a temporary folder. The viewer leads the team and can answer the requests.

mod folder;
mod script;

use std::path::Path;
use std::time::Duration;

use brigade_agents::driver::PermissionAnswer;
use brigade_agents::teammate::{self, TeammateConfig};
use brigade_agents::worker::{Worker, WorkerContext, Workers};
use brigade_core::board::{self, BatchTask, Rerun, TaskPlan};
use brigade_core::event::{Event, WorkEvent};
use brigade_core::graph::{TaskNode, TaskState};
use brigade_core::handshake::Answer;
use brigade_core::roster::{self, MemberPlan, TeamPlan};
use brigade_core::seat::{Seat, SeatUser};
use brigade_core::{approvals, mail};
use brigade_wire::backend;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::Status;
use serde_json::json;
use tokio::task::JoinSet;

pub use self::folder::{DemoFolder, remove_leftovers};
use self::script::{MEMBERS, Step, TASKS};
use crate::context::Context;
use crate::error::HostError;
use crate::process_lock::{self, ProcessLock};
use crate::{error, process};

/// The name of the team.
pub const TEAM: &str = "demo";

/// How long a request waits for the viewer before the demo answers it, at normal speed.
const VIEWER_TIME: Duration = Duration::from_secs(40);
/// How often the demo checks for requests that the viewer did not answer.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// How fast the demo runs.
#[derive(Clone, Copy, Debug)]
pub struct DemoPace {
    /// A multiple of the normal speed, at which the demo takes about two minutes.
    pub speed: f64,
}

impl DemoPace {
    fn scaled(self, time: Duration) -> Duration {
        time.div_f64(self.speed.max(0.1))
    }
}

/// The running demo. The agents stop when this value is dropped.
#[derive(Debug)]
pub struct Demo {
    /// The seat of the viewer, who leads the team.
    pub lead: Seat,
    agents: JoinSet<()>,
    /// Show that the members run in this process.
    _locks: Vec<ProcessLock>,
}

/// Creates the team and starts its agents.
pub async fn start(context: &Context, pace: DemoPace) -> Result<Demo, HostError> {
    let team: TeamName = TEAM.parse().map_err(HostError::failed)?;
    let lead = context.seat_of(team, MemberName::lead());
    let cwd = context.claude_dir().to_string_lossy().into_owned();
    let about = "A demo with scripted agents: no model is used";
    roster::create(&lead, TeamPlan::new(about, &cwd)).await?;
    let host = context.host()?;
    let (mut agents, mut locks) = (JoinSet::new(), Vec::new());
    for name in MEMBERS {
        let name: MemberName = name.parse().map_err(HostError::failed)?;
        let mut plan = MemberPlan::new("scripted", &cwd).with_backend_type(backend::IN_PROCESS);
        plan.model = "no model";
        roster::join(&lead, &name, plan).await?;
        let path = host.registry.seat(&lead.team, &name);
        let make = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let lock = match make {
            Ok(()) => process_lock::take(&path).await,
            Err(error) => Err(error),
        };
        locks.extend(lock.map_err(|source| error::failed("lock the demo's member", source))?);
        let seat = context.seat_of(lead.team.clone(), name);
        let workers = Workers::new(move || ScriptedAgent { pace, used: (0, 0, 0.0) });
        let mut config = TeammateConfig::in_process(seat, workers);
        config.process = process::current();
        config.host.clone_from(&host.name);
        agents.spawn(async move {
            if let Err(error) = teammate::run(config).await {
                tracing::warn!(%error, "a scripted agent ended");
            }
        });
    }
    // The log shows that a program gave these answers, and not a person.
    let stand_in = lead.clone().with_user(SeatUser::Agent { answers: true });
    agents.spawn(async move { answer_for_viewer(&stand_in, pace).await });
    add_tasks(&lead).await?;
    mail::send(&lead, "ada", "Hello! The board has the work. Ask me before you publish.").await?;
    Ok(Demo { lead, agents, _locks: locks })
}

impl Demo {
    /// Waits until every task is completed.
    pub async fn finished(&self) -> Result<(), HostError> {
        loop {
            let (_, graph) = board::list(&self.lead).await?;
            if graph.nodes().all(|(_, node)| node.status == Status::Completed) {
                return Ok(());
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Stops the agents.
    pub async fn stop(mut self) {
        self.agents.shutdown().await;
    }
}

/// Creates the context settings' folders below the folder of the demo, and returns them: Claude Code's and brigade's.
pub fn folders(root: &Path) -> Result<(std::path::PathBuf, std::path::PathBuf), HostError> {
    let (claude, state) = (root.join("claude"), root.join("state"));
    for dir in [&claude, &state] {
        let made = std::fs::create_dir_all(dir);
        made.map_err(|source| error::failed(format!("create {}", dir.display()), source))?;
    }
    Ok((claude, state))
}

async fn add_tasks(lead: &Seat) -> Result<(), HostError> {
    let mut tasks = Vec::new();
    for task in TASKS {
        tasks.push(BatchTask {
            place: task.subject.to_owned(),
            source: format!("demo/{}", task.subject),
            plan: TaskPlan {
                description: task.description.to_owned(),
                ..TaskPlan::new(task.subject)
            },
            after: task.after.to_vec(),
            owner: Some(task.owner.parse().map_err(HostError::failed)?),
            is_done: false,
        });
    }
    board::add_all(lead, &tasks, Rerun::AnyTask).await?;
    Ok(())
}

/// Approves requests that the viewer has not answered for a while, so that the demo goes on for a viewer who only watches.
async fn answer_for_viewer(lead: &Seat, pace: DemoPace) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Ok(waiting) = approvals::waiting(lead).await else { continue };
        for approval in waiting {
            let age = lead.clock.now().duration_since(approval.at);
            if age.unsigned_abs() < pace.scaled(VIEWER_TIME) {
                continue;
            }
            let answered = approvals::answer(lead, &approval, Answer::Yes).await;
            if answered.is_ok() {
                let text = "The demo approved your request, because the viewer did not answer it.";
                let _not_sent = mail::send(lead, approval.from.as_str(), text).await;
            }
        }
    }
}

/// An agent that does its tasks as the script says.
struct ScriptedAgent {
    pace: DemoPace,
    /// The tokens and the cost that the agent has reported so far.
    used: (u64, u64, f64),
}

impl Worker for ScriptedAgent {
    async fn turn(&mut self, context: &WorkerContext, _: &str) -> Result<String, String> {
        let seat = &context.seat;
        let mut last = idle_text(seat).await.map_err(|error| error.to_string())?.to_owned();
        while let Some(id) = next_task(seat).await.map_err(|error| error.to_string())? {
            board::claim(seat, id).await.map_err(|error| error.to_string())?;
            last = self.perform(context, id).await?;
            board::done(seat, id).await.map_err(|error| error.to_string())?;
            announce(seat, id).await.map_err(|error| error.to_string())?;
        }
        Ok(last)
    }
}

impl ScriptedAgent {
    /// Does the steps of a task, and returns the closing text.
    async fn perform(&mut self, context: &WorkerContext, id: TaskId) -> Result<String, String> {
        let index = usize::try_from(id.get()).unwrap_or_default().wrapping_sub(1);
        let Some(task) = TASKS.get(index) else {
            return Ok("This task is not in my script, so I only close it.".to_owned());
        };
        for (number, (seconds, step)) in task.steps.iter().enumerate() {
            let pause = self.pace.scaled(Duration::from_secs_f64(*seconds));
            tokio::time::sleep(pause).await;
            let call = format!("{id}-{number}");
            match step {
                Step::Say(text) => record(context, WorkEvent::Said { text: (*text).into() }).await,
                Step::Tool(tool, about) => {
                    self.use_tool(context, &call, tool, about, pause).await;
                }
                Step::Change(path, added, removed) => {
                    let (added, removed) = (*added, *removed);
                    let path = (*path).into();
                    let change = WorkEvent::Changed { path, added, removed, diff: None };
                    record(context, change).await;
                }
                Step::Mail(to, text) => {
                    mail::send(&context.seat, to, *text)
                        .await
                        .map_err(|error| error.to_string())?;
                }
                Step::Ask(command, about) => {
                    let input = json!({ "command": command });
                    match context.ask_permission("shell", about, &input).await {
                        PermissionAnswer::Deny(why) => {
                            let why = if why.is_empty() { "no reason".to_owned() } else { why };
                            return Ok(format!("I did not run `{command}`: {why}."));
                        }
                        _ => self.use_tool(context, &call, "shell", command, pause).await,
                    }
                }
            }
        }
        Ok(task.closing.to_owned())
    }

    async fn use_tool(
        &mut self,
        context: &WorkerContext,
        id: &str,
        tool: &str,
        about: &str,
        pause: Duration,
    ) {
        let (id, tool, about) = (id.to_owned(), tool.to_owned(), about.to_owned());
        record(context, WorkEvent::ToolStarted { id: id.clone(), tool, about }).await;
        tokio::time::sleep(pause / 2).await;
        record(context, WorkEvent::ToolEnded { id, ok: true }).await;
        let (input, output, cost) = self.used;
        self.used = (input + 4200, output + 350, cost + 0.02);
        let (input, output, cost) = self.used;
        record(context, WorkEvent::Used { input, output, cost: Some(cost) }).await;
    }
}

async fn record(context: &WorkerContext, act: WorkEvent) {
    let seat = &context.seat;
    let event = Event::Worked { name: seat.name.to_string(), act };
    if let Err(error) = seat.store.record(&seat.team, event, &seat.actor()).await {
        tracing::warn!(%error, "cannot record an event of the demo");
    }
}

/// Returns the next unfinished task of a member that waits for no other task.
async fn next_task(seat: &Seat) -> Result<Option<TaskId>, board::BoardError> {
    let (_, graph) = board::list(seat).await?;
    let mut tasks = graph.nodes().filter(|(id, node)| {
        let is_open = graph.state(*id) == Some(TaskState::Taken);
        is_open && node.owner.as_deref() == Some(seat.name.as_str())
    });
    Ok(tasks.next().map(|(id, _)| id))
}

/// Returns what a member without a task to start says.
async fn idle_text(seat: &Seat) -> Result<&'static str, board::BoardError> {
    let (_, graph) = board::list(seat).await?;
    let is_open = |node: &TaskNode| {
        node.status != Status::Completed && node.owner.as_deref() == Some(seat.name.as_str())
    };
    Ok(match graph.nodes().any(|(_, node)| is_open(node)) {
        true => "My tasks wait for others.",
        false => "I have no open task.",
    })
}

/// Tells the owners of the tasks that waited for this one.
async fn announce(seat: &Seat, id: TaskId) -> Result<(), HostError> {
    let (_, graph) = board::list(seat).await?;
    for (next, node) in graph.nodes().filter(|(_, node)| node.after.contains(&id)) {
        let owner = node.owner.as_deref().filter(|owner| *owner != seat.name.as_str());
        if let Some(owner) = owner
            && graph.waits_for(next).is_empty()
        {
            let text = format!("Task {id} is done, so task {next} can start.");
            mail::send(seat, owner, &text).await?;
        }
    }
    Ok(())
}

//! The event loop: connects the screen to the store, the clock and the terminal.

use std::collections::HashMap;
use std::ffi::OsString;
use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use brigade_core::approvals;
use brigade_core::projection::MemberView;
use brigade_core::pulse::{REPORT_INTERVAL, ReportedState};
use brigade_core::store::event_log::RecordBatch;
use brigade_host::error::failed;
use brigade_host::state::StateSummary;
use brigade_host::{Context, HostError, state};
use brigade_wire::name::{MemberName, TeamName};
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use jiff::Timestamp;
use rustix::process::Signal;
use thiserror::Error;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};

use super::actions::{self, TeamAction};
use super::programs;
use super::screen::{Effect, ProcessHealth, ReplayState, Screen, ScreenEvent};
use super::source::{RecordSource, open_attached, open_initial_team, open_replay, open_team};
use super::style::Theme;
use super::terminal::Terminal;
use crate::view::View;

/// Options of the dashboard: the person's choices, and facts about the terminal.
#[derive(Clone, Debug)]
pub struct UiOptions {
    /// The view to start in.
    pub view: View,
    /// A journal to replay instead of showing a team.
    pub replay: Option<PathBuf>,
    /// Speed of the replay, as a multiple of the original speed; 0 shows the end of the journal immediately.
    pub speed: f64,
    /// Whether the terminal keeps control of the mouse, for example so that the person can select text.
    pub no_mouse: bool,
    /// Whether to draw in colour.
    pub color: bool,
    /// Whether the terminal is unable to move its cursor. If so, the dashboard returns an error.
    pub is_dumb: bool,
    /// Whether the person works over ssh, where no browser can be opened.
    pub is_remote: bool,
    /// Whether the dashboard runs inside tmux.
    pub in_tmux: bool,
    /// Path of the person's shell.
    pub shell: OsString,
}

/// Standard input or output is not a terminal, or the terminal cannot show the dashboard.
#[derive(Debug, Error)]
#[error("there is no terminal to draw on")]
struct NoTerminal;

/// Minimum time between two redraws. One redraw shows all events that arrived in between.
const FRAME_INTERVAL: Duration = Duration::from_millis(30);

/// Minimum time between two redraws of the screen of one member, which is scrolled and read as a terminal is.
const ATTACHED_FRAME_INTERVAL: Duration = Duration::from_millis(16);

/// Minimum time between two redraws while the history is loading. The screen then changes too fast to read,
/// and each redraw delays the loading.
const LOADING_FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// Signals that end the program. They are caught so that the terminal can be restored before the exit.
const END_SIGNALS: [fn() -> SignalKind; 7] = [
    SignalKind::terminate,
    SignalKind::hangup,
    SignalKind::interrupt,
    SignalKind::quit,
    SignalKind::alarm,
    SignalKind::user_defined1,
    SignalKind::user_defined2,
];

/// Returns `Ready` as soon as one of the signals has arrived.
fn poll_signals(end_signals: &mut [unix::Signal], context: &mut task::Context<'_>) -> Poll<()> {
    let mut received = false;
    for signal in end_signals {
        received |= signal.poll_recv(context).is_ready();
    }
    if received { Poll::Ready(()) } else { Poll::Pending }
}

/// The state of the event loop.
struct EventLoop<'c> {
    context: &'c Arc<Context>,
    options: &'c UiOptions,
    screen: Screen,
    source: RecordSource,
    terminal: Terminal,
    /// Terminal input; `None` while another program uses the terminal.
    keys: Option<EventStream>,
    /// Receives the results of background tasks; each task sends through a clone of `sender`.
    results: mpsc::UnboundedReceiver<ScreenEvent>,
    sender: mpsc::UnboundedSender<ScreenEvent>,
    fetching_approvals: bool,
    fetch_again: bool,
    fetching_summary: bool,
    is_summary_stale: bool,
}

/// Shows the dashboard until the person quits.
pub async fn run(context: Context, ui: &UiOptions) -> Result<(), HostError> {
    let instead = "use `brigade status`, `brigade log` or `brigade approvals` instead";
    check_terminal(ui).map_err(|error| error.hint(instead))?;
    let theme = Theme { color: ui.color };
    let (mut screen, source) = match &ui.replay {
        Some(path) => open_replay(path, ui.speed, theme).await?,
        None => open_initial_team(&context, theme).await?,
    };
    screen.view = ui.view;
    show(context, ui, screen, source).await
}

/// Shows the transcript of one member, with a line to write to it, until the person detaches.
pub async fn attach(
    context: Context,
    member: &MemberName,
    ui: &UiOptions,
) -> Result<(), HostError> {
    let instead = format!("`brigade logs --member {member} --work -f` prints its transcript");
    check_terminal(ui).map_err(|error| error.hint(instead))?;
    let theme = Theme { color: ui.color };
    let (screen, source) = open_attached(&context, member, theme).await?;
    show(context, ui, screen, source).await
}

/// Fails if there is no terminal, or if the terminal cannot position its cursor.
fn check_terminal(ui: &UiOptions) -> Result<(), HostError> {
    if ui.is_dumb || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(HostError::usage(NoTerminal));
    }
    Ok(())
}

async fn show(
    context: Context,
    ui: &UiOptions,
    screen: Screen,
    source: RecordSource,
) -> Result<(), HostError> {
    let context = Arc::new(context);
    let (sender, results) = mpsc::unbounded_channel();
    let terminal =
        Terminal::set_up(!ui.no_mouse).map_err(|source| failed("set up the terminal", source))?;
    let keys = Some(EventStream::new());
    let mut event_loop = EventLoop {
        context: &context,
        options: ui,
        screen,
        source,
        terminal,
        keys,
        results,
        sender,
        fetching_approvals: false,
        fetch_again: false,
        fetching_summary: false,
        is_summary_stale: false,
    };
    event_loop.run_loop().await.map_err(|source| failed("draw on the terminal", source))
}

impl EventLoop<'_> {
    async fn run_loop(&mut self) -> io::Result<()> {
        let mut end_signals =
            END_SIGNALS.into_iter().map(|kind| signal(kind())).collect::<io::Result<Vec<_>>>()?;
        // A process that died reports nothing, so the event loop checks periodically which processes are
        // alive. It polls nothing else.
        let mut health_timer = interval(REPORT_INTERVAL);
        let mut clock_timer = interval(Duration::from_secs(1));
        let mut has_more_records = true;
        self.draw()?;
        let mut drawn_at = Instant::now();
        let mut stale = false;
        loop {
            let frame = match (self.is_loading(), &self.screen.attached) {
                (true, _) => LOADING_FRAME_INTERVAL,
                (false, None) => FRAME_INTERVAL,
                (false, Some(_)) => ATTACHED_FRAME_INTERVAL,
            };
            let event = tokio::select! {
                biased;
                () = poll_fn(|context| poll_signals(&mut end_signals, context)) => return Ok(()),
                key = next_key(&mut self.keys) => match key {
                    None => return Ok(()),
                    Some(input) => match translate_event(input?) {
                        Some(event) => Some(event),
                        None => { stale = true; None }
                    },
                },
                Some(result) = self.results.recv() => Some(result),
                () = sleep_until(drawn_at + frame), if stale => None,
                _ = clock_timer.tick() => Some(ScreenEvent::Time(self.now())),
                batch = self.source.next(), if has_more_records => match batch {
                    Some(batch) => Some(ScreenEvent::Records(batch)),
                    None => {
                        has_more_records = false;
                        Some(ScreenEvent::Records(RecordBatch { records: Vec::new(), caught_up: true }))
                    }
                },
                _ = health_timer.tick() => { self.check_processes(); None }
            };
            if let Some(event) = event {
                stale = true;
                let was_loading = self.is_loading();
                if matches!(event, ScreenEvent::Records(_)) {
                    self.sync_clock();
                }
                if matches!(event, ScreenEvent::Approvals(_)) {
                    self.fetching_approvals = false;
                    if std::mem::take(&mut self.fetch_again) {
                        self.fetch_approvals();
                    }
                }
                if matches!(event, ScreenEvent::Summary(_)) {
                    self.fetching_summary = false;
                    if std::mem::take(&mut self.is_summary_stale) {
                        self.fetch_summary();
                    }
                }
                // Redraw immediately after a key press, and as soon as the history is loaded.
                let is_key = matches!(event, ScreenEvent::Key(_) | ScreenEvent::Paste(_));
                for effect in self.screen.update(event) {
                    if effect == Effect::Quit {
                        return Ok(());
                    }
                    if let Effect::SwitchTeam(team) = effect {
                        self.switch_team(team).await;
                        has_more_records = true;
                        continue;
                    }
                    self.apply_effect(effect).await?;
                }
                if is_key || (was_loading && !self.is_loading()) {
                    self.draw()?;
                    (drawn_at, stale) = (Instant::now(), false);
                }
            }
            if stale && drawn_at.elapsed() >= frame {
                self.draw()?;
                (drawn_at, stale) = (Instant::now(), false);
            }
        }
    }

    /// Returns whether the history is still loading.
    fn is_loading(&self) -> bool {
        let is_instant = |replay: ReplayState| replay.speed == 0.0 && !replay.over;
        !self.screen.caught_up || self.screen.replay.is_some_and(is_instant)
    }

    fn draw(&mut self) -> io::Result<()> {
        self.screen.frame = self.terminal.draw(&self.screen)?;
        Ok(())
    }

    fn now(&self) -> Timestamp {
        match &self.source {
            RecordSource::Live(_) => self.context.clock.now(),
            RecordSource::Replay(player) => player.now(),
        }
    }

    /// Sets the screen's clock to the current time of the replay.
    fn sync_clock(&mut self) {
        if let RecordSource::Replay(player) = &self.source {
            let (now, state) = (player.now(), player.state());
            self.screen.update(ScreenEvent::Time(now));
            self.screen.update(ScreenEvent::Replay(state));
        }
    }

    async fn switch_team(&mut self, team: TeamName) {
        match open_team(self.context, team, self.screen.theme).await {
            Ok((mut screen, source)) => {
                screen.view = self.screen.view;
                (self.screen, self.source) = (screen, source);
                // Drop results that are still pending for the previous team.
                (self.sender, self.results) = mpsc::unbounded_channel();
                (self.fetching_approvals, self.fetch_again) = (false, false);
                self.check_processes();
            }
            Err(error) => self.screen.show_error(error.to_string()),
        }
    }

    async fn apply_effect(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Run(action) => self.run_action(action),
            Effect::OpenWindow(name) => {
                let program = self.member(&name).and_then(|(team, person)| {
                    programs::window(self.context, self.options.in_tmux, &team, person)
                });
                self.run_program(program).await?;
            }
            Effect::OpenShell(name) => {
                let program = self.member(&name).and_then(|(team, person)| {
                    programs::shell(self.context, &self.options.shell, &team, person)
                });
                self.run_program(program).await?;
            }
            Effect::FetchApprovals => self.fetch_approvals(),
            Effect::FetchSummary => self.fetch_summary(),
            Effect::FetchTeams => {
                let (context, sender) = (Arc::clone(self.context), self.sender.clone());
                tokio::spawn(async move {
                    if let Ok(teams) = context.teams().await {
                        let _ignored = sender.send(ScreenEvent::Teams(teams));
                    }
                });
            }
            Effect::Copy(text) => self.terminal.copy(&text)?,
            Effect::Notify(text) => self.terminal.notify(&text)?,
            Effect::OpenLink(link) => self.open_link(&link)?,
            Effect::Replay(command) => {
                if let RecordSource::Replay(player) = &mut self.source {
                    player.command(command);
                }
                self.sync_clock();
            }
            Effect::Redraw => self.terminal.clear()?,
            Effect::Suspend => self.suspend().await?,
            Effect::SwitchTeam(_) | Effect::Quit => {}
        }
        Ok(())
    }

    /// Runs an action in the background.
    fn run_action(&mut self, action: TeamAction) {
        let Ok(team) = self.screen.team.parse::<TeamName>() else { return };
        let Some(me) = self.screen.me.clone() else { return };
        self.screen.show_progress(action.progress_text());
        let (context, sender) = (Arc::clone(self.context), self.sender.clone());
        let is_answer =
            self.screen.attached.is_some() && matches!(action, TeamAction::Answer { .. });
        let written = match &action {
            TeamAction::Write { text, .. } => Some(text.clone()),
            _ => None,
        };
        tokio::spawn(async move {
            let result = actions::carry_out(&context, &team, &me, action).await;
            let result = result.map_err(|error| error.to_one_line());
            let event = match (result, written) {
                (Err(why), Some(text)) => ScreenEvent::NotSent { text, why },
                (result, _) if is_answer => ScreenEvent::AnswerDone(result),
                (result, _) => ScreenEvent::Done(result),
            };
            let _ignored = sender.send(event);
        });
    }

    /// Fetches the state of the attached member. If a fetch is already running, one more fetch follows it.
    fn fetch_summary(&mut self) {
        let Some(attached) = &self.screen.attached else { return };
        let Ok(team) = self.screen.team.parse::<TeamName>() else { return };
        if std::mem::replace(&mut self.fetching_summary, true) {
            self.is_summary_stale = true;
            return;
        }
        let (name, request) = (attached.member.clone(), self.screen.attached_request().cloned());
        let earlier = attached.summary.clone();
        let (context, sender) = (Arc::clone(self.context), self.sender.clone());
        tokio::spawn(async move {
            let lead = context.seat_of(team, MemberName::lead());
            let fetched = async {
                state::member_summary(&context.host()?, &lead, &name, request.as_ref()).await
            };
            let summary = match fetched.await {
                Ok(summary) => summary,
                Err(error) => StateSummary {
                    words: format!("state unknown: {}", error.to_one_line()),
                    liveness: None,
                    ..earlier.unwrap_or_default()
                },
            };
            let _ignored = sender.send(ScreenEvent::Summary(summary));
        });
    }

    /// Fetches the open approval requests. If a fetch is already running, one more fetch follows it, however
    /// many calls arrive in the meantime.
    fn fetch_approvals(&mut self) {
        if std::mem::replace(&mut self.fetching_approvals, true) {
            self.fetch_again = true;
            return;
        }
        let Ok(team) = self.screen.team.parse::<TeamName>() else { return };
        let Some(me) = self.screen.me.clone() else { return };
        let seat = self.context.seat_of(team, me);
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let waiting = approvals::waiting(&seat).await.map_err(|error| error.to_string());
            let _ignored = sender.send(ScreenEvent::Approvals(waiting));
        });
    }

    /// Checks in the background whether the members' processes are alive.
    fn check_processes(&self) {
        if matches!(self.source, RecordSource::Replay(_)) {
            return;
        }
        let Ok(team) = self.screen.team.parse::<TeamName>() else { return };
        let members = self.screen.projection.members();
        let names: Vec<MemberName> =
            members.iter().filter_map(|person| person.member_name()).collect();
        let (context, sender) = (Arc::clone(self.context), self.sender.clone());
        tokio::spawn(async move {
            let Ok(host) = context.host() else { return };
            let lead = context.seat_of(team, MemberName::lead());
            let mut health = HashMap::new();
            for name in names {
                let Ok(host) = host.of_member(&lead.team, &name) else { continue };
                let is_here =
                    host.registry.member(&lead.team, &name).is_ok_and(|spec| spec.is_some());
                let Ok((_, pulse, judged)) = state::liveness(&host, &lead, &name).await else {
                    continue;
                };
                // Skip members that run on another host and never sent a pulse: their state is unknown.
                if is_here || pulse.is_some() {
                    let (host, state) = pulse.map(|pulse| (pulse.host, pulse.state)).unzip();
                    let host = host.filter(|host| !host.is_empty());
                    let retries = match state {
                        Some(ReportedState::Working { retries }) => retries,
                        _ => None,
                    };
                    health.insert(name.to_string(), ProcessHealth { judged, host, retries });
                }
            }
            let _ignored = sender.send(ScreenEvent::Health(health));
        });
    }

    /// Opens a link in the browser. Without a browser, for example over ssh, copies the link to the
    /// clipboard.
    fn open_link(&mut self, link: &str) -> io::Result<()> {
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let opened = !self.options.is_remote
            && std::process::Command::new(program)
                .arg(link)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .is_ok();
        if opened {
            self.screen.show_notice(format!("opening {link}"));
            return Ok(());
        }
        self.screen.show_notice(format!("copied {link}"));
        self.terminal.copy(link)
    }

    /// Finds a member of the current team by name.
    fn member(&self, name: &MemberName) -> Result<(TeamName, &MemberView), String> {
        let team = self.screen.team.parse().map_err(|_| "no team".to_owned())?;
        Ok((team, self.screen.projection.member_named(name.as_str()).ok_or("no such member")?))
    }

    /// Lets a program use the terminal until that program exits.
    async fn run_program(
        &mut self,
        program: Result<std::process::Command, String>,
    ) -> io::Result<()> {
        let mut program = match program {
            Ok(program) => tokio::process::Command::from(program),
            Err(why) => {
                self.screen.show_error(why);
                return Ok(());
            }
        };
        // Stop reading keys: the other program must receive them.
        self.keys = None;
        let status = self.terminal.release_while(async || program.status().await).await?;
        self.keys = Some(EventStream::new());
        if let Err(error) = status {
            self.screen.show_error(error.to_string());
        }
        Ok(())
    }

    /// Suspends this process, as ctrl-z does, until the shell resumes it.
    async fn suspend(&mut self) -> io::Result<()> {
        self.keys = None;
        let stop = async || {
            let _stopped = rustix::process::kill_current_process_group(Signal::STOP);
        };
        self.terminal.release_while(stop).await?;
        self.keys = Some(EventStream::new());
        Ok(())
    }
}

/// Waits for the next terminal event.
async fn next_key(keys: &mut Option<EventStream>) -> Option<io::Result<Event>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// Translates a terminal event; returns `None` if the event requires only a redraw.
fn translate_event(event: Event) -> Option<ScreenEvent> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(ScreenEvent::Key(key)),
        Event::Mouse(mouse) => Some(ScreenEvent::Mouse(mouse)),
        Event::Paste(text) => Some(ScreenEvent::Paste(text)),
        _ => None,
    }
}

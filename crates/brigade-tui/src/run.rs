//! The loop that knows the store, the clock and the terminal.

use std::collections::HashMap;
use std::ffi::OsString;
use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use brigade_core::approvals;
use brigade_core::event_log::{Batch, Feed};
use brigade_core::pulse::{BEAT, State};
use brigade_files::of_file;
use brigade_host::error::failed;
use brigade_host::{Context, HostError, state, team_file};
use brigade_wire::name::{MemberName, TeamName};
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use jiff::Timestamp;
use rustix::process::Signal;
use thiserror::Error;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};

use super::keys::Command;
use super::lend;
use super::orders::{self, Order};
use super::replay::Player;
use super::screen::{Effect, Happening, Replay, Screen, Vital};
use super::style::Theme;
use super::terminal::Terminal;
use super::views::View;

/// What a person chose, and what the terminal is like.
#[derive(Clone, Debug)]
pub struct Options {
    /// The view to begin with.
    pub view: View,
    /// A journal to play, in place of a team.
    pub replay: Option<PathBuf>,
    /// How many times as fast as it was; 0 shows its end.
    pub speed: f64,
    /// Whether the mouse is left to the terminal.
    pub no_mouse: bool,
    /// Whether to draw in colour.
    pub color: bool,
    /// Whether the terminal cannot move its cursor.
    pub is_dumb: bool,
    /// Whether the person works over ssh, where no browser can be opened.
    pub is_remote: bool,
    /// Whether the dashboard runs inside tmux.
    pub in_tmux: bool,
    /// The person's shell.
    pub shell: OsString,
}

/// There is no terminal, or one that cannot be drawn on.
#[derive(Debug, Error)]
#[error("there is no terminal to draw on")]
struct NoTerminal;

/// How soon after one drawing the next may come: what comes faster is drawn together.
const FRAME: Duration = Duration::from_millis(30);

/// The same while the past is read, of which one cannot see much: what is drawn then, is waited for.
const READING: Duration = Duration::from_millis(100);

/// The signals by which a program is ended, as far as it hears of them: the terminal is given back first.
const ENDS: [fn() -> SignalKind; 7] = [
    SignalKind::terminate,
    SignalKind::hangup,
    SignalKind::interrupt,
    SignalKind::quit,
    SignalKind::alarm,
    SignalKind::user_defined1,
    SignalKind::user_defined2,
];

/// Ready as soon as one of them came.
fn heard(ends: &mut [unix::Signal], context: &mut task::Context<'_>) -> Poll<()> {
    let mut came = false;
    for end in ends {
        came |= end.poll_recv(context).is_ready();
    }
    if came { Poll::Ready(()) } else { Poll::Pending }
}

/// Where what happens comes from.
enum Source {
    Live(Feed),
    Replay(Player),
}

impl Source {
    async fn next(&mut self) -> Option<Batch> {
        match self {
            Self::Live(feed) => feed.next().await,
            Self::Replay(player) => Some(player.next().await),
        }
    }
}

/// What the loop holds.
struct Show<'c> {
    context: &'c Arc<Context>,
    options: &'c Options,
    screen: Screen,
    source: Source,
    terminal: Terminal,
    /// What is typed; `None` while another program has the terminal.
    keys: Option<EventStream>,
    /// What was asked for and comes when it is ready, and the way it comes.
    answers: mpsc::UnboundedReceiver<Happening>,
    answer: mpsc::UnboundedSender<Happening>,
    asking_approvals: bool,
    ask_again: bool,
}

/// Shows the dashboard until the person leaves it.
pub async fn run(context: Context, ui: &Options) -> Result<(), HostError> {
    if ui.is_dumb || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let error = HostError::usage(NoTerminal);
        return Err(
            error.hint("`brigade status`, `brigade log` and `brigade approvals` print the same")
        );
    }
    let context = Arc::new(context);
    let theme = Theme { color: ui.color };
    let (mut screen, source) = match &ui.replay {
        Some(path) => open_replay(path, ui.speed, theme).await?,
        None => open_any(&context, theme).await?,
    };
    screen.view = ui.view;
    let (answer, answers) = mpsc::unbounded_channel();
    let terminal =
        Terminal::take(!ui.no_mouse).map_err(|source| failed("take the terminal", source))?;
    let keys = Some(EventStream::new());
    let mut show = Show {
        context: &context,
        options: ui,
        screen,
        source,
        terminal,
        keys,
        answers,
        answer,
        asking_approvals: false,
        ask_again: false,
    };
    show.go_on().await.map_err(|source| failed("draw on the terminal", source))
}

/// The team that was named, the only one there is, or that of this folder's `brigade.toml`; of others the first,
/// and the question which.
async fn open_any(context: &Context, theme: Theme) -> Result<(Screen, Source), HostError> {
    let teams = context.store.teams().await?;
    let of_folder = || team_file::team_of(&context.cwd).filter(|team| teams.contains(team));
    match (context.named_team(), teams.as_slice()) {
        (None, [first, _, ..]) if of_folder().is_none() => {
            let (mut screen, source) = open(context, first.clone(), theme).await?;
            // The teams are known; what else the question would ask for is not needed.
            let _known = screen.command(Command::Teams);
            Ok((screen, source))
        }
        _ => open(context, context.team().await?, theme).await,
    }
}

/// A team of the store, from its beginning and then on.
async fn open(
    context: &Context,
    team: TeamName,
    theme: Theme,
) -> Result<(Screen, Source), HostError> {
    let (feed, library) = context.store.chronicle(&team).await?;
    let mut screen = Screen::new(team.to_string(), library, theme, context.clock.now());
    // Who has no name here can look.
    screen.me = context.identity(&team).await.ok();
    if let Some(me) = context.named_me() {
        let seat = context.seat_of(team.clone(), me.clone());
        if context.store.team(&team).await?.is_some() && seat.role().await?.is_none() {
            return Err(seat.absent().await?.into());
        }
    }
    screen.teams = context.store.teams().await?;
    Ok((screen, Source::Live(feed)))
}

async fn open_replay(path: &Path, speed: f64, theme: Theme) -> Result<(Screen, Source), HostError> {
    let (feed, library) = of_file(path).map_err(HostError::failed)?;
    let player = Player::start(feed, speed).await;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut screen = Screen::new(name.unwrap_or_default(), library, theme, player.now());
    screen.replay = Some(player.state());
    Ok((screen, Source::Replay(player)))
}

impl Show<'_> {
    async fn go_on(&mut self) -> io::Result<()> {
        let mut ends = ENDS.into_iter().map(|end| signal(end())).collect::<io::Result<Vec<_>>>()?;
        // A process that died says nothing, so this alone is looked at again and again.
        let mut beat = interval(BEAT);
        let mut second = interval(Duration::from_secs(1));
        let mut feeds = true;
        self.draw()?;
        let mut drawn = Instant::now();
        let mut stale = false;
        loop {
            let frame = if self.reads() { READING } else { FRAME };
            let happening = tokio::select! {
                biased;
                () = poll_fn(|context| heard(&mut ends, context)) => return Ok(()),
                key = next_key(&mut self.keys) => match key {
                    None => return Ok(()),
                    Some(event) => match told(event?) {
                        Some(happening) => Some(happening),
                        None => { stale = true; None }
                    },
                },
                Some(answer) = self.answers.recv() => Some(answer),
                () = sleep_until(drawn + frame), if stale => None,
                _ = second.tick() => Some(Happening::Time(self.now())),
                batch = self.source.next(), if feeds => match batch {
                    Some(batch) => Some(Happening::Records(batch)),
                    None => {
                        feeds = false;
                        Some(Happening::Records(Batch { records: Vec::new(), caught_up: true }))
                    }
                },
                _ = beat.tick() => { self.look_at_vitals(); None }
            };
            if let Some(happening) = happening {
                stale = true;
                let was_reading = self.reads();
                if matches!(happening, Happening::Records(_)) {
                    self.in_its_time();
                }
                if matches!(happening, Happening::Approvals(_)) {
                    self.asking_approvals = false;
                    if std::mem::take(&mut self.ask_again) {
                        self.look_for_approvals();
                    }
                }
                // A key is answered by what one sees at once; and what was waited for is seen at once.
                let is_key = matches!(happening, Happening::Key(_) | Happening::Paste(_));
                for effect in self.screen.update(happening) {
                    if effect == Effect::Quit {
                        return Ok(());
                    }
                    if let Effect::Switch(team) = effect {
                        self.switch(team).await;
                        feeds = true;
                        continue;
                    }
                    self.carry_out(effect).await?;
                }
                if is_key || (was_reading && !self.reads()) {
                    self.draw()?;
                    (drawn, stale) = (Instant::now(), false);
                }
            }
            if stale && drawn.elapsed() >= frame {
                self.draw()?;
                (drawn, stale) = (Instant::now(), false);
            }
        }
    }

    /// Whether what happened so far is still being read.
    fn reads(&self) -> bool {
        let at_once = |replay: Replay| replay.speed == 0.0 && !replay.over;
        !self.screen.caught_up || self.screen.replay.is_some_and(at_once)
    }

    fn draw(&mut self) -> io::Result<()> {
        self.screen.drawn = self.terminal.draw(&self.screen)?;
        Ok(())
    }

    fn now(&self) -> Timestamp {
        match &self.source {
            Source::Live(_) => self.context.clock.now(),
            Source::Replay(player) => player.now(),
        }
    }

    /// In a replay it is as late as it was then.
    fn in_its_time(&mut self) {
        if let Source::Replay(player) = &self.source {
            let (now, state) = (player.now(), player.state());
            self.screen.update(Happening::Time(now));
            self.screen.update(Happening::Replay(state));
        }
    }

    async fn switch(&mut self, team: TeamName) {
        match open(self.context, team, self.screen.theme).await {
            Ok((mut screen, source)) => {
                screen.view = self.screen.view;
                (self.screen, self.source) = (screen, source);
                // What was asked about the other team is no answer about this one.
                (self.answer, self.answers) = mpsc::unbounded_channel();
                (self.asking_approvals, self.ask_again) = (false, false);
                self.look_at_vitals();
            }
            Err(error) => self.screen.say(error.to_string(), true),
        }
    }

    async fn carry_out(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Do(order @ (Order::Pane { .. } | Order::Worktree { .. })) => {
                self.lend(&order).await?;
            }
            Effect::Do(order) => self.order(order),
            Effect::LookForApprovals => self.look_for_approvals(),
            Effect::LookForTeams => {
                let (context, answer) = (Arc::clone(self.context), self.answer.clone());
                tokio::spawn(async move {
                    if let Ok(teams) = context.store.teams().await {
                        let _over = answer.send(Happening::Teams(teams));
                    }
                });
            }
            Effect::Copy(text) => self.terminal.copy(&text)?,
            Effect::Notify(text) => self.terminal.notify(&text)?,
            Effect::Browse(link) => self.browse(&link)?,
            Effect::Replay(command) => {
                if let Source::Replay(player) = &mut self.source {
                    player.command(command);
                }
                self.in_its_time();
            }
            Effect::Redraw => self.terminal.clear()?,
            Effect::Suspend => self.suspend().await?,
            Effect::Switch(_) | Effect::Quit => {}
        }
        Ok(())
    }

    /// Has an order carried out; the screen goes on meanwhile.
    fn order(&mut self, order: Order) {
        let Ok(team) = self.screen.team.parse::<TeamName>() else { return };
        let Some(me) = self.screen.me.clone() else { return };
        self.screen.say_doing(order.doing());
        let (context, answer) = (Arc::clone(self.context), self.answer.clone());
        tokio::spawn(async move {
            let came = orders::carry_out(&context, &team, &me, order).await;
            let _over = answer.send(Happening::Done(came.map_err(|error| error.in_one_line())));
        });
    }

    /// Asks the core what waits. Of several who ask while one answer is on its way one more is enough.
    fn look_for_approvals(&mut self) {
        if std::mem::replace(&mut self.asking_approvals, true) {
            self.ask_again = true;
            return;
        }
        let Ok(team) = self.screen.team.parse::<TeamName>() else { return };
        let Some(me) = self.screen.me.clone() else { return };
        let seat = self.context.seat_of(team, me);
        let answer = self.answer.clone();
        tokio::spawn(async move {
            let waiting = approvals::waiting(&seat).await.map_err(|error| error.to_string());
            let _over = answer.send(Happening::Approvals(waiting));
        });
    }

    /// Looks at the processes of the members.
    fn look_at_vitals(&self) {
        if matches!(self.source, Source::Replay(_)) {
            return;
        }
        let Ok(team) = self.screen.team.parse::<TeamName>() else { return };
        let members = self.screen.picture.members();
        let names: Vec<MemberName> =
            members.iter().filter_map(|person| person.member_name()).collect();
        let (context, answer) = (Arc::clone(self.context), self.answer.clone());
        tokio::spawn(async move {
            let Ok(host) = context.host() else { return };
            let lead = context.seat_of(team, MemberName::lead());
            let mut vitals = HashMap::new();
            for name in names {
                let is_here =
                    host.registry.member(&lead.team, &name).is_ok_and(|spec| spec.is_some());
                let Ok((_, pulse, judged)) = state::liveness(&host, &lead, &name).await else {
                    continue;
                };
                // Of those that no process of ours plays, and that never said anything, nothing is known.
                if is_here || pulse.is_some() {
                    let (host, state) = pulse.map(|pulse| (pulse.host, pulse.state)).unzip();
                    let host = host.filter(|host| !host.is_empty());
                    let retries = match state {
                        Some(State::Working { retries }) => retries,
                        _ => None,
                    };
                    vitals.insert(name.to_string(), Vital { judged, host, retries });
                }
            }
            let _over = answer.send(Happening::Vitals(vitals));
        });
    }

    /// Opens an address; where there is no browser, as over ssh, it is copied.
    fn browse(&mut self, link: &str) -> io::Result<()> {
        let is_far = self.options.is_remote;
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let opened = !is_far
            && std::process::Command::new(program)
                .arg(link)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .is_ok();
        if opened {
            self.screen.say(format!("opening {link}"), false);
            return Ok(());
        }
        self.screen.say(format!("copied {link}"), false);
        self.terminal.copy(link)
    }

    /// Gives the terminal to a member's window, or to a shell where it works.
    async fn lend(&mut self, order: &Order) -> io::Result<()> {
        let program = match self.program(order) {
            Ok(program) => program,
            Err(why) => {
                self.screen.say(why, true);
                return Ok(());
            }
        };
        let mut program = tokio::process::Command::from(program);
        // Whoever reads keys meanwhile would take them away from it.
        self.keys = None;
        let came = self.terminal.lend(async || program.status().await).await?;
        self.keys = Some(EventStream::new());
        if let Err(error) = came {
            self.screen.say(error.to_string(), true);
        }
        Ok(())
    }

    /// What is run for that.
    fn program(&self, order: &Order) -> Result<std::process::Command, String> {
        let (Order::Pane { name } | Order::Worktree { name }) = order else {
            return Err("it needs no terminal".into());
        };
        let team: TeamName = self.screen.team.parse().map_err(|_| "no team".to_owned())?;
        let person = self.screen.picture.called(name.as_str()).ok_or("nobody is called that")?;
        match order {
            Order::Pane { .. } => lend::window(self.context, self.options, &team, person),
            _ => lend::shell(self.context, self.options, &team, person),
        }
    }

    /// Stops until the shell says otherwise, as ctrl-z does to any program.
    async fn suspend(&mut self) -> io::Result<()> {
        self.keys = None;
        let stop = async || {
            let _stopped = rustix::process::kill_current_process_group(Signal::STOP);
        };
        self.terminal.lend(stop).await?;
        self.keys = Some(EventStream::new());
        Ok(())
    }
}

/// The next thing that is typed.
async fn next_key(keys: &mut Option<EventStream>) -> Option<io::Result<Event>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// What the terminal told; `None` for what only means that it has to be drawn anew.
fn told(event: Event) -> Option<Happening> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Happening::Key(key)),
        Event::Mouse(mouse) => Some(Happening::Mouse(mouse)),
        Event::Paste(text) => Some(Happening::Paste(text)),
        _ => None,
    }
}

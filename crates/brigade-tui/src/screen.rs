//! What is on the screen, and what becomes of it: one state, one [`Screen::update`].
//!
//! Nothing here looks at a clock, a file or a terminal. What is to be done is given back as [`Effect`]s.

use std::collections::HashMap;

use brigade_core::approvals::Approval;
use brigade_core::event::Record;
use brigade_core::event_log::{Batch, Library};
use brigade_core::projection::{Kind, Person, Picture};
use brigade_core::pulse::{Judged, Liveness};
use brigade_wire::name::{MemberName, TeamName};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::layout::Position;

use super::canvas::{Drawn, Hit};
use super::dialog::{self, Dialog};
use super::keys::{self, Command};
use super::orders::Order;
use super::style::Theme;
use super::views::{self, View};

/// Something that the screen is told.
#[derive(Debug)]
pub(crate) enum Happening {
    /// Things happened in the team.
    Records(Batch),
    /// This waits for an answer of ours, as the core has it.
    Approvals(Result<Vec<Approval>, String>),
    /// How the members' processes are.
    Vitals(HashMap<String, Vital>),
    /// The teams there are.
    Teams(Vec<TeamName>),
    /// What was ordered is done, or was refused.
    Done(Result<String, String>),
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// It is that late now.
    Time(Timestamp),
    /// The replay runs like this now.
    Replay(Replay),
}

/// Something that is to be done beyond the screen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// What a person ordered.
    Do(Order),
    /// Look which requests wait.
    LookForApprovals,
    /// Put this where the terminal's owner pastes from.
    Copy(String),
    /// Open this address.
    Browse(String),
    /// Get the attention of whoever does not look.
    Notify(String),
    /// Show another team.
    Switch(TeamName),
    /// Look which teams there are.
    LookForTeams,
    /// Change how the replay runs.
    Replay(Command),
    Redraw,
    Suspend,
    Quit,
}

/// How a member's process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vital {
    pub(crate) judged: Judged,
    /// The host it is on, if that is another.
    pub(crate) host: Option<String>,
    /// That its agent does not get through to its vendor, in the agent's words.
    pub(crate) retries: Option<String>,
}

/// How a replay runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Replay {
    pub(crate) speed: f64,
    pub(crate) paused: bool,
    pub(crate) over: bool,
}

/// A word about what was done, for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    at: Timestamp,
}

/// How long a word about what was done stays.
const NOTICE: jiff::SignedDuration = jiff::SignedDuration::from_secs(8);

/// What is on the screen.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) picture: Picture,
    pub(crate) library: Library,
    pub(crate) theme: Theme,
    /// The team; of a journal that is replayed its file's name.
    pub(crate) team: String,
    pub(crate) teams: Vec<TeamName>,
    /// In whose name orders are given; nobody's if one can only look.
    pub(crate) me: Option<MemberName>,
    pub(crate) now: Timestamp,
    pub(crate) replay: Option<Replay>,
    /// Whether all that happened so far has been heard.
    pub(crate) caught_up: bool,
    pub(crate) approvals: Vec<Approval>,
    knows_approvals: bool,
    pub(crate) vitals: HashMap<String, Vital>,
    pub(crate) view: View,
    /// What is chosen, by itself and not by its place: what arrives does not move it.
    pub(crate) member: Option<String>,
    pub(crate) letter: Option<u32>,
    pub(crate) task: Option<u64>,
    pub(crate) request: Option<String>,
    pub(crate) states: views::States,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) notice: Option<Notice>,
    pub(crate) drawn: Drawn,
}

impl Screen {
    pub(crate) fn new(team: String, library: Library, theme: Theme, now: Timestamp) -> Self {
        Self {
            picture: Picture::default(),
            library,
            theme,
            team,
            teams: Vec::new(),
            me: None,
            now,
            replay: None,
            caught_up: false,
            approvals: Vec::new(),
            knows_approvals: false,
            vitals: HashMap::new(),
            view: View::Team,
            member: None,
            letter: None,
            task: None,
            request: None,
            states: views::States::default(),
            dialog: None,
            notice: None,
            drawn: Drawn::default(),
        }
    }

    /// What becomes of the screen, and what is to be done.
    pub(crate) fn update(&mut self, happening: Happening) -> Vec<Effect> {
        match happening {
            Happening::Records(batch) => self.records(&batch),
            Happening::Approvals(Ok(approvals)) => self.waiting(approvals),
            Happening::Approvals(Err(why)) => {
                self.say(why, true);
                Vec::new()
            }
            Happening::Vitals(vitals) => {
                self.vitals = vitals;
                Vec::new()
            }
            Happening::Teams(teams) => {
                self.teams = teams;
                dialog::know_teams(self);
                Vec::new()
            }
            Happening::Done(came) => {
                let is_error = came.is_err();
                let (Ok(text) | Err(text)) = came;
                self.say(text, is_error);
                Vec::new()
            }
            Happening::Key(key) => self.key(&key),
            Happening::Paste(text) => {
                if let Some(dialog) = &mut self.dialog {
                    dialog.paste(&text);
                }
                Vec::new()
            }
            Happening::Mouse(mouse) => self.mouse(mouse),
            Happening::Time(now) => {
                self.now = now;
                let is_old = |notice: &Notice| now.duration_since(notice.at) > NOTICE;
                self.notice = self.notice.take().filter(|notice| !is_old(notice));
                Vec::new()
            }
            Happening::Replay(replay) => {
                self.replay = Some(replay);
                Vec::new()
            }
        }
    }

    /// Says what is being done, until it is.
    pub(crate) fn say_doing(&mut self, text: String) {
        self.notice = Some(Notice { text, is_error: false, at: Timestamp::MAX });
    }

    /// Says something at the bottom of the screen.
    pub(crate) fn say(&mut self, text: impl Into<String>, is_error: bool) {
        self.notice = Some(Notice { text: text.into(), is_error, at: self.now });
    }

    fn records(&mut self, batch: &Batch) -> Vec<Effect> {
        let asked = self.picture.asked_so_far();
        for (spot, record) in &batch.records {
            self.picture.update(*spot, record);
        }
        let was_caught_up = self.caught_up;
        self.caught_up |= batch.caught_up;
        let is_news = self.picture.asked_so_far() != asked;
        if !self.caught_up || (was_caught_up && !is_news) {
            return Vec::new();
        }
        if self.replay.is_none() && self.leads() {
            return vec![Effect::LookForApprovals];
        }
        let waiting = self.told_approvals();
        self.waiting(waiting)
    }

    /// Whether orders are given in the lead's name.
    pub(crate) fn leads(&self) -> bool {
        let lead = self.picture.lead().map(|lead| &*lead.name);
        self.me.as_ref().is_some_and(|me| lead == Some(me.as_str()))
    }

    /// Whether what waits for an answer waits for whoever looks; a replay is looked at as the lead did.
    pub(crate) fn answers(&self) -> bool {
        self.replay.is_some() || self.leads()
    }

    /// What waits for an answer, as the journal tells it: for who may look and not answer.
    fn told_approvals(&self) -> Vec<Approval> {
        let plain = |kind| matches!(kind, Kind::PlanRequest | Kind::PermissionRequest);
        let asked = self.picture.asked().iter().filter(|asked| plain(asked.kind));
        let open = asked.enumerate().filter(|(_, asked)| asked.reply.is_none());
        let told = |(place, asked): (usize, &brigade_core::projection::Asked)| {
            Approval::told(&*self.library.record(asked.spot)?, place + 1)
        };
        open.filter_map(told).collect()
    }

    fn waiting(&mut self, approvals: Vec<Approval>) -> Vec<Effect> {
        let was =
            |new: &Approval| self.approvals.iter().any(|old| old.request_id == new.request_id);
        let new: Vec<&Approval> = approvals.iter().filter(|approval| !was(approval)).collect();
        let notify = match new.as_slice() {
            [] => None,
            [one] => Some(format!("{} asks: {}", one.from, one.wanted.kind())),
            many => Some(format!("{} requests wait for an answer", many.len())),
        };
        // Whoever opens the screen sees what waited; only what comes after calls.
        let is_first = !std::mem::replace(&mut self.knows_approvals, true);
        let notify = notify.filter(|_| !is_first && self.replay.is_none() && self.leads());
        let is_there = |id: &String| approvals.iter().any(|approval| approval.request_id == *id);
        self.request = self.request.take().filter(is_there);
        self.approvals = approvals;
        notify.map(Effect::Notify).into_iter().collect()
    }

    fn key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        // Escape and a key that is read together with it, as on a slow line, are told as that key with
        // Alt. Only a form knows keys with Alt, and what was typed there is not thrown away for one.
        if let KeyCode::Char(_) = key.code
            && key.modifiers.contains(KeyModifiers::ALT)
            && !matches!(self.dialog, Some(Dialog::Form(_)))
        {
            let mut effects = self.key(&KeyEvent::from(KeyCode::Esc));
            effects.extend(self.key(&KeyEvent::new(key.code, key.modifiers - KeyModifiers::ALT)));
            return effects;
        }
        if self.dialog.is_some() {
            return dialog::key(self, key);
        }
        match keys::command(key, self.view, self.replay.is_some()) {
            Some(command) => self.command(command),
            None => Vec::new(),
        }
    }

    /// Does what a key or a line of the palette asks for.
    pub(crate) fn command(&mut self, command: Command) -> Vec<Effect> {
        match command {
            Command::Quit => vec![Effect::Quit],
            Command::Redraw => vec![Effect::Redraw],
            Command::Suspend => vec![Effect::Suspend],
            Command::Help => {
                self.dialog = Some(Dialog::Help);
                Vec::new()
            }
            Command::View(view) => {
                self.view = view;
                Vec::new()
            }
            Command::NextView | Command::PreviousView => {
                self.view = self.view.beside(command == Command::NextView);
                Vec::new()
            }
            Command::Pause | Command::Faster | Command::Slower | Command::Skip => {
                vec![Effect::Replay(command)]
            }
            Command::Teams => dialog::teams(self),
            Command::Palette => dialog::palette(self),
            _ => views::act(self, command).unwrap_or_else(|| dialog::ask(self, command)),
        }
    }

    fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        match mouse.kind {
            MouseEventKind::ScrollDown => self.wheel(Command::Down),
            MouseEventKind::ScrollUp => self.wheel(Command::Up),
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position { x: mouse.column, y: mouse.row };
                // What was drawn last lies on top.
                let hit = self.drawn.hits.iter().rev().find(|(area, _)| area.contains(at));
                let Some((_, hit)) = hit.cloned() else { return Vec::new() };
                self.clicked(hit)
            }
            _ => Vec::new(),
        }
    }

    fn wheel(&mut self, command: Command) -> Vec<Effect> {
        if self.dialog.is_some() {
            return dialog::command(self, command);
        }
        self.command(command)
    }

    fn clicked(&mut self, hit: Hit) -> Vec<Effect> {
        if let Hit::Choice(number) = hit {
            return dialog::chosen(self, number);
        }
        if self.dialog.is_some() {
            return Vec::new();
        }
        match hit {
            Hit::View(view) => self.view = view,
            // What is clicked twice is opened.
            Hit::Member(name) if self.member.as_deref() == Some(&name) => {
                return self.command(Command::Open);
            }
            Hit::Member(name) => self.member = Some(name),
            Hit::Letter(number) if self.letter == Some(number) => {
                return self.command(Command::Open);
            }
            Hit::Letter(number) => self.letter = Some(number),
            Hit::Task(id) if self.task == Some(id) => return self.command(Command::Open),
            Hit::Task(id) => self.task = Some(id),
            Hit::Request(id) => self.request = Some(id),
            Hit::Choice(_) => {}
        }
        Vec::new()
    }

    /// The member that is chosen, or else the first.
    pub(crate) fn chosen_member(&self) -> Option<&Person> {
        let members = self.picture.members();
        let chosen = self.member.as_deref();
        let found = members.iter().find(|person| Some(&*person.name) == chosen);
        found.or_else(|| members.first()).copied()
    }

    /// The request that is chosen, or else the oldest.
    pub(crate) fn chosen_request(&self) -> Option<&Approval> {
        let chosen = |approval: &&Approval| Some(&approval.request_id) == self.request.as_ref();
        self.approvals.iter().find(chosen).or_else(|| self.approvals.first())
    }

    /// A record, for its words.
    pub(crate) fn record(
        &self,
        spot: brigade_core::event_log::Spot,
    ) -> Option<std::sync::Arc<Record>> {
        self.library.record(spot)
    }

    /// Whether nobody is there any more who would do what a member is said to do.
    pub(crate) fn is_dead(&self, person: &Person) -> bool {
        let vital = self.vitals.get(&*person.name);
        vital.is_some_and(|vital| matches!(vital.judged.liveness, Liveness::Dead | Liveness::Hung))
    }
}

//! The state of the dashboard ([`Screen`]), and how events change that state ([`Screen::update`]).
//!
//! Nothing here reads a clock, a file or a terminal. Work for the event loop is returned as [`Effect`]s.

pub(crate) mod attached;
mod dialog;
mod frame;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod views;

use std::collections::HashMap;
use std::sync::Arc;

use brigade_core::approvals::Approval;
use brigade_core::event::{Event, Record, WorkEvent};
use brigade_core::projection::{
    MemberIndex, MemberView, MessageKind, RequestEntry, TeamProjection,
};
use brigade_core::pulse::{Judgement, Liveness};
use brigade_core::store::event_log::{RecordBatch, RecordLookupHandle, RecordRef};
use brigade_core::text;
use brigade_core::wire::inbox::with_message;
use brigade_host::state::StateSummary;
use brigade_wire::name::{MemberName, TeamName};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use ratatui::text::Span;

use self::attached::AttachedState;
use self::dialog::Dialog;
use super::actions::TeamAction;
use super::canvas::{ClickTarget, FrameInfo};
use super::keys::{self, KeyCommand};
use super::style::Theme;
use crate::view::View;

/// An input to [`Screen::update`].
#[derive(Debug)]
pub(crate) enum ScreenEvent {
    /// New records of the team's history.
    Records(RecordBatch),
    /// The open approval requests, or why they could not be fetched.
    Approvals(Result<Vec<Approval>, String>),
    /// The liveness of the members' processes, by member name.
    Health(HashMap<String, ProcessHealth>),
    /// The teams in the store.
    Teams(Vec<TeamName>),
    /// The result of an action, as text to show.
    Done(Result<String, String>),
    /// A message to the attached member was not sent.
    NotSent {
        text: String,
        why: String,
    },
    /// The request of the attached member was answered, or why it was not.
    AnswerDone(Result<String, String>),
    /// The state of the attached member.
    Summary(StateSummary),
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The current time.
    Time(Timestamp),
    /// The current speed and state of the replay.
    Replay(ReplayState),
}

/// Work that [`Screen::update`] asks the event loop to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Run an action that changes the team.
    Run(TeamAction),
    /// Show a member's tmux window in place of the dashboard until the person leaves that window.
    OpenWindow(MemberName),
    /// Show a shell in a member's folder in place of the dashboard until the shell exits.
    OpenShell(MemberName),
    /// Fetch the open approval requests.
    FetchApprovals,
    /// Fetch the state of the attached member.
    FetchSummary,
    /// Copy this text to the clipboard.
    Copy(String),
    /// Open this link in a browser.
    OpenLink(String),
    /// Notify the person, who may be looking at another window.
    Notify(String),
    /// Switch to another team.
    SwitchTeam(TeamName),
    /// Fetch the list of teams.
    FetchTeams,
    /// Pause the replay or change its speed.
    Replay(KeyCommand),
    Redraw,
    Suspend,
    Quit,
}

/// Whether a member's process is alive, and what the process reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessHealth {
    pub(crate) judged: Judgement,
    /// The host that the process runs on, if the process reported one.
    pub(crate) host: Option<String>,
    /// The message that the agent shows while it retries a failed request to its vendor.
    pub(crate) retries: Option<String>,
}

/// The state of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReplayState {
    pub(crate) speed: f64,
    pub(crate) paused: bool,
    pub(crate) over: bool,
}

/// A message in the bottom line, shown for a few seconds or up to the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    at: Timestamp,
}

/// How long a notice is shown, if the person presses no key.
const NOTICE_DURATION: jiff::SignedDuration = jiff::SignedDuration::from_secs(8);

/// How long an error is shown at least. It may arrive while the person types.
const MIN_ERROR_DURATION: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);

/// The state of the dashboard.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) projection: TeamProjection,
    pub(crate) records: RecordLookupHandle,
    pub(crate) theme: Theme,
    /// The team's name; in a replay, the name of the journal file.
    pub(crate) team: String,
    pub(crate) teams: Vec<TeamName>,
    /// The member that the person acts as; `None` if the person can only view the team.
    pub(crate) me: Option<MemberName>,
    pub(crate) now: Timestamp,
    pub(crate) replay: Option<ReplayState>,
    /// Whether the whole history has been loaded.
    pub(crate) caught_up: bool,
    pub(crate) approvals: Vec<Approval>,
    approvals_loaded: bool,
    pub(crate) health: HashMap<String, ProcessHealth>,
    pub(crate) view: View,
    /// The state of the screen of one member; `None` in the dashboard.
    pub(crate) attached: Option<AttachedState>,
    /// The selected items. They are identified by name or number and not by index, so that new records do not
    /// move the selection.
    pub(crate) member: Option<String>,
    pub(crate) message: Option<u32>,
    pub(crate) task: Option<u64>,
    pub(crate) request: Option<String>,
    pub(crate) states: views::ViewStates,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) notice: Option<Notice>,
    pub(crate) frame: FrameInfo,
}

impl Screen {
    pub(crate) fn new(
        team: String,
        records: RecordLookupHandle,
        theme: Theme,
        now: Timestamp,
    ) -> Self {
        Self {
            projection: TeamProjection::default(),
            records,
            theme,
            team,
            teams: Vec::new(),
            me: None,
            now,
            replay: None,
            caught_up: false,
            approvals: Vec::new(),
            approvals_loaded: false,
            health: HashMap::new(),
            view: View::Team,
            attached: None,
            member: None,
            message: None,
            task: None,
            request: None,
            states: views::ViewStates::default(),
            dialog: None,
            notice: None,
            frame: FrameInfo::default(),
        }
    }

    /// Applies an event and returns the work for the event loop.
    pub(crate) fn update(&mut self, event: ScreenEvent) -> Vec<Effect> {
        match event {
            ScreenEvent::Records(batch) => return self.apply_records(&batch),
            ScreenEvent::Approvals(Ok(approvals)) => {
                let mut effects = self.set_approvals(approvals);
                // The state of the attached member names its request.
                effects.extend(self.attached.is_some().then_some(Effect::FetchSummary));
                return effects;
            }
            ScreenEvent::Key(key) => return self.handle_key(&key),
            ScreenEvent::Mouse(mouse) => return self.handle_mouse(mouse),
            ScreenEvent::Health(health) => self.health = health,
            ScreenEvent::Teams(teams) => {
                self.teams = teams;
                dialog::refresh_team_list(self);
            }
            ScreenEvent::Done(Ok(text)) => self.show_notice(text),
            ScreenEvent::Done(Err(why)) | ScreenEvent::Approvals(Err(why)) => self.show_error(why),
            ScreenEvent::NotSent { text, why } => {
                if let Some(attached) = &mut self.attached {
                    attached.put_back(&text);
                }
                self.show_error(format!("not sent: {why}"));
            }
            ScreenEvent::AnswerDone(result) => {
                if let Some(attached) = &mut self.attached {
                    attached.end_answer();
                }
                match result {
                    Ok(text) => self.show_notice(text),
                    Err(why) => self.show_error(why),
                }
                return vec![Effect::FetchApprovals];
            }
            ScreenEvent::Summary(summary) => {
                if let Some(attached) = &mut self.attached {
                    attached.summary = Some(summary);
                }
            }
            ScreenEvent::Paste(text) if self.attached.is_some() => attached::paste(self, &text),
            ScreenEvent::Paste(text) => match &mut self.dialog {
                Some(dialog) => dialog.paste(&text),
                None => views::member::paste(self, &text),
            },
            ScreenEvent::Time(now) => {
                self.now = now;
                let is_old = |notice: &Notice| now.duration_since(notice.at) > NOTICE_DURATION;
                self.notice = self.notice.take().filter(|notice| !is_old(notice));
                if self.attached.is_some() {
                    return vec![Effect::FetchSummary];
                }
            }
            ScreenEvent::Replay(replay) => self.replay = Some(replay),
        }
        Vec::new()
    }

    /// Draws the whole screen and returns its click targets and scroll limits.
    pub(crate) fn draw(&self, buffer: &mut Buffer) -> FrameInfo {
        match &self.attached {
            Some(state) => attached::draw(self, state, buffer),
            None => frame::draw(self, buffer),
        }
    }

    /// Shows a notice that has no time limit: only the next notice replaces it.
    pub(crate) fn show_progress(&mut self, text: String) {
        self.notice = Some(Notice { text, is_error: false, at: Timestamp::MAX });
    }

    /// Shows a notice in the bottom line.
    pub(crate) fn show_notice(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_error: false, at: self.now });
    }

    /// Shows an error in the bottom line.
    pub(crate) fn show_error(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_error: true, at: self.now });
    }

    /// Removes the notice when the person goes on. A notice about a running action stays, and a new error stays long enough to be seen.
    fn dismiss_notice(&mut self) {
        let now = self.now;
        let stays = |notice: &Notice| {
            let age = now.duration_since(notice.at);
            age.is_negative() || (notice.is_error && age < MIN_ERROR_DURATION)
        };
        self.notice = self.notice.take().filter(stays);
    }

    fn apply_records(&mut self, batch: &RecordBatch) -> Vec<Effect> {
        let mut effects = self.update_projection(batch);
        if self.attached.is_some() && self.caught_up {
            effects.push(Effect::FetchSummary);
        }
        effects
    }

    fn update_projection(&mut self, batch: &RecordBatch) -> Vec<Effect> {
        let asked = self.projection.request_counts();
        for (spot, record) in &batch.records {
            self.projection.update(*spot, record);
        }
        let was_caught_up = self.caught_up;
        self.caught_up |= batch.caught_up;
        let is_news = self.projection.request_counts() != asked;
        if !self.caught_up || (was_caught_up && !is_news) {
            return Vec::new();
        }
        if self.replay.is_none() && self.acts_as_lead() {
            return vec![Effect::FetchApprovals];
        }
        let waiting = self.approvals_from_history();
        self.set_approvals(waiting)
    }

    /// Returns whether the person acts as the team's lead.
    pub(crate) fn acts_as_lead(&self) -> bool {
        let lead = self.projection.lead().map(|lead| &*lead.name);
        self.me.as_ref().is_some_and(|me| lead == Some(me.as_str()))
    }

    /// Returns whether the open requests wait for the person at this screen. Returns true in a replay, because a
    /// replay shows the team as its lead saw it.
    pub(crate) fn viewer_answers(&self) -> bool {
        self.replay.is_some() || self.acts_as_lead()
    }

    /// Returns the requests that are open according to the history. Used if the person is not allowed to answer
    /// requests.
    pub(crate) fn approvals_from_history(&self) -> Vec<Approval> {
        let is_approval =
            |kind| matches!(kind, MessageKind::PlanRequest | MessageKind::PermissionRequest);
        let asked = self.projection.requests().iter().filter(|asked| is_approval(asked.kind));
        let open = asked.enumerate().filter(|(_, asked)| asked.reply.is_none());
        let approval = |(index, asked): (usize, &RequestEntry)| {
            Approval::from_record(&*self.record(asked.record)?, index + 1)
        };
        open.filter_map(approval).collect()
    }

    fn set_approvals(&mut self, approvals: Vec<Approval>) -> Vec<Effect> {
        let is_known =
            |new: &Approval| self.approvals.iter().any(|old| old.request_id == new.request_id);
        let new: Vec<&Approval> = approvals.iter().filter(|approval| !is_known(approval)).collect();
        let notify = match new.as_slice() {
            [] => None,
            [one] => Some(format!("{} asks for approval: {}", one.from, one.subject.kind())),
            many => Some(format!("{} requests are waiting for you", many.len())),
        };
        // Requests that were open at startup are visible on the screen; notify only about new ones.
        let is_first = !std::mem::replace(&mut self.approvals_loaded, true);
        let notify = notify.filter(|_| !is_first && self.replay.is_none() && self.acts_as_lead());
        let is_there = |id: &String| approvals.iter().any(|approval| approval.request_id == *id);
        self.request = self.request.take().filter(is_there);
        self.approvals = approvals;
        let request = self.attached_request().map(|approval| approval.request_id.clone());
        if let Some(attached) = &mut self.attached {
            attached.set_request(request);
        }
        notify.map(Effect::Notify).into_iter().collect()
    }

    fn handle_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        self.dismiss_notice();
        if self.attached.is_some() {
            return attached::handle_key(self, key);
        }
        if self.dialog.is_none() && views::member::is_searching(self) {
            return views::member::handle_search_key(self, key);
        }
        // On a slow connection the terminal may report Escape and the next key as one key with Alt. Handle
        // that as two keys, except in a form: a form binds keys with Alt, and Escape would discard the typed
        // text.
        if let KeyCode::Char(_) = key.code
            && key.modifiers.contains(KeyModifiers::ALT)
            && !matches!(self.dialog, Some(Dialog::Form(_)))
        {
            let mut effects = self.handle_key(&KeyEvent::from(KeyCode::Esc));
            effects.extend(
                self.handle_key(&KeyEvent::new(key.code, key.modifiers - KeyModifiers::ALT)),
            );
            return effects;
        }
        if self.dialog.is_some() {
            return dialog::handle_key(self, key);
        }
        match keys::command(key, self.view, self.replay.is_some()) {
            Some(command) => self.run_command(command),
            None => Vec::new(),
        }
    }

    /// Runs a command from a key or from the command palette.
    pub(crate) fn run_command(&mut self, command: KeyCommand) -> Vec<Effect> {
        match command {
            KeyCommand::Quit => return vec![Effect::Quit],
            KeyCommand::Redraw => return vec![Effect::Redraw],
            KeyCommand::Suspend => return vec![Effect::Suspend],
            KeyCommand::Pause | KeyCommand::Faster | KeyCommand::Slower | KeyCommand::Skip => {
                return vec![Effect::Replay(command)];
            }
            KeyCommand::Teams => return dialog::teams(self),
            KeyCommand::Palette => dialog::palette(self),
            KeyCommand::Help => self.dialog = Some(Dialog::Help),
            KeyCommand::View(view) => self.view = view,
            KeyCommand::NextView | KeyCommand::PreviousView => {
                self.view = self.view.adjacent(command == KeyCommand::NextView);
            }
            _ if views::handle(self, command).is_some() => {}
            _ => return dialog::open_for(self, command),
        }
        Vec::new()
    }

    fn handle_mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        if self.attached.is_some() {
            return attached::handle_mouse(self, mouse);
        }
        match mouse.kind {
            MouseEventKind::ScrollDown => self.scroll(KeyCommand::Down),
            MouseEventKind::ScrollUp => self.scroll(KeyCommand::Up),
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position { x: mouse.column, y: mouse.row };
                // Search backwards: an area that was drawn later covers earlier ones.
                let hit = self.frame.click_targets.iter().rev().find(|(area, _)| area.contains(at));
                let Some((_, hit)) = hit.cloned() else { return Vec::new() };
                self.click(hit)
            }
            _ => Vec::new(),
        }
    }

    fn scroll(&mut self, command: KeyCommand) -> Vec<Effect> {
        let Some(dialog) = &mut self.dialog else { return self.run_command(command) };
        dialog.scroll(command);
        Vec::new()
    }

    fn click(&mut self, hit: ClickTarget) -> Vec<Effect> {
        if let ClickTarget::Choice(number) = hit {
            return dialog::click(self, number);
        }
        if self.dialog.is_some() {
            return Vec::new();
        }
        let was_selected = match hit {
            ClickTarget::Member(name) => self.member.replace(name.clone()) == Some(name),
            ClickTarget::Message(number) => self.message.replace(number) == Some(number),
            ClickTarget::Task(id) => self.task.replace(id) == Some(id),
            ClickTarget::Request(id) => {
                self.request = Some(id);
                false
            }
            ClickTarget::View(view) => {
                self.view = view;
                false
            }
            ClickTarget::Choice(_) => false,
        };
        // A click on the item that was already selected opens that item.
        if was_selected { self.run_command(KeyCommand::Open) } else { Vec::new() }
    }

    /// Returns the selected member, or the first member if none is selected.
    pub(crate) fn selected_member(&self) -> Option<&MemberView> {
        let members = self.projection.members();
        members.get(self.selected_index(&members)).copied()
    }

    /// Returns the index of the selected member in `people`, or 0 if that member is not in the list.
    pub(crate) fn selected_index(&self, people: &[&MemberView]) -> usize {
        let selected = self.member.as_deref();
        people.iter().position(|person| Some(&*person.name) == selected).unwrap_or_default()
    }

    /// Returns the selected request, or the oldest one if none is selected.
    pub(crate) fn selected_request(&self) -> Option<&Approval> {
        let selected = |approval: &&Approval| Some(&approval.request_id) == self.request.as_ref();
        self.approvals.iter().find(selected).or_else(|| self.approvals.first())
    }

    /// Returns a member's name in the member's colour.
    pub(crate) fn styled_name(&self, who: MemberIndex) -> Span<'static> {
        let person = self.projection.member(who);
        let style = person.map_or(self.theme.strong(), |person| self.theme.person(person));
        Span::styled(text::one_line(self.projection.name(who)), style)
    }

    /// Loads a record, including its full text.
    pub(crate) fn record(&self, spot: RecordRef) -> Option<Arc<Record>> {
        self.records.record(spot)
    }

    /// Returns whether the member's process is dead or hung. If so, the activity that the process last reported is
    /// outdated.
    pub(crate) fn is_dead(&self, person: &MemberView) -> bool {
        let health = self.health.get(&*person.name);
        health
            .is_some_and(|health| matches!(health.judged.liveness, Liveness::Dead | Liveness::Hung))
    }
}

/// Returns the text of a record: what an agent said, or a message.
pub(crate) fn record_text(record: &Record) -> Option<String> {
    match &record.event {
        Event::Worked { act: WorkEvent::Said { text }, .. } => Some(text.clone()),
        Event::Sent { message, .. } | Event::Seen { message, .. } => {
            with_message(message.get().as_bytes(), |message| Some(message?.text().into_owned()))
                .ok()?
        }
        _ => None,
    }
}

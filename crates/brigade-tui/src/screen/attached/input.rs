//! The keys and the mouse on the screen of one member.

use brigade_core::handshake::NO_REASON;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use crate::actions::TeamAction;
use crate::keys::KeyCommand;
use crate::screen::views::member;
use crate::screen::{Effect, Screen};
use crate::text_layout::insert_at_cursor;

/// How many lines one step of the mouse wheel scrolls.
const WHEEL_LINES: usize = 3;

/// Handles a key.
pub(crate) fn handle_key(screen: &mut Screen, key: &KeyEvent) -> Vec<Effect> {
    let Some(state) = &mut screen.attached else { return Vec::new() };
    if std::mem::take(&mut state.is_help_open) {
        return Vec::new();
    }
    let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    if !(is_ctrl && key.code == KeyCode::Char('d')) {
        state.was_warned = false;
    }
    match key.code {
        KeyCode::Char(letter) if is_ctrl => {
            if let Some(effects) = handle_ctrl(screen, letter) {
                return effects;
            }
        }
        KeyCode::F(1) => {
            state.is_help_open = true;
            return Vec::new();
        }
        KeyCode::Esc => {
            escape(screen);
            return Vec::new();
        }
        KeyCode::Home if is_ctrl => return scroll(screen, KeyCommand::First),
        KeyCode::End if is_ctrl => return scroll(screen, KeyCommand::Last),
        KeyCode::PageUp => return scroll(screen, KeyCommand::PageUp),
        KeyCode::PageDown => return scroll(screen, KeyCommand::PageDown),
        _ => {}
    }
    let Some(state) = &mut screen.attached else { return Vec::new() };
    if state.search.is_some() {
        return search_key(screen, key);
    }
    match key.code {
        KeyCode::Up => return scroll(screen, KeyCommand::Up),
        KeyCode::Down => return scroll(screen, KeyCommand::Down),
        _ if state.view_only.is_some() => {}
        KeyCode::Enter if key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT) => {
            state.composer = insert_at_cursor(&state.composer, "\n".chars());
        }
        KeyCode::Enter => return send(screen),
        _ => {
            state.composer.handle_event(&Event::Key(*key));
        }
    }
    Vec::new()
}

/// Handles a letter that was pressed with Control. Returns `None` if the letter has no meaning here.
fn handle_ctrl(screen: &mut Screen, letter: char) -> Option<Vec<Effect>> {
    let has_request = screen.attached_request().is_some();
    let state = screen.attached.as_mut()?;
    match letter {
        'c' => return Some(interrupt(screen)),
        'd' => return Some(detach(screen)),
        'y' => return Some(answer(screen, None)),
        'n' => return Some(answer(screen, Some(NO_REASON.to_owned()))),
        'l' => return Some(vec![Effect::Redraw]),
        'z' => return Some(vec![Effect::Suspend]),
        'o' => state.is_unfolded = !state.is_unfolded,
        'r' if has_request => {
            state.request_scroll = 0;
            state.is_reading = !state.is_reading;
        }
        'r' => screen.show_error("no request waits for an answer"),
        'f' => state.search = Some(state.search.take().unwrap_or_default()),
        _ => return None,
    }
    Some(Vec::new())
}

/// Leaves the innermost of: the request in full, the search, the earlier part of the transcript.
fn escape(screen: &mut Screen) {
    let Some(state) = &mut screen.attached else { return };
    if state.is_reading {
        state.is_reading = false;
    } else if state.search.is_some() {
        state.search = None;
    } else {
        state.at = None;
    }
}

fn scroll(screen: &mut Screen, command: KeyCommand) -> Vec<Effect> {
    let Some(state) = &screen.attached else { return Vec::new() };
    if state.is_reading {
        let (last, page) = (screen.frame.max_scroll, screen.frame.page.max(2) - 1);
        let from = state.request_scroll.min(last);
        let to = crate::screen::views::step(from, last + 1, page, command).unwrap_or(from);
        if let Some(state) = &mut screen.attached {
            state.request_scroll = to;
        }
        return Vec::new();
    }
    let Some(person) = screen.attached_member() else { return Vec::new() };
    let moved = member::moved(screen, person, state.at, command, state.detail());
    if let (Some(at), Some(state)) = (moved, &mut screen.attached) {
        state.at = at;
    }
    Vec::new()
}

/// Handles the mouse: the wheel scrolls.
pub(crate) fn handle_mouse(screen: &mut Screen, mouse: MouseEvent) -> Vec<Effect> {
    let command = match mouse.kind {
        MouseEventKind::ScrollUp => KeyCommand::Up,
        MouseEventKind::ScrollDown => KeyCommand::Down,
        _ => return Vec::new(),
    };
    for _ in 0..WHEEL_LINES {
        scroll(screen, command);
    }
    Vec::new()
}

/// Inserts pasted text at the cursor.
pub(crate) fn paste(screen: &mut Screen, text: &str) {
    let Some(state) = &mut screen.attached else { return };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let stays = |letter: &char| *letter == '\n' || *letter == '\t' || !letter.is_control();
    match &mut state.search {
        Some(search) => search.paste(&text),
        None if state.view_only.is_some() => {}
        None => state.composer = insert_at_cursor(&state.composer, text.chars().filter(stays)),
    }
}

/// Handles a key in the search line.
fn search_key(screen: &mut Screen, key: &KeyEvent) -> Vec<Effect> {
    match key.code {
        KeyCode::Enter | KeyCode::Up => find(screen, false),
        KeyCode::Down => find(screen, true),
        _ => {
            let search = screen.attached.as_mut().and_then(|state| state.search.as_mut());
            if let Some(search) = search {
                search.edit(key);
            }
        }
    }
    Vec::new()
}

fn find(screen: &mut Screen, later: bool) {
    let Some(mut search) = screen.attached.as_mut().and_then(|state| state.search.take()) else {
        return;
    };
    let of_member = screen.attached.as_ref().zip(screen.attached_member());
    let found = of_member
        .and_then(|(state, person)| search.find(screen, person, state.at, later, state.detail()));
    let Some(state) = &mut screen.attached else { return };
    if let Some(at) = found {
        state.at = at;
    }
    state.search = Some(search);
}

fn send(screen: &mut Screen) -> Vec<Effect> {
    let Some(state) = &mut screen.attached else { return Vec::new() };
    let text = state.composer.value().trim().to_owned();
    if text.is_empty() {
        return Vec::new();
    }
    state.composer = Input::default();
    // Show the message when it arrives.
    state.at = None;
    vec![Effect::Run(TeamAction::Write { to: state.member.clone(), text })]
}

fn interrupt(screen: &mut Screen) -> Vec<Effect> {
    let Some(state) = &screen.attached else { return Vec::new() };
    let name = state.member.clone();
    if screen.me.is_none() {
        screen.show_error("view only: you cannot interrupt the turn; ctrl-d detaches");
        return Vec::new();
    }
    let if_idle = "; ctrl-d detaches";
    vec![Effect::Run(TeamAction::Interrupt { name, if_idle })]
}

/// Leaves the screen. If there is unsent text, warns first.
fn detach(screen: &mut Screen) -> Vec<Effect> {
    let Some(state) = &mut screen.attached else { return Vec::new() };
    if state.composer.value().trim().is_empty() || state.was_warned {
        return vec![Effect::Quit];
    }
    state.was_warned = true;
    screen.show_error("your text is not sent: enter sends it, ctrl-d again drops it");
    Vec::new()
}

/// Answers the request that is on the screen. Allows it only if the person can see its end.
fn answer(screen: &mut Screen, denial: Option<String>) -> Vec<Effect> {
    let Some(approval) = screen.attached_request().cloned() else {
        screen.show_error("no request waits for an answer");
        return Vec::new();
    };
    if !screen.acts_as_lead() {
        screen.show_error("the lead answers this request");
        return Vec::new();
    }
    // A request that arrived after the last drawing was not seen yet.
    let is_drawn = screen.frame.request.as_ref() == Some(&approval.request_id);
    let is_whole = screen.frame.is_request_whole;
    let Some(state) = &mut screen.attached else { return Vec::new() };
    if !is_drawn || state.answering.is_some() {
        return Vec::new();
    }
    if denial.is_none() && !is_whole {
        if !state.is_reading {
            (state.is_reading, state.request_scroll) = (true, 0);
        }
        screen.show_error("read the request to its end, then press ctrl-y again");
        return Vec::new();
    }
    state.answering = Some(approval.request_id.clone());
    state.is_reading = false;
    vec![Effect::Run(TeamAction::Answer { approval: Box::new(approval), denial })]
}

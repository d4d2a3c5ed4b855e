//! Dialogs, drawn over the view: help, a list, a form, a yes/no question. An open dialog receives all keys.

mod draw;
mod form;
mod list;
mod open;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(crate) use self::draw::draw;
pub(crate) use self::form::FormDialog;
pub(crate) use self::list::{ListDialog, palette, refresh_team_list, teams};
pub(crate) use self::open::open_for;
use crate::keys::KeyCommand;
use crate::screen::{Effect, Screen};

/// The width of the text in a yes/no question.
const CONFIRM_WIDTH: u16 = 60;

/// An open dialog.
#[derive(Debug)]
pub(crate) enum Dialog {
    /// The key bindings of the current view.
    Help,
    /// A list to choose from.
    List(ListDialog),
    /// A form to fill in.
    Form(FormDialog),
    /// A yes/no question that the person answers before an action runs.
    Confirm(ConfirmDialog),
}

/// A yes/no question.
#[derive(Clone, Debug)]
pub(crate) struct ConfirmDialog {
    /// The question, shown as the title.
    pub(crate) question: String,
    /// The lines of the explanation below the question.
    pub(crate) lines: Vec<String>,
    /// The action if the person presses `y`.
    pub(crate) yes: Effect,
    /// A third answer: its key, label and effect.
    pub(crate) other: Option<(char, &'static str, Effect)>,
}

impl Dialog {
    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Self::Form(form) => form.paste(text),
            Self::List(list) => list.paste(text),
            Self::Help | Self::Confirm(_) => {}
        }
    }

    /// Handles the mouse wheel while a dialog is open.
    pub(crate) fn scroll(&mut self, command: KeyCommand) {
        if let Self::List(list) = self {
            list.move_selection(command);
        }
    }
}

/// Handles a key while a dialog is open.
pub(crate) fn handle_key(screen: &mut Screen, key: &KeyEvent) -> Vec<Effect> {
    let is_end = key.code == KeyCode::Esc
        || (key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL));
    let Some(mut dialog) = screen.dialog.take().filter(|_| !is_end) else { return Vec::new() };
    match &mut dialog {
        // Any key closes the help, without an effect.
        Dialog::Help => return Vec::new(),
        Dialog::Confirm(confirm) => match (key.code, &confirm.other) {
            (KeyCode::Char('y'), _) => return vec![confirm.yes.clone()],
            (KeyCode::Char('n'), _) => return Vec::new(),
            (KeyCode::Char(letter), Some((other, _, effect))) if letter == *other => {
                return vec![effect.clone()];
            }
            _ => {}
        },
        Dialog::List(list) => match list.handle_key(key) {
            Some(Some(choice)) => return list::choose(screen, choice),
            Some(None) => return Vec::new(),
            None => {}
        },
        Dialog::Form(form) => match form.handle_key(key) {
            Some(Ok(effect)) => return vec![effect],
            Some(Err(why)) => form.error = Some(why),
            None => {}
        },
    }
    screen.dialog = Some(dialog);
    Vec::new()
}

/// Handles a click on an entry of a list dialog.
pub(crate) fn click(screen: &mut Screen, number: usize) -> Vec<Effect> {
    let Some(Dialog::List(list)) = &screen.dialog else { return Vec::new() };
    let Some(choice) = list.matches().nth(number).cloned() else { return Vec::new() };
    screen.dialog = None;
    list::choose(screen, choice)
}

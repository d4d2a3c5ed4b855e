//! A form: for a message, a task, a new member or a reason.

use brigade_core::driver;
use brigade_wire::name::{MemberName, TaskId};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::super::orders::Order;
use super::super::screen::Effect;

/// The action that a form collects input for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Send,
    Broadcast,
    AddTask,
    Spawn,
    Deny { request_id: String },
}

/// One field of a form.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) label: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) input: Input,
    /// Values that up and down cycle through.
    pub(crate) choices: Vec<String>,
}

impl Field {
    pub(crate) fn new(label: &'static str, hint: &'static str) -> Self {
        Self { label, hint, input: Input::default(), choices: Vec::new() }
    }

    pub(crate) fn with(self, value: &str) -> Self {
        Self { input: Input::new(value.to_owned()), ..self }
    }

    pub(crate) fn of(self, choices: Vec<String>) -> Self {
        Self { choices, ..self }
    }

    fn value(&self) -> &str {
        self.input.value().trim()
    }

    /// Selects the next or previous value.
    fn turn(&mut self, next: bool) {
        let total = self.choices.len();
        if total == 0 {
            return;
        }
        let here = self.choices.iter().position(|choice| choice == self.input.value());
        let place = match (here, next) {
            (None, _) => 0,
            (Some(here), true) => (here + 1) % total,
            (Some(here), false) => (here + total - 1) % total,
        };
        if let Some(choice) = self.choices.get(place) {
            self.input = Input::new(choice.clone());
        }
    }
}

/// A form with the field that has the cursor.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) title: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) place: usize,
    pub(crate) purpose: Purpose,
    /// Why the form could not be submitted.
    pub(crate) complaint: Option<String>,
}

impl Form {
    pub(crate) fn new(title: impl Into<String>, purpose: Purpose, fields: Vec<Field>) -> Self {
        // Start in the first empty field.
        let place = fields.iter().position(|field| field.value().is_empty()).unwrap_or_default();
        Self { title: title.into(), fields, place, purpose, complaint: None }
    }

    pub(super) fn paste(&mut self, text: &str) {
        let Some(field) = self.fields.get_mut(self.place) else { return };
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let stays = |letter: &char| *letter == '\n' || *letter == '\t' || !letter.is_control();
        field.input = pasted(&field.input, text.chars().filter(stays));
    }

    /// Handles a key. Returns the effect of a submitted form, or why it cannot be submitted.
    pub(super) fn key(&mut self, key: &KeyEvent) -> Option<Result<Effect, String>> {
        let last = self.fields.len().saturating_sub(1);
        let newline = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if newline => self.paste("\n"),
            KeyCode::Enter if self.place == last => return Some(self.order().map(Effect::Do)),
            KeyCode::Enter | KeyCode::Tab => {
                self.place = if self.place == last { 0 } else { self.place + 1 }
            }
            KeyCode::BackTab => self.place = self.place.checked_sub(1).unwrap_or(last),
            KeyCode::Up | KeyCode::Down => {
                if let Some(field) = self.fields.get_mut(self.place) {
                    field.turn(key.code == KeyCode::Down);
                }
            }
            _ => {
                self.complaint = None;
                if let Some(field) = self.fields.get_mut(self.place) {
                    // Typing replaces a value that was picked with up and down.
                    let types = matches!(key.code, KeyCode::Char(_)) && key.modifiers.is_empty();
                    let is_chosen = |choice: &String| choice == field.input.value();
                    if types && field.choices.iter().any(is_chosen) {
                        field.input = Input::default();
                    }
                    field.input.handle_event(&Event::Key(*key));
                }
            }
        }
        None
    }

    fn value(&self, label: &str) -> &str {
        self.fields.iter().find(|field| field.label == label).map_or("", Field::value)
    }

    /// The value of a required field.
    fn needed(&self, label: &str) -> Result<String, String> {
        match self.value(label) {
            "" => Err(format!("{label} is missing")),
            value => Ok(value.to_owned()),
        }
    }

    fn member(&self, label: &str) -> Result<Option<MemberName>, String> {
        match self.value(label) {
            "" => Ok(None),
            name => name.parse().map(Some).map_err(|error| format!("{label}: {error}")),
        }
    }

    fn yes(&self, label: &str) -> bool {
        self.value(label) == "yes"
    }

    fn order(&self) -> Result<Order, String> {
        Ok(match &self.purpose {
            Purpose::Send => Order::Send { to: self.needed("to")?, text: self.needed("text")? },
            Purpose::Broadcast => Order::Broadcast { text: self.needed("text")? },
            Purpose::AddTask => Order::AddTask {
                subject: self.needed("subject")?,
                description: self.value("description").to_owned(),
                after: tasks(self.value("after"))?,
                owner: self.member("owner")?,
            },
            Purpose::Spawn => {
                let agent = self.needed("agent")?;
                if driver::agent(&agent).is_none() {
                    return Err(format!("unknown agent {agent:?}; ↑↓ shows the known agents"));
                }
                let name = self.member("name")?.ok_or("name is missing")?;
                let prompt = Some(self.value("prompt").to_owned()).filter(|text| !text.is_empty());
                let (worktree, plan) = (self.yes("worktree"), self.yes("plan first"));
                Order::Spawn { name, agent, prompt, worktree, plan }
            }
            Purpose::Deny { request_id } => {
                Order::Answer { request_id: request_id.clone(), no: Some(self.needed("reason")?) }
            }
        })
    }
}

/// Inserts text at the cursor in one step. Inserting a long text character by character would be slow.
pub(super) fn pasted(input: &Input, text: impl Iterator<Item = char>) -> Input {
    let (value, cursor) = (input.value(), input.cursor());
    let text: String = text.collect();
    let behind = cursor + text.chars().count();
    let before: String = value.chars().take(cursor).collect();
    let after: String = value.chars().skip(cursor).collect();
    Input::new(before + &text + &after).with_cursor(behind)
}

/// Parses task numbers separated by commas or spaces.
fn tasks(text: &str) -> Result<Vec<TaskId>, String> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().map_err(|_| format!("{word} is not a task number"))).collect()
}

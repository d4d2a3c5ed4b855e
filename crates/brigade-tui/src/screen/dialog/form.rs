//! The form for a message, a task, a new member or the reason for a denial.

use brigade_agents::driver;
use brigade_core::approvals::Approval;
use brigade_wire::name::{MemberName, TaskId};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use crate::actions::TeamAction;
use crate::screen::Effect;
use crate::text_layout::insert_at_cursor;

/// The action that is run with the values of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormPurpose {
    Send,
    Broadcast,
    AddTask,
    Spawn,
    Deny { approval: Box<Approval> },
}

/// One field of a form.
#[derive(Debug)]
pub(crate) struct FormField {
    pub(crate) label: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) input: Input,
    /// Values that the up and down keys cycle through.
    pub(crate) choices: Vec<String>,
}

impl FormField {
    pub(crate) fn new(label: &'static str, hint: &'static str) -> Self {
        Self { label, hint, input: Input::default(), choices: Vec::new() }
    }

    pub(crate) fn with_value(self, value: &str) -> Self {
        Self { input: Input::new(value.to_owned()), ..self }
    }

    pub(crate) fn with_choices(self, choices: Vec<String>) -> Self {
        Self { choices, ..self }
    }

    fn value(&self) -> &str {
        self.input.value().trim()
    }

    /// Sets the field to the next of its choices, or to the previous one.
    fn cycle(&mut self, next: bool) {
        let total = self.choices.len();
        if total == 0 {
            return;
        }
        let current = self.choices.iter().position(|choice| choice == self.input.value());
        let index = match (current, next) {
            (None, _) => 0,
            (Some(current), true) => (current + 1) % total,
            (Some(current), false) => (current + total - 1) % total,
        };
        if let Some(choice) = self.choices.get(index) {
            self.input = Input::new(choice.clone());
        }
    }
}

/// A form. The field with the index `current` has the cursor.
#[derive(Debug)]
pub(crate) struct FormDialog {
    pub(crate) title: String,
    pub(crate) fields: Vec<FormField>,
    pub(crate) current: usize,
    pub(crate) purpose: FormPurpose,
    /// The reason why the form could not be submitted.
    pub(crate) error: Option<String>,
}

impl FormDialog {
    pub(crate) fn new(
        title: impl Into<String>,
        purpose: FormPurpose,
        fields: Vec<FormField>,
    ) -> Self {
        // Put the cursor in the first empty field.
        let current = fields.iter().position(|field| field.value().is_empty()).unwrap_or_default();
        Self { title: title.into(), fields, current, purpose, error: None }
    }

    pub(super) fn paste(&mut self, text: &str) {
        let Some(field) = self.fields.get_mut(self.current) else { return };
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let stays = |letter: &char| *letter == '\n' || *letter == '\t' || !letter.is_control();
        field.input = insert_at_cursor(&field.input, text.chars().filter(stays));
    }

    /// Handles a key. If the key submits the form, returns the resulting effect, or the reason why the form
    /// is rejected.
    pub(super) fn handle_key(&mut self, key: &KeyEvent) -> Option<Result<Effect, String>> {
        let last = self.fields.len().saturating_sub(1);
        let newline = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if newline => self.paste("\n"),
            KeyCode::Enter if self.current == last => return Some(self.action().map(Effect::Run)),
            KeyCode::Enter | KeyCode::Tab => {
                self.current = if self.current == last { 0 } else { self.current + 1 }
            }
            KeyCode::BackTab => self.current = self.current.checked_sub(1).unwrap_or(last),
            KeyCode::Up | KeyCode::Down => {
                if let Some(field) = self.fields.get_mut(self.current) {
                    field.cycle(key.code == KeyCode::Down);
                }
            }
            _ => {
                self.error = None;
                if let Some(field) = self.fields.get_mut(self.current) {
                    // Typing replaces a value that was chosen with the up and down keys.
                    let is_typing =
                        matches!(key.code, KeyCode::Char(_)) && key.modifiers.is_empty();
                    let is_selected = |choice: &String| choice == field.input.value();
                    if is_typing && field.choices.iter().any(is_selected) {
                        field.input = Input::default();
                    }
                    field.input.handle_event(&Event::Key(*key));
                }
            }
        }
        None
    }

    fn value(&self, label: &str) -> &str {
        self.fields.iter().find(|field| field.label == label).map_or("", FormField::value)
    }

    /// Returns the value of a required field, or an error if the field is empty.
    fn required(&self, label: &str) -> Result<String, String> {
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

    fn is_yes(&self, label: &str) -> bool {
        self.value(label) == "yes"
    }

    fn action(&self) -> Result<TeamAction, String> {
        Ok(match &self.purpose {
            FormPurpose::Send => {
                TeamAction::Send { to: self.required("to")?, text: self.required("text")? }
            }
            FormPurpose::Broadcast => TeamAction::Broadcast { text: self.required("text")? },
            FormPurpose::AddTask => TeamAction::AddTask {
                subject: self.required("subject")?,
                description: self.value("description").to_owned(),
                after: parse_task_ids(self.value("after"))?,
                owner: self.member("owner")?,
            },
            FormPurpose::Spawn => {
                let agent = self.required("agent")?;
                if driver::agent(&agent).is_none() {
                    return Err(format!("unknown agent {agent:?}; ↑↓ shows the known agents"));
                }
                let name = self.member("name")?.ok_or("name is missing")?;
                let prompt = Some(self.value("prompt").to_owned()).filter(|text| !text.is_empty());
                let (worktree, plan) = (self.is_yes("worktree"), self.is_yes("plan first"));
                TeamAction::Spawn { name, agent, prompt, worktree, plan }
            }
            FormPurpose::Deny { approval } => TeamAction::Answer {
                approval: approval.clone(),
                denial: Some(self.required("reason")?),
            },
        })
    }
}

/// Parses task numbers separated by commas or spaces.
fn parse_task_ids(text: &str) -> Result<Vec<TaskId>, String> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().map_err(|_| format!("{word} is not a task number"))).collect()
}

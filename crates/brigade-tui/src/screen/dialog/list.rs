//! A searchable list of commands, teams, members or links.

use brigade_wire::name::TeamName;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::Dialog;
use crate::keys::{KEYS, KeyBinding, KeyCommand, KeyScope};
use crate::screen::views::step;
use crate::screen::{Effect, Screen};
use crate::text_layout::insert_at_cursor;
use crate::view::View;

/// The action for a chosen entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChoiceAction {
    /// If a view is given, switch to that view. Then run the command.
    Command(KeyCommand, Option<View>),
    Effect(Effect),
    /// Show the mail of one member, or all mail if `None`.
    Filter(Option<String>),
}

/// One entry of a list dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListChoice {
    pub(crate) label: String,
    /// Text at the right edge: a key or a state.
    pub(crate) hint: String,
    pub(crate) action: ChoiceAction,
    /// Additional text that the search matches.
    pub(crate) search_terms: String,
}

impl ListChoice {
    pub(crate) fn new(label: String, hint: String, action: ChoiceAction) -> Self {
        Self { label, hint, action, search_terms: String::new() }
    }
}

/// A list dialog with a search field.
#[derive(Debug)]
pub(crate) struct ListDialog {
    pub(crate) title: String,
    pub(crate) filter: Input,
    pub(crate) choices: Vec<ListChoice>,
    pub(crate) selected: usize,
}

impl ListDialog {
    pub(crate) fn new(title: impl Into<String>, choices: Vec<ListChoice>) -> Self {
        Self { title: title.into(), filter: Input::default(), choices, selected: 0 }
    }

    /// Returns the entries that contain every word of the search.
    pub(crate) fn matches(&self) -> impl Iterator<Item = &ListChoice> {
        let typed = self.filter.value().to_lowercase();
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        self.choices.iter().filter(move |choice| {
            let label = format!("{} {}", choice.label, choice.search_terms).to_lowercase();
            words.iter().all(|word| label.contains(word))
        })
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.filter = insert_at_cursor(
            &self.filter,
            text.chars().filter(|character| !character.is_control()),
        );
        self.selected = 0;
    }

    pub(super) fn move_selection(&mut self, command: KeyCommand) {
        let total = self.matches().count();
        self.selected = step(self.selected, total, 10, command).unwrap_or(self.selected);
    }

    /// Handles a key. Returns `None` to keep the dialog open. After Enter, returns the selected entry, or
    /// `Some(None)` if no entry matches the search.
    pub(super) fn handle_key(&mut self, key: &KeyEvent) -> Option<Option<ListChoice>> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Some(self.matches().nth(self.selected).cloned()),
            KeyCode::Down => self.move_selection(KeyCommand::Down),
            KeyCode::Up => self.move_selection(KeyCommand::Up),
            KeyCode::PageDown => self.move_selection(KeyCommand::PageDown),
            KeyCode::PageUp => self.move_selection(KeyCommand::PageUp),
            KeyCode::Char('n') if control => self.move_selection(KeyCommand::Down),
            KeyCode::Char('p') if control => self.move_selection(KeyCommand::Up),
            _ => {
                self.filter.handle_event(&Event::Key(*key));
                self.selected = 0;
            }
        }
        None
    }
}

/// Runs the action of the chosen entry.
pub(super) fn choose(screen: &mut Screen, choice: ListChoice) -> Vec<Effect> {
    match choice.action {
        ChoiceAction::Command(command, view) => {
            screen.view = view.unwrap_or(screen.view);
            screen.run_command(command)
        }
        ChoiceAction::Effect(effect) => vec![effect],
        ChoiceAction::Filter(member) => {
            screen.states.mail.filter = member;
            screen.message = None;
            Vec::new()
        }
    }
}

/// Opens the command palette: commands of the current view first, then those of other views. Choosing a
/// command of another view switches to that view.
pub(crate) fn palette(screen: &mut Screen) {
    let omitted = [
        KeyCommand::Palette,
        KeyCommand::Up,
        KeyCommand::Down,
        KeyCommand::Left,
        KeyCommand::Right,
    ];
    let (current, is_replay) = (screen.view, screen.replay.is_some());
    let offered = |key: &&KeyBinding| {
        let is_omitted =
            omitted.contains(&key.command) || (is_replay && key.command.acts_on_team());
        !is_omitted && (key.scope != KeyScope::Replay || is_replay)
    };
    let (of_this_view, of_other_views): (Vec<&KeyBinding>, Vec<&KeyBinding>) =
        KEYS.iter().filter(offered).partition(|key| key.scope.applies_to(current, is_replay));
    let choice = |key: &KeyBinding| {
        let other_view = match key.scope {
            KeyScope::In(views) if !views.contains(&current) => views.first().copied(),
            _ => None,
        };
        let prefix = other_view.map(|view| format!("{}: ", view.title())).unwrap_or_default();
        ListChoice {
            label: format!("{prefix}{}", key.description),
            hint: key.keys.join(" "),
            action: ChoiceAction::Command(key.command, other_view),
            search_terms: format!("{} {:?}", key.label, key.command),
        }
    };
    let choices: Vec<ListChoice> =
        of_this_view.into_iter().chain(of_other_views).map(choice).collect();
    screen.dialog = Some(Dialog::List(ListDialog::new("Commands", choices)));
}

/// Opens the list of teams.
pub(crate) fn teams(screen: &mut Screen) -> Vec<Effect> {
    if screen.replay.is_some() {
        screen.show_error("a replay shows one team");
        return Vec::new();
    }
    let choices = team_choices(screen);
    screen.dialog = Some(Dialog::List(ListDialog::new(TEAMS, choices)));
    vec![Effect::FetchTeams]
}

/// Title of the dialog that lists the teams.
const TEAMS: &str = "Teams";

fn team_choices(screen: &Screen) -> Vec<ListChoice> {
    let choice = |team: &TeamName| {
        let hint = if team.as_str() == screen.team { "current" } else { "" };
        let action = ChoiceAction::Effect(Effect::SwitchTeam(team.clone()));
        ListChoice::new(team.to_string(), hint.to_owned(), action)
    };
    screen.teams.iter().map(choice).collect()
}

/// Updates the team list dialog, if it is open, after the teams were fetched.
pub(crate) fn refresh_team_list(screen: &mut Screen) {
    let choices = team_choices(screen);
    if let Some(Dialog::List(list)) = &mut screen.dialog
        && list.title == TEAMS
    {
        list.choices = choices;
    }
}

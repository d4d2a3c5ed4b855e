//! Builds the dialogs that commands open to ask for input or confirmation.

use brigade_agents::driver;
use brigade_core::action::RenderLimit;
use brigade_core::approvals::ApprovalSubject;
use brigade_wire::name::{MemberName, TaskId};

use super::form::{FormDialog, FormField, FormPurpose};
use super::list::{ChoiceAction, ListChoice, ListDialog};
use super::{CONFIRM_WIDTH, ConfirmDialog, Dialog};
use crate::actions::TeamAction;
use crate::keys::KeyCommand;
use crate::screen::views::{self, mail};
use crate::screen::{Effect, Screen};
use crate::view::View;
use brigade_core::text;

/// How much of a request the dialog shows. The approvals view shows all of it.
const SHOWN_IN_DIALOG: RenderLimit<'static> =
    RenderLimit { lines: 8, characters: 600, values: 20, hint: "press n, then enter, to read all" };

/// Runs a command that no view handled. Most such commands open a dialog for input or confirmation.
pub(crate) fn open_for(screen: &mut Screen, command: KeyCommand) -> Vec<Effect> {
    match command {
        KeyCommand::Copy => match views::selected_text(screen) {
            Some(text) => {
                screen.show_notice("copied");
                return vec![Effect::Copy(text)];
            }
            None => screen.show_error("nothing is selected"),
        },
        KeyCommand::Link => return open_link(screen),
        KeyCommand::Filter => screen.dialog = Some(Dialog::List(mail_filter(screen))),
        command if command.acts_on_team() => {
            if screen.replay.is_some() {
                screen.show_error("actions are not available in a replay");
            } else if screen.me.is_none() {
                screen.show_error(
                    "view only: Claude Code leads this team; start with --as NAME to act as a member");
            } else if command == KeyCommand::PauseMember {
                match selected_teammate(screen) {
                    Ok(name) => return vec![Effect::Run(TeamAction::TogglePaused { name })],
                    Err(why) => screen.show_error(why),
                }
            } else {
                match dialog_for(screen, command) {
                    Ok(dialog) => screen.dialog = Some(dialog),
                    Err(why) => screen.show_error(why),
                }
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Returns the selected member, unless it is the lead.
fn selected_teammate(screen: &Screen) -> Result<MemberName, &'static str> {
    let person = screen.selected_member().ok_or("no member is selected")?;
    if screen.projection.is_lead(person.index) {
        return Err("brigade does not run the lead");
    }
    person.member_name().ok_or("this member's name is invalid")
}

fn dialog_for(screen: &Screen, command: KeyCommand) -> Result<Dialog, &'static str> {
    let names = || -> Vec<String> {
        screen.projection.members().iter().map(|person| person.name.to_string()).collect()
    };
    let me = screen.me.as_ref().map(ToString::to_string);
    let others = || -> Vec<String> {
        names().into_iter().filter(|name| Some(name) != me.as_ref()).collect()
    };
    Ok(match command {
        KeyCommand::Send => {
            let to = default_recipient(screen).filter(|to| Some(to) != me.as_ref());
            let to = to.or_else(|| others().into_iter().next()).unwrap_or_default();
            Dialog::Form(FormDialog::new(
                "Send",
                FormPurpose::Send,
                vec![
                    FormField::new("to", "a member; ↑↓ to choose")
                        .with_value(&to)
                        .with_choices(others()),
                    FormField::new("text", "alt-enter inserts a new line"),
                ],
            ))
        }
        KeyCommand::Broadcast => Dialog::Form(FormDialog::new(
            format!("Send to all members ({})", others().len()),
            FormPurpose::Broadcast,
            vec![FormField::new("text", "every member reads it, which costs tokens")],
        )),
        KeyCommand::AddTask => Dialog::Form(FormDialog::new(
            "Add a task",
            FormPurpose::AddTask,
            vec![
                FormField::new("subject", "one line"),
                FormField::new("description", "details (optional)"),
                FormField::new("after", "numbers of the tasks it depends on"),
                FormField::new("owner", "optional; ↑↓ to choose").with_choices(names()),
            ],
        )),
        KeyCommand::Spawn => {
            let agents = driver::AGENTS.iter().map(|agent| agent.name.to_owned()).collect();
            let yes_no = || vec!["no".to_owned(), "yes".to_owned()];
            Dialog::Form(FormDialog::new(
                "Start a new member",
                FormPurpose::Spawn,
                vec![
                    FormField::new("name", "the member's name"),
                    FormField::new("agent", "↑↓ to choose")
                        .with_value("codex")
                        .with_choices(agents),
                    FormField::new("worktree", "its own folder and branch; ↑↓ to choose")
                        .with_value("no")
                        .with_choices(yes_no()),
                    FormField::new(
                        "plan first",
                        "read-only until its plan is approved; ↑↓ to choose",
                    )
                    .with_value("no")
                    .with_choices(yes_no()),
                    FormField::new("prompt", "its first instructions (optional)"),
                ],
            ))
        }
        KeyCommand::Stop => {
            let person = screen.selected_member().ok_or("no member is selected")?;
            if screen.projection.is_lead(person.index) {
                return Err("the lead cannot be stopped here; `brigade down` stops the team");
            }
            let name = person.member_name().ok_or("this member's name is invalid")?;
            let stop = |now| Effect::Run(TeamAction::Stop { name: name.clone(), now });
            Dialog::Confirm(ConfirmDialog {
                question: format!("Ask {name} to stop?"),
                lines: vec![
                    "It finishes what it is doing, releases its tasks and leaves.".into(),
                    "Press n to keep it running, or e to stop it without asking.".into(),
                ],
                yes: stop(false),
                other: Some(('e', "stop it now", stop(true))),
            })
        }
        KeyCommand::Interrupt => {
            let name = selected_teammate(screen)?;
            let lines = vec![
                "Its agent keeps the session. Commands that it runs are ended.".to_owned(),
                "Unread mail starts the next turn.".to_owned(),
            ];
            let question = format!("Interrupt the turn of {name}?");
            confirm(question, lines, Effect::Run(TeamAction::Interrupt { name, if_idle: "" }))
        }
        KeyCommand::Assign => {
            let id = selected_task(screen)?;
            let give = |owner: Option<String>| {
                let parsed = owner.as_deref().and_then(|owner| owner.parse().ok());
                let action = Effect::Run(TeamAction::Assign { id, owner: parsed });
                let label = owner.unwrap_or_else(|| "no owner".into());
                ListChoice::new(label, String::new(), ChoiceAction::Effect(action))
            };
            let choices = names().into_iter().map(Some).chain([None]).map(give).collect();
            Dialog::List(ListDialog::new(format!("Assign task {id} to"), choices))
        }
        KeyCommand::Claim | KeyCommand::Finish => {
            let id = selected_task(screen)?;
            let subject =
                screen.projection.task(id.get()).map(|card| text::one_line(&card.subject));
            let (question, action, meaning) = if command == KeyCommand::Claim {
                let meaning = "You become its owner and it is marked in progress.";
                (format!("Claim task {id}?"), TeamAction::Claim { id }, meaning)
            } else {
                let meaning = "Tasks that wait only for it become ready.";
                (format!("Mark task {id} as done?"), TeamAction::Finish { id }, meaning)
            };
            let lines = vec![subject.unwrap_or_default(), meaning.to_owned()];
            confirm(question, lines, Effect::Run(action))
        }
        KeyCommand::Approve => {
            let approval = screen.selected_request().ok_or("no request is waiting")?;
            let (from, kind) = (&approval.from, approval.subject.kind());
            let lines = match &approval.subject {
                ApprovalSubject::Plan { .. } => {
                    vec!["It carries out its plan and may change files.".to_owned()]
                }
                ApprovalSubject::Permission { action, .. } => {
                    let lines = action.render(Some(SHOWN_IN_DIALOG));
                    lines.iter().flat_map(|line| line.wrapped(CONFIRM_WIDTH.into())).collect()
                }
            };
            let approval = Box::new(approval.clone());
            let action = TeamAction::Answer { approval, denial: None };
            confirm(format!("Approve {from}'s {kind}?"), lines, Effect::Run(action))
        }
        KeyCommand::Deny => {
            let approval = screen.selected_request().ok_or("no request is waiting")?;
            let title = format!("Deny {}'s {}", approval.from, approval.subject.kind());
            let approval = Box::new(approval.clone());
            Dialog::Form(FormDialog::new(
                title,
                FormPurpose::Deny { approval },
                vec![FormField::new("reason", "sent to the member")],
            ))
        }
        KeyCommand::Pane | KeyCommand::Worktree => {
            let person = screen.selected_member().ok_or("no member is selected")?;
            let name = person.member_name().ok_or("this member's name is invalid")?;
            let (question, effect, way_back) = if command == KeyCommand::Pane {
                let question = format!("Open {name}'s window?");
                (question, Effect::OpenWindow(name), "Press ctrl-b d to come back.")
            } else {
                let question = format!("Open a shell in {name}'s folder?");
                (question, Effect::OpenShell(name), "Type exit to come back.")
            };
            confirm(question, vec![way_back.to_owned()], effect)
        }
        _ => return Err("not available in this view"),
    })
}

fn confirm(question: String, lines: Vec<String>, yes: Effect) -> Dialog {
    Dialog::Confirm(ConfirmDialog { question, lines, yes, other: None })
}

/// Returns the default recipient of a new message. In the mail view, that is the other party of the selected
/// message; in other views, it is the selected member.
fn default_recipient(screen: &Screen) -> Option<String> {
    if screen.view == View::Mail
        && let Some(message) = mail::selected_message(screen)
    {
        let me = screen.me.as_ref().map(MemberName::as_str);
        let (from, to) = (screen.projection.name(message.from), screen.projection.name(message.to));
        return Some(if Some(from) == me { to } else { from }.to_owned());
    }
    screen.selected_member().map(|person| person.name.to_string())
}

fn selected_task(screen: &Screen) -> Result<TaskId, &'static str> {
    views::board::selected(screen).and_then(TaskId::new).ok_or("no task is selected")
}

/// Builds the dialog in which the person chooses whose mail to show.
fn mail_filter(screen: &Screen) -> ListDialog {
    let members = screen.projection.members();
    let former = screen.projection.all_members().iter().filter(|person| person.entry.is_none());
    let people = members.into_iter().chain(former).filter(|person| !person.messages.is_empty());
    let choice = |label: String, count: usize, name: Option<String>| {
        ListChoice::new(label, text::count(count, "message"), ChoiceAction::Filter(name))
    };
    let all = choice("all members".to_owned(), screen.projection.messages().len(), None);
    let one = people.map(|person| {
        let (name, count) = (person.name.to_string(), person.messages.len());
        choice(text::one_line(&name), count, Some(name))
    });
    ListDialog::new("Show the mail of", std::iter::once(all).chain(one).collect())
}

/// Opens the link in the selected text. If there are several links, asks which one to open.
fn open_link(screen: &mut Screen) -> Vec<Effect> {
    let text = views::selected_text(screen).unwrap_or_default();
    let mut links = links(&text);
    match (links.len(), links.pop()) {
        (1, Some(link)) => return vec![Effect::OpenLink(link)],
        (_, Some(last)) => {
            links.push(last);
            let choice = |link: String| {
                let action = ChoiceAction::Effect(Effect::OpenLink(link.clone()));
                ListChoice::new(link, String::new(), action)
            };
            let choices = links.into_iter().map(choice).collect();
            screen.dialog = Some(Dialog::List(ListDialog::new("Open", choices)));
        }
        (_, None) => screen.show_error("no link in the selected text"),
    }
    Vec::new()
}

/// Finds http and https links. Other schemes are ignored, because messages are untrusted and their links must
/// not start other programs.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let ends = |letter: char| {
        letter.is_whitespace() || letter.is_control() || "<>\"'`|\\^{}".contains(letter)
    };
    for word in text.split(ends) {
        let start = word.find("https://").or_else(|| word.find("http://"));
        let Some(link) = start.and_then(|start| word.get(start..)) else { continue };
        let link = link.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*', '_']);
        if link.len() > "https://".len() && !links.iter().any(|other| other == link) {
            links.push(link.to_owned());
        }
    }
    links
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_web_links_are_found() {
        let check = |text: &str, found: &[&str]| assert_eq!(super::links(text), found, "{text}");
        check("see https://example.org/a?b=c.", &["https://example.org/a?b=c"]);
        check(
            "(http://x.example/) and [y](https://y.example)",
            &["http://x.example/", "https://y.example"],
        );
        check("file:///etc/passwd javascript:alert(1) https://", &[]);
        check("https://a.example https://a.example", &["https://a.example"]);
    }
}

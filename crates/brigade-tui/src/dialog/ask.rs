//! What is asked before something is done.

use brigade_agents::driver;
use brigade_core::approvals::Wanted;
use brigade_core::policy;
use brigade_wire::name::{MemberName, TaskId};

use super::super::keys::Command;
use super::super::orders::Order;
use super::super::screen::{Effect, Screen};
use super::super::views::{self, View, mail};
use super::form::{Field, Form, Purpose};
use super::pick::{Choice, Chosen, Pick};
use super::{Confirm, Dialog};
use brigade_core::text;

/// How many lines of a command are asked about.
const COMMAND: usize = 8;

/// Asks what a command needs to know, or whether it is meant.
pub(crate) fn ask(screen: &mut Screen, command: Command) -> Vec<Effect> {
    match command {
        Command::Copy => match views::chosen_text(screen) {
            Some(text) => {
                screen.say("copied", false);
                return vec![Effect::Copy(text)];
            }
            None => screen.say("nothing is chosen", true),
        },
        Command::Link => return link(screen),
        command if command.is_order() => {
            if screen.replay.is_some() {
                screen.say("a replay shows what was; nothing can be done in it", true);
            } else if screen.me.is_none() {
                screen
                    .say("you are nobody on this team; start with --as NAME to do something", true);
            } else {
                match order(screen, command) {
                    Ok(dialog) => screen.dialog = Some(dialog),
                    Err(why) => screen.say(why, true),
                }
            }
        }
        _ => {}
    }
    Vec::new()
}

fn order(screen: &Screen, command: Command) -> Result<Dialog, &'static str> {
    let names = || -> Vec<String> {
        screen.picture.members().iter().map(|person| person.name.to_string()).collect()
    };
    let me = screen.me.as_ref().map(ToString::to_string);
    let others = || -> Vec<String> {
        names().into_iter().filter(|name| Some(name) != me.as_ref()).collect()
    };
    Ok(match command {
        Command::Send => {
            let to = to(screen).filter(|to| Some(to) != me.as_ref());
            let to = to.or_else(|| others().into_iter().next()).unwrap_or_default();
            Dialog::Form(Form::new(
                "Send",
                Purpose::Send,
                vec![
                    Field::new("to", "a member; ↑↓ choose").with(&to).of(others()),
                    Field::new("text", "alt-enter begins a new line"),
                ],
            ))
        }
        Command::Broadcast => Dialog::Form(Form::new(
            format!("Send to everybody ({})", others().len()),
            Purpose::Broadcast,
            vec![Field::new("text", "each of them reads it, and it costs each of them")],
        )),
        Command::AddTask => Dialog::Form(Form::new(
            "Add a task",
            Purpose::AddTask,
            vec![
                Field::new("subject", "in a line"),
                Field::new("description", "in full"),
                Field::new("after", "numbers of tasks it waits for"),
                Field::new("owner", "nobody; ↑↓ choose").of(names()),
            ],
        )),
        Command::Spawn => {
            let agents = driver::AGENTS.iter().map(|agent| agent.name.to_owned()).collect();
            let yes_no = || vec!["no".to_owned(), "yes".to_owned()];
            Dialog::Form(Form::new(
                "Start a new member",
                Purpose::Spawn,
                vec![
                    Field::new("name", "what the team calls it"),
                    Field::new("agent", "↑↓ choose").with("codex").of(agents),
                    Field::new("worktree", "↑↓ a folder and branch of its own")
                        .with("no")
                        .of(yes_no()),
                    Field::new("plan first", "↑↓ nothing is changed before its plan is approved")
                        .with("no")
                        .of(yes_no()),
                    Field::new("prompt", "what it begins with"),
                ],
            ))
        }
        Command::Stop => {
            let person = screen.chosen_member().ok_or("nobody is chosen")?;
            if screen.picture.leads(person.who) {
                return Err("the lead is not stopped from here; `brigade down` ends a team");
            }
            let name = person.member_name().ok_or("it has no name that can be written to")?;
            let order = |now| Effect::Do(Order::Stop { name: name.clone(), now });
            Dialog::Confirm(Confirm {
                question: format!("Ask {name} to stop?"),
                lines: vec![
                    "It ends what it is at, gives its tasks back and leaves.".into(),
                    "With n it goes on; with e it is ended without being asked.".into(),
                ],
                yes: order(false),
                other: Some(('e', "end it now", order(true))),
            })
        }
        Command::Assign => {
            let id = task(screen)?;
            let give = |owner: Option<String>| {
                let parsed = owner.as_deref().and_then(|owner| owner.parse().ok());
                Choice {
                    label: owner.unwrap_or_else(|| "nobody".into()),
                    hint: String::new(),
                    chosen: Chosen::Effect(Effect::Do(Order::Assign { id, owner: parsed })),
                    also: String::new(),
                }
            };
            let choices = names().into_iter().map(Some).chain([None]).map(give).collect();
            Dialog::Pick(Pick::new(format!("Give task {id} to"), choices))
        }
        Command::Claim | Command::Finish => {
            let id = task(screen)?;
            let subject = screen.picture.card(id.get()).map(|card| text::one_line(&card.subject));
            let (question, order, means) = if command == Command::Claim {
                (
                    format!("Take task {id}?"),
                    Order::Claim { id },
                    "It is yours then, and in progress.",
                )
            } else {
                (
                    format!("Is task {id} done?"),
                    Order::Finish { id },
                    "Those that wait for it can begin.",
                )
            };
            let lines = vec![subject.unwrap_or_default(), means.to_owned()];
            Dialog::Confirm(Confirm { question, lines, yes: Effect::Do(order), other: None })
        }
        Command::Approve => {
            let approval = screen.chosen_request().ok_or("nothing waits for an answer")?;
            let (from, kind) = (&approval.from, approval.wanted.kind());
            let lines = match &approval.wanted {
                Wanted::Plan { .. } => {
                    vec!["It goes on with its plan, and may change things.".to_owned()]
                }
                Wanted::Permission { tool, input, description, cwd } => {
                    let what = policy::command(input);
                    let what = what.unwrap_or_else(|| format!("{tool}: {description}"));
                    let place = cwd.as_ref().map(|cwd| format!("in {}", text::one_line(cwd)));
                    told(&what).into_iter().chain(place).collect()
                }
            };
            Dialog::Confirm(Confirm {
                question: format!("Approve {from}'s {kind}?"),
                lines,
                yes: Effect::Do(Order::Answer {
                    request_id: approval.request_id.clone(),
                    no: None,
                }),
                other: None,
            })
        }
        Command::Deny => {
            let approval = screen.chosen_request().ok_or("nothing waits for an answer")?;
            let request_id = approval.request_id.clone();
            Dialog::Form(Form::new(
                format!("Deny {}'s {}", approval.from, approval.wanted.kind()),
                Purpose::Deny { request_id },
                vec![Field::new("reason", "it is told this")],
            ))
        }
        Command::Pane | Command::Worktree => {
            let person = screen.chosen_member().ok_or("nobody is chosen")?;
            let name = person.member_name().ok_or("it has no name that can be written to")?;
            let (question, order, lines) = if command == Command::Pane {
                (format!("Open {name}'s window?"), Order::Pane { name }, "To come back: ctrl-b d")
            } else {
                (
                    format!("Open a shell where {name} works?"),
                    Order::Worktree { name },
                    "To come back: exit",
                )
            };
            Dialog::Confirm(Confirm {
                question,
                lines: vec![lines.into()],
                yes: Effect::Do(order),
                other: None,
            })
        }
        _ => return Err("that is not for here"),
    })
}

/// A command as it would be run, line by line: a line break in it begins another command.
fn told(what: &str) -> Vec<String> {
    let text = text::plain(what);
    let all = text.lines().count();
    let mut lines: Vec<String> = text.lines().take(COMMAND).map(str::to_owned).collect();
    if all > COMMAND {
        lines.push(format!("… and {} more lines: read them before you answer", all - COMMAND));
    }
    lines
}

/// Whom a message is for, if nothing else is said: the other one of what is chosen in the mail, or who is
/// chosen.
fn to(screen: &Screen) -> Option<String> {
    if screen.view == View::Mail
        && let Some(letter) = mail::chosen_letter(screen)
    {
        let me = screen.me.as_ref().map(MemberName::as_str);
        let (from, to) = (screen.picture.name(letter.from), screen.picture.name(letter.to));
        return Some(if Some(from) == me { to } else { from }.to_owned());
    }
    screen.chosen_member().map(|person| person.name.to_string())
}

fn task(screen: &Screen) -> Result<TaskId, &'static str> {
    views::board::chosen(screen).and_then(TaskId::new).ok_or("no task is chosen")
}

/// Opens a link of what is chosen; asks which, if there are several.
fn link(screen: &mut Screen) -> Vec<Effect> {
    let text = views::chosen_text(screen).unwrap_or_default();
    let mut links = links(&text);
    match (links.len(), links.pop()) {
        (1, Some(link)) => return vec![Effect::Browse(link)],
        (_, Some(last)) => {
            links.push(last);
            let choice = |link: String| Choice {
                label: link.clone(),
                hint: String::new(),
                chosen: Chosen::Effect(Effect::Browse(link)),
                also: String::new(),
            };
            let choices = links.into_iter().map(choice).collect();
            screen.dialog = Some(Dialog::Pick(Pick::new("Open", choices)));
        }
        (_, None) => screen.say("there is no link in it", true),
    }
    Vec::new()
}

/// The addresses in a text. Only those of the web: a message is data, and opens no program.
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
    fn links_are_found_in_words() {
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

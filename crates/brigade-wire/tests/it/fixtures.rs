//! Every real file, read and written back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use brigade_wire::Damage;
use brigade_wire::change::Change;
use brigade_wire::generation::Generation;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::member::{Member, MemberChange, NewMember};
use brigade_wire::message::{Entry, NewMessage, Stamp};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{NewTask, Status, Task, TaskChange};
use brigade_wire::team::{NewTeam, Team, TeamChange};
use serde_json::Value;

use crate::files::{self, Fixture, Form, text};

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Whole, and the same bytes after its fields were changed and changed back.
    Same,
    /// The same, and written anew from its fields alone it has the same bytes too.
    Anew,
    Torn(Damage),
}

fn outcome(fixture: &Fixture) -> Option<Outcome> {
    let anew = match fixture.form {
        Form::Team => team(&fixture.bytes),
        Form::Inbox => inbox(&fixture.bytes),
        Form::Task => task(&fixture.bytes),
        Form::HighWaterMark => {
            let mark: TaskId = text(&fixture.bytes).parse().unwrap();
            Ok(Some(mark.to_string().into_bytes()))
        }
        Form::Lock => Ok(Some(Vec::new())),
        Form::Other => return None,
    };
    Some(match anew {
        Err(damage) => Outcome::Torn(damage),
        Ok(anew) if anew.as_ref() == Some(&fixture.bytes) => Outcome::Anew,
        Ok(_) => Outcome::Same,
    })
}

#[test]
fn every_well_formed_file_is_byte_identical_after_read_and_write() {
    let mut table: BTreeMap<Form, [usize; 4]> = BTreeMap::new();
    let (mut torn, mut foreign) = (Vec::new(), Vec::new());
    let mut others = 0;
    for fixture in files::all() {
        let Some(outcome) = outcome(&fixture) else {
            others += 1;
            continue;
        };
        let json = !matches!(fixture.form, Form::Lock | Form::HighWaterMark);
        let whole = !json || serde_json::from_slice::<Value>(&fixture.bytes).is_ok();
        let row = table.entry(fixture.form).or_default();
        row[0] += 1;
        match outcome {
            Outcome::Torn(damage) => {
                assert!(!whole, "{} is whole, but was read as: {damage}", fixture.path);
                row[3] += 1;
                torn.push((damage, fixture.path));
            }
            same => {
                assert!(whole, "{} is torn, but was read as whole", fixture.path);
                row[1] += 1;
                row[2] += usize::from(same == Outcome::Anew);
                if same == Outcome::Same {
                    foreign.push(fixture.path);
                }
            }
        }
    }
    println!("{:14} {:>5} {:>9} {:>5} {:>4}", "", "files", "identical", "anew", "torn");
    let mut sum = [0; 4];
    for (form, row) in &table {
        println!(
            "{:14} {:>5} {:>9} {:>5} {:>4}",
            format!("{form:?}"),
            row[0],
            row[1],
            row[2],
            row[3]
        );
        sum.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    println!("{:14} {:>5} {:>9} {:>5} {:>4}", "all", sum[0], sum[1], sum[2], sum[3]);
    println!("{others} more files are no team files (logs, turns, a README)");
    for path in &foreign {
        println!("identical, with the hand of an outside program in it: {path}");
    }
    for (damage, path) in &torn {
        println!("torn: {path}: {damage}");
    }
    assert_eq!(sum[0], sum[1] + sum[3], "each file is identical or recognised as torn");
    let made_outside = |path: &String| path.contains("-end/");
    assert!(foreign.iter().all(made_outside), "our writer strays from Claude Code's bytes");
    assert!(torn.iter().any(|(damage, _)| *damage == Damage::Blank));
    assert!(torn.iter().any(|(damage, _)| matches!(damage, Damage::CutOff { .. })));
    assert!(torn.iter().any(|(damage, _)| matches!(damage, Damage::Tail { .. })));
}

/// A value that no fixture has.
const OTHER: &str = "something else";

/// A change that shows, and its undoing, which leaves no trace.
#[track_caller]
fn there_and_back<'b>(
    bytes: &'b [u8],
    there: impl Fn(&'b [u8]) -> Cow<'b, [u8]>,
    back: impl for<'c> Fn(&'c [u8]) -> Cow<'c, [u8]>,
) {
    let changed = there(bytes);
    assert!(matches!(changed, Cow::Owned(_)) && changed != bytes, "no change to be seen");
    assert_eq!(back(&changed), bytes, "undone, every byte is as it was");
}

/// Checks that fields of the file can be changed and changed back. The file written anew from its
/// fields alone comes back, unless it has what Claude Code would not write.
fn inbox(bytes: &[u8]) -> Result<Option<Vec<u8>>, Damage> {
    let inbox = Inbox::read(bytes)?;
    let len = inbox.entries().len();
    let one = NewMessage {
        from: "a",
        text: "t",
        summary: None,
        timestamp: "t",
        color: None,
        read: false,
        stamp: Stamp::Old { msg_id: None },
    };
    there_and_back(
        bytes,
        |bytes| Inbox::read(bytes).unwrap().with_appended(std::slice::from_ref(&one)),
        |bytes| {
            let mut entries = 0..;
            Inbox::read(bytes).unwrap().retain(|_| entries.next().unwrap() < len)
        },
    );
    for unread in inbox.messages().filter(|message| !message.read()) {
        let marked = inbox.with_read(|message| message.index() == unread.index());
        let same = |(a, b): &(&u8, &u8)| a == b;
        let head = bytes.iter().zip(marked.iter()).take_while(same).count();
        let tail = bytes.iter().rev().zip(marked.iter().rev()).take_while(same).count();
        let middle = |bytes: &'_ [u8]| text(&bytes[head..bytes.len() - tail]).to_owned();
        assert_eq!((middle(bytes), middle(&marked)), ("fals".to_owned(), "tru".to_owned()));
    }
    let mut anew = inbox::EMPTY.to_vec();
    for entry in inbox.entries() {
        let Entry::Message(message) = entry else {
            return Ok(None);
        };
        let (from, text, timestamp) = (message.from(), message.text(), message.timestamp());
        let (summary, msg_id, lead_sig) = (message.summary(), message.msg_id(), message.lead_sig());
        let stamp = match msg_id.as_deref() {
            Some(msg_id) => Stamp::New { msg_id, lead_sig: lead_sig.as_deref() },
            None => Stamp::Old { msg_id: None },
        };
        let new = NewMessage {
            from: &from,
            text: &text,
            summary: summary.as_deref(),
            timestamp: &timestamp,
            color: message.color().map(|color| color.parse().unwrap()),
            read: message.read(),
            stamp,
        };
        inbox::append(&mut anew, &[new]).unwrap();
    }
    Ok(Some(anew))
}

fn team(bytes: &[u8]) -> Result<Option<Vec<u8>>, Damage> {
    let team = Team::read(bytes)?;
    let (name, session) = (team.name().unwrap(), team.lead_session_id().unwrap());
    let description = team.description();
    let change = |change: TeamChange<'_>, back: TeamChange<'_>| {
        there_and_back(
            bytes,
            |bytes| Team::read(bytes).unwrap().with(&change),
            |bytes| Team::read(bytes).unwrap().with(&back),
        );
    };
    let keep = TeamChange::default;
    change(TeamChange { name: Some(OTHER), ..keep() }, TeamChange { name: Some(&name), ..keep() });
    change(
        TeamChange { description: Change::Set(OTHER), ..keep() },
        TeamChange {
            description: description.as_deref().map_or(Change::Clear, Change::Set),
            ..keep()
        },
    );
    change(
        TeamChange { lead_session_id: Some(OTHER), ..keep() },
        TeamChange { lead_session_id: Some(&session), ..keep() },
    );
    for member in team.members() {
        let (name, keep) = (member.name().unwrap(), MemberChange::default);
        let change = |change: MemberChange<'_>, back: MemberChange<'_>| {
            there_and_back(
                bytes,
                |bytes| Team::read(bytes).unwrap().with_member_changed(&name, &change).unwrap(),
                |bytes| Team::read(bytes).unwrap().with_member_changed(&name, &back).unwrap(),
            );
        };
        let (pane, backend) = (member.tmux_pane_id(), member.backend_type());
        change(
            MemberChange { tmux_pane_id: Some(OTHER), ..keep() },
            MemberChange { tmux_pane_id: pane.as_deref(), ..keep() },
        );
        if backend.is_some() {
            change(
                MemberChange { backend_type: Some(OTHER), ..keep() },
                MemberChange { backend_type: backend.as_deref(), ..keep() },
            );
        }
        if let Some(active) = member.is_active() {
            change(
                MemberChange { is_active: Some(!active), ..keep() },
                MemberChange { is_active: Some(active), ..keep() },
            );
        }
    }

    // Written anew: the lead alone, then each teammate added.
    let lead = team.lead().unwrap();
    let is_mate = |member: &Member<'_>| member.agent_id() != lead.agent_id();
    let mut anew = match team.generation() {
        Generation::Old => {
            let name: TeamName = name.parse().unwrap();
            let team = NewTeam {
                name: &name,
                description: &description.unwrap(),
                created_at: team.created_at().unwrap(),
                lead_session_id: &session,
                lead_model: &lead.model().unwrap(),
                lead_cwd: &lead.cwd().unwrap(),
            };
            team.to_bytes()
        }
        Generation::New => team.members().filter(is_mate).fold(bytes.to_vec(), |rest, mate| {
            Team::read(&rest).unwrap().without_member(&mate.name().unwrap()).into_owned()
        }),
    };
    for mate in team.members().filter(is_mate) {
        let name: MemberName = mate.name().unwrap().parse().unwrap();
        let backend_type = mate.backend_type();
        let member = NewMember {
            name: &name,
            agent_type: &mate.agent_type().unwrap(),
            model: &mate.model().unwrap(),
            prompt: &mate.prompt().unwrap(),
            color: mate.color().unwrap().parse().unwrap(),
            plan_mode_required: mate.plan_mode_required().unwrap(),
            joined_at: mate.joined_at().unwrap(),
            tmux_pane_id: &mate.tmux_pane_id().unwrap(),
            cwd: &mate.cwd().unwrap(),
            backend_type: backend_type.as_deref(),
            is_active: mate.is_active(),
        };
        anew = Team::read(&anew).unwrap().with_member(&member).unwrap();
    }
    Ok(Some(anew))
}

fn task(bytes: &[u8]) -> Result<Option<Vec<u8>>, Damage> {
    let task = Task::read(bytes)?;
    let (subject, description) = (task.subject(), task.description());
    let (active_form, owner) = (task.active_form(), task.owner());
    let change = |change: TaskChange<'_>, back: TaskChange<'_>| {
        there_and_back(
            bytes,
            |bytes| Task::read(bytes).unwrap().with(&change),
            |bytes| Task::read(bytes).unwrap().with(&back),
        );
    };
    let keep = TaskChange::default;
    let form = active_form.as_deref().map_or(Change::Clear, Change::Set);
    change(
        TaskChange { active_form: Change::Set(OTHER), ..keep() },
        TaskChange { active_form: form, ..keep() },
    );
    let who = owner.as_deref().map_or(Change::Clear, Change::Set);
    change(TaskChange { owner: Change::Set(OTHER), ..keep() }, TaskChange { owner: who, ..keep() });
    change(
        TaskChange { subject: Some(OTHER), ..keep() },
        TaskChange { subject: subject.as_deref(), ..keep() },
    );
    if description.is_some() {
        change(
            TaskChange { description: Some(OTHER), ..keep() },
            TaskChange { description: description.as_deref(), ..keep() },
        );
    }
    if let Some(status) = task.status() {
        let other = if status == Status::Pending { Status::Completed } else { Status::Pending };
        change(
            TaskChange { status: Some(other), ..keep() },
            TaskChange { status: Some(status), ..keep() },
        );
    }
    let other = || Some(vec!["x".into(), "y".into()]);
    if let Some(blocks) = task.blocks() {
        change(
            TaskChange { blocks: other(), ..keep() },
            TaskChange { blocks: Some(blocks), ..keep() },
        );
    }
    if let Some(blocked_by) = task.blocked_by() {
        change(
            TaskChange { blocked_by: other(), ..keep() },
            TaskChange { blocked_by: Some(blocked_by), ..keep() },
        );
    }

    let id = task.id().and_then(|id| id.parse::<TaskId>().ok());
    let ids = |ids: Option<Vec<Cow<'_, str>>>| -> Option<Vec<TaskId>> {
        ids?.iter().map(|id| id.parse().ok()).collect()
    };
    let (Some(id), true) = (id, task.is_visible()) else {
        return Ok(None);
    };
    let (Some(blocks), Some(blocked_by)) = (ids(task.blocks()), ids(task.blocked_by())) else {
        return Ok(None);
    };
    let new = NewTask {
        id,
        subject: &subject.unwrap(),
        description: &description.unwrap(),
        active_form: active_form.as_deref(),
        owner: owner.as_deref(),
        status: task.status().unwrap(),
        blocks: &blocks,
        blocked_by: &blocked_by,
        metadata: &[],
    };
    // A first owner stands last until the next update.
    let unowned = NewTask { owner: None, ..new.clone() }.to_bytes();
    let first = TaskChange {
        owner: owner.as_deref().map_or(Change::Keep, Change::Set),
        ..TaskChange::default()
    };
    let owned = Task::read(&unowned).unwrap().with(&first).into_owned();
    Ok(Some(if owned == bytes { owned } else { new.to_bytes() }))
}

//! Reads every recorded file and writes it again, and checks that the bytes are the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use brigade_wire::Damage;
use brigade_wire::change::Change;
use brigade_wire::generation::Generation;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::member::{Member, MemberChange, NewMember};
use brigade_wire::message::{GenerationFields, InboxEntry, NewMessage};
use brigade_wire::name::{MemberName, TaskId, TeamName};
use brigade_wire::task::{NewTask, Status, Task, TaskChange};
use brigade_wire::team::{NewTeam, Team, TeamChange};
use serde_json::Value;

use crate::files::{self, FileType, Fixture, text};

/// The result of reading and writing one file.
#[derive(Debug, PartialEq, Eq)]
enum RoundTrip {
    /// The file parses. If a test changes fields and then restores them, the file has the same bytes as before.
    Restored,
    /// Like [`Self::Restored`], and a new file written from the fields also has the same bytes.
    Rewritten,
    Damaged(Damage),
}

fn round_trip(fixture: &Fixture) -> Option<RoundTrip> {
    let rewritten = match fixture.file_type {
        FileType::Team => team(&fixture.bytes),
        FileType::Inbox => inbox(&fixture.bytes),
        FileType::Task => task(&fixture.bytes),
        FileType::HighWaterMark => {
            let mark: TaskId = text(&fixture.bytes).parse().unwrap();
            Ok(Some(mark.to_string().into_bytes()))
        }
        FileType::Lock => Ok(Some(Vec::new())),
        FileType::Other => return None,
    };
    Some(match rewritten {
        Err(damage) => RoundTrip::Damaged(damage),
        Ok(bytes) if bytes.as_ref() == Some(&fixture.bytes) => RoundTrip::Rewritten,
        Ok(_) => RoundTrip::Restored,
    })
}

#[test]
fn every_complete_file_is_byte_identical_after_reading_and_writing() {
    let mut table: BTreeMap<FileType, [usize; 4]> = BTreeMap::new();
    let (mut damaged, mut edited_by_others) = (Vec::new(), Vec::new());
    let mut others = 0;
    for fixture in files::all() {
        let Some(result) = round_trip(&fixture) else {
            others += 1;
            continue;
        };
        let json = !matches!(fixture.file_type, FileType::Lock | FileType::HighWaterMark);
        let complete = !json || serde_json::from_slice::<Value>(&fixture.bytes).is_ok();
        let row = table.entry(fixture.file_type).or_default();
        row[0] += 1;
        match result {
            RoundTrip::Damaged(damage) => {
                assert!(!complete, "{} is complete, but was read as: {damage}", fixture.path);
                row[3] += 1;
                damaged.push((damage, fixture.path));
            }
            result => {
                assert!(complete, "{} is damaged, but was read as complete", fixture.path);
                row[1] += 1;
                row[2] += usize::from(result == RoundTrip::Rewritten);
                if result == RoundTrip::Restored {
                    edited_by_others.push(fixture.path);
                }
            }
        }
    }
    println!("{:14} {:>5} {:>9} {:>9} {:>7}", "", "files", "restored", "rewritten", "damaged");
    let mut sum = [0; 4];
    for (file_type, row) in &table {
        println!(
            "{:14} {:>5} {:>9} {:>9} {:>7}",
            format!("{file_type:?}"),
            row[0],
            row[1],
            row[2],
            row[3]
        );
        sum.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    println!("{:14} {:>5} {:>9} {:>9} {:>7}", "all", sum[0], sum[1], sum[2], sum[3]);
    println!("{others} other files are not team files");
    for path in &edited_by_others {
        println!("restored, but partly written by another program: {path}");
    }
    for (damage, path) in &damaged {
        println!("damaged: {path}: {damage}");
    }
    assert_eq!(
        sum[0],
        sum[1] + sum[3],
        "some files are neither restored nor recognised as damaged"
    );
    let is_edited = |path: &String| path.contains("-end/");
    assert!(edited_by_others.iter().all(is_edited), "brigade writes other bytes than Claude Code");
    assert!(damaged.iter().any(|(damage, _)| *damage == Damage::Blank));
    assert!(damaged.iter().any(|(damage, _)| matches!(damage, Damage::CutOff { .. })));
    assert!(damaged.iter().any(|(damage, _)| matches!(damage, Damage::Tail { .. })));
}

/// A value that no fixture contains.
const OTHER: &str = "something else";

/// Checks that a change takes effect, and that undoing it restores every byte.
#[track_caller]
fn check_change_and_undo<'b>(
    bytes: &'b [u8],
    change: impl Fn(&'b [u8]) -> Cow<'b, [u8]>,
    undo: impl for<'c> Fn(&'c [u8]) -> Cow<'c, [u8]>,
) {
    let changed = change(bytes);
    assert!(matches!(changed, Cow::Owned(_)) && changed != bytes, "the change had no effect");
    assert_eq!(undo(&changed), bytes, "undoing the change did not restore every byte");
}

/// Checks that fields of an inbox can be changed and changed back. Returns a new inbox file written from those
/// fields, or none if the inbox contains something that Claude Code would not write.
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
        stamp: GenerationFields::Old { msg_id: None },
    };
    check_change_and_undo(
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
    let mut rewritten = inbox::EMPTY.to_vec();
    for entry in inbox.entries() {
        let InboxEntry::Message(message) = entry else {
            return Ok(None);
        };
        let (from, text, timestamp) = (message.from(), message.text(), message.timestamp());
        let (summary, msg_id, lead_sig) = (message.summary(), message.msg_id(), message.lead_sig());
        let stamp = match msg_id.as_deref() {
            Some(msg_id) => GenerationFields::New { msg_id, lead_sig: lead_sig.as_deref() },
            None => GenerationFields::Old { msg_id: None },
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
        inbox::append(&mut rewritten, &[new]).unwrap();
    }
    Ok(Some(rewritten))
}

fn team(bytes: &[u8]) -> Result<Option<Vec<u8>>, Damage> {
    let team = Team::read(bytes)?;
    let (name, session) = (team.name().unwrap(), team.lead_session_id().unwrap());
    let description = team.description();
    let change = |change: TeamChange<'_>, back: TeamChange<'_>| {
        check_change_and_undo(
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
            check_change_and_undo(
                bytes,
                |bytes| Team::read(bytes).unwrap().with_member_changed(&name, &change).unwrap(),
                |bytes| Team::read(bytes).unwrap().with_member_changed(&name, &back).unwrap(),
            );
        };
        let (pane, backend) = (member.tmux_pane_id(), member.backend_type());
        let [agent, model, prompt, cwd] =
            [member.agent_type(), member.model(), member.prompt(), member.cwd()];
        if agent.is_some() {
            change(
                MemberChange { agent_type: Some(OTHER), ..keep() },
                MemberChange { agent_type: agent.as_deref(), ..keep() },
            );
        }
        if model.is_some() {
            change(
                MemberChange { model: Some(OTHER), ..keep() },
                MemberChange { model: model.as_deref(), ..keep() },
            );
        }
        if prompt.is_some() {
            change(
                MemberChange { prompt: Some(OTHER), ..keep() },
                MemberChange { prompt: prompt.as_deref(), ..keep() },
            );
        }
        if cwd.is_some() {
            change(
                MemberChange { cwd: Some(OTHER), ..keep() },
                MemberChange { cwd: cwd.as_deref(), ..keep() },
            );
        }
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

    // Rewrite the file: create a team with only the lead, then add each teammate.
    let lead = team.lead().unwrap();
    let is_mate = |member: &Member<'_>| member.agent_id() != lead.agent_id();
    let mut rewritten = match team.generation() {
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
        rewritten = Team::read(&rewritten).unwrap().with_member(&member).unwrap();
    }
    Ok(Some(rewritten))
}

fn task(bytes: &[u8]) -> Result<Option<Vec<u8>>, Damage> {
    let task = Task::read(bytes)?;
    let (subject, description) = (task.subject(), task.description());
    let (active_form, owner) = (task.active_form(), task.owner());
    let change = |change: TaskChange<'_>, back: TaskChange<'_>| {
        check_change_and_undo(
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
    let old_owner = owner.as_deref().map_or(Change::Clear, Change::Set);
    change(
        TaskChange { owner: Change::Set(OTHER), ..keep() },
        TaskChange { owner: old_owner, ..keep() },
    );
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
    // When a task gets its first owner, Claude Code adds `owner` as the last field. A later update of the task
    // writes the fields in the usual order.
    let unowned = NewTask { owner: None, ..new.clone() }.to_bytes();
    let first = TaskChange {
        owner: owner.as_deref().map_or(Change::Keep, Change::Set),
        ..TaskChange::default()
    };
    let owned = Task::read(&unowned).unwrap().with(&first).into_owned();
    Ok(Some(if owned == bytes { owned } else { new.to_bytes() }))
}

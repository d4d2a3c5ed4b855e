//! Every real file, read and written back.

use std::collections::BTreeMap;

use brigade_wire::Damage;
use brigade_wire::change::Change;
use brigade_wire::generation::Generation;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::member::{MemberChange, NewMember, NewTeam};
use brigade_wire::message::{Entry, NewMessage, Stamp};
use brigade_wire::name::{AgentId, TaskId, TeamName};
use brigade_wire::task::{NewTask, Task, TaskChange};
use brigade_wire::team::{Team, TeamChange};
use serde_json::Value;

use crate::files::{self, Fixture, Form};

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Whole, and the same bytes after every known field was read and written as it was.
    Same,
    /// The same, and written anew from its fields alone it has the same bytes too.
    Rebuilt,
    Torn(Damage),
}

fn outcome(fixture: &Fixture) -> Option<Outcome> {
    let read = match fixture.form {
        Form::Team => team(&fixture.bytes),
        Form::Inbox => inbox(&fixture.bytes),
        Form::Task => task(&fixture.bytes),
        Form::HighWaterMark => {
            let mark: TaskId = str::from_utf8(&fixture.bytes).unwrap().parse().unwrap();
            Ok(vec![mark.to_string().into_bytes()])
        }
        Form::Lock => Ok(vec![Vec::new()]),
        Form::Other => return None,
    };
    Some(match read {
        Err(damage) => Outcome::Torn(damage),
        Ok(written) => {
            let (rewritten, rebuilt) = written.split_first().unwrap();
            assert_eq!(rewritten, &fixture.bytes, "{} read and written back", fixture.path);
            if rebuilt.first() == Some(&fixture.bytes) { Outcome::Rebuilt } else { Outcome::Same }
        }
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
                row[2] += usize::from(same == Outcome::Rebuilt);
                if json && same == Outcome::Same {
                    foreign.push(fixture.path);
                }
            }
        }
    }
    println!("{:14} {:>5} {:>9} {:>7} {:>4}", "", "files", "identical", "rebuilt", "torn");
    let mut sum = [0; 4];
    for (form, row) in &table {
        println!(
            "{:14} {:>5} {:>9} {:>7} {:>4}",
            format!("{form:?}"),
            row[0],
            row[1],
            row[2],
            row[3]
        );
        sum.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    println!("{:14} {:>5} {:>9} {:>7} {:>4}", "all", sum[0], sum[1], sum[2], sum[3]);
    println!("{others} more files are no team files (logs, turns, a README)");
    for path in &foreign {
        println!("identical, but not as Claude Code would write it anew: {path}");
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

/// The bytes after every known field was set to itself, and, where each entry has only the fields
/// Claude Code gives it, the bytes of the same written anew.
fn inbox(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Damage> {
    let inbox = Inbox::read(bytes)?;
    let rewritten = inbox.with_read(|_| false);
    assert_eq!(rewritten, inbox.retain(|_| true));
    assert_eq!(rewritten, inbox.with_appended(&[]));
    let mut rebuilt = inbox::EMPTY.to_vec();
    for entry in inbox.entries() {
        let Entry::Message(message) = entry else {
            return Ok(vec![rewritten]);
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
        inbox::append(&mut rebuilt, &[new]).unwrap();
    }
    Ok(vec![rewritten, rebuilt])
}

fn team(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Damage> {
    let team = Team::read(bytes)?;
    let (name, description) = (team.name().unwrap(), team.description());
    let rewritten = team.with(&TeamChange {
        name: Change::Set(&name),
        description: description.as_deref().map_or(Change::Keep, Change::Set),
        lead_session_id: team.lead_session_id().as_deref().map_or(Change::Keep, Change::Set),
    });
    for member in team.members() {
        let (pane, backend) = (member.tmux_pane_id(), member.backend_type());
        let change = MemberChange {
            tmux_pane_id: pane.as_deref().map_or(Change::Keep, Change::Set),
            backend_type: backend.as_deref().map_or(Change::Keep, Change::Set),
            is_active: member.is_active().map_or(Change::Keep, Change::Set),
        };
        let name = member.name().unwrap();
        assert_eq!(team.with_member_changed(&name, &change).unwrap(), bytes, "{name}");
    }

    // Written anew: the lead alone, then each teammate added.
    let mut rebuilt = match team.generation() {
        Generation::Old => {
            let lead = team.members().next().unwrap();
            let name: TeamName = name.parse().unwrap();
            let team = NewTeam {
                name: &name,
                description: description.as_deref().unwrap_or_default(),
                created_at: team.created_at().unwrap(),
                lead_session_id: &team.lead_session_id().unwrap(),
                lead_model: &lead.model().unwrap(),
                lead_cwd: &lead.cwd().unwrap(),
            };
            team.to_bytes()
        }
        Generation::New => {
            let mates = team.members().filter(|member| !member.is_lead());
            mates.fold(bytes.to_vec(), |rest, mate| {
                Team::read(&rest).unwrap().without_member(&mate.name().unwrap())
            })
        }
    };
    for mate in team.members().filter(|member| !member.is_lead()) {
        let agent_id: AgentId = mate.agent_id().unwrap().parse().unwrap();
        let backend_type = mate.backend_type();
        let member = NewMember {
            agent_id: &agent_id,
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
        rebuilt = Team::read(&rebuilt).unwrap().with_member(&member);
    }
    Ok(vec![rewritten, rebuilt])
}

fn task(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Damage> {
    let task = Task::read(bytes)?;
    let owned = |list: Option<Vec<_>>| -> Option<Vec<String>> {
        list.map(|list| {
            list.into_iter().map(|id: std::borrow::Cow<'_, str>| id.into_owned()).collect()
        })
    };
    let (blocks, blocked_by) = (owned(task.blocks()), owned(task.blocked_by()));
    let (subject, description) = (task.subject(), task.description());
    let (active_form, owner) = (task.active_form(), task.owner());
    let rewritten = task.with(&TaskChange {
        subject: subject.as_deref().map_or(Change::Keep, Change::Set),
        description: description.as_deref().map_or(Change::Keep, Change::Set),
        active_form: active_form.as_deref().map_or(Change::Keep, Change::Set),
        owner: owner.as_deref().map_or(Change::Keep, Change::Set),
        status: task.status().map_or(Change::Keep, Change::Set),
        blocks: blocks.as_deref().map_or(Change::Keep, Change::Set),
        blocked_by: blocked_by.as_deref().map_or(Change::Keep, Change::Set),
        metadata: &[],
    });
    let id = task.id().and_then(|id| id.parse::<TaskId>().ok());
    let (Some(id), true) = (id, task.is_visible()) else {
        return Ok(vec![rewritten]);
    };
    let new = NewTask {
        id,
        subject: &subject.unwrap(),
        description: &description.unwrap(),
        active_form: active_form.as_deref(),
        owner: owner.as_deref(),
        status: task.status().unwrap(),
        blocks: &blocks.unwrap(),
        blocked_by: &blocked_by.unwrap(),
        metadata: &[],
    };
    Ok(vec![rewritten, new.to_bytes()])
}

//! Members: who is on a roster and is not there, whose mail nobody reads, who waits.

use std::collections::HashMap;
use std::fs;

use brigade_core::event::{Event, Record};
use brigade_core::mail::with_message;
use brigade_core::pulse::{Process, State};
use brigade_core::store::Question;
use brigade_wire::body::Body;
use brigade_wire::inbox::Inbox;
use brigade_wire::member::Member;
use brigade_wire::message::Message;
use brigade_wire::name::{MemberName, inbox_stem};
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;

use super::fix::Deed;
use super::locks::ago;
use super::snapshot::{House, TeamFolder};
use super::{Cure, Found};
use brigade_host::process;

/// Who was heard of this long ago may be on its way back.
const BACK: SignedDuration = SignedDuration::from_secs(60);
/// A lead writes to a newcomer before it has put it on the roster; after this many seconds it has.
const NEWCOMER: i64 = 600;
/// A request has waited for long after this.
const LONG: SignedDuration = SignedDuration::from_mins(10);

/// Every member of every team but the leads.
fn teammates(house: &House, mut look: impl FnMut(&TeamFolder, &Member<'_>, &MemberName)) {
    for folder in &house.teams {
        let Some(team) = folder.roster() else { continue };
        let lead = team.lead().and_then(|lead| lead.name()).unwrap_or_default();
        for member in team.members().filter(|member| !member.is(&lead)) {
            if let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) {
                look(folder, &member, &name);
            }
        }
    }
}

/// Where a member is, in words.
fn place(folder: &TeamFolder, name: &MemberName) -> String {
    format!("{name} of team {}", folder.name)
}

fn leave(folder: &TeamFolder, member: &MemberName) -> Cure {
    match &folder.team {
        Some(team) => Cure::Deed(Deed::Leave { team: team.clone(), member: member.clone() }),
        None => Cure::Advice("take its entry out of config.json".to_owned()),
    }
}

/// When those joined who have left and were not brought back by us, and whether we took them off.
fn left(records: Vec<Record>) -> HashMap<String, (u64, bool)> {
    let joined_at = |member: &RawValue| {
        let member: serde_json::Value = serde_json::from_str(member.get()).ok()?;
        member.get("joinedAt")?.as_u64()
    };
    let mut joined: HashMap<String, u64> = HashMap::new();
    let mut left = HashMap::new();
    for Record { by, event, .. } in records {
        match event {
            Event::TeamCreated { .. } => {
                joined.clear();
                left.clear();
            }
            Event::Member { name, member, joined: is_new } => {
                if is_new && by.is_some() {
                    left.remove(&name);
                }
                joined.extend(joined_at(&member).map(|at| (name, at)));
            }
            Event::MemberLeft { name } => {
                if let Some(&at) = joined.get(&name) {
                    left.insert(name, (at, by.is_some()));
                }
            }
            _ => {}
        }
    }
    left
}

fn left_of(folder: &TeamFolder) -> HashMap<String, (u64, bool)> {
    left(folder.journal("team.jsonl", &["\"member_left\"", "\"member\"", "\"team_created\""]))
}

pub(super) fn returned(house: &House, found: &mut Found) {
    let mut known: HashMap<String, HashMap<String, (u64, bool)>> = HashMap::new();
    teammates(house, |folder, member, name| {
        let left = known.entry(folder.name.clone()).or_insert_with(|| left_of(folder));
        let left = left.get(name.as_str()).filter(|(at, _)| member.joined_at() == Some(*at));
        let Some(&(_, by_us)) = left else { return };
        if house.hosted(&folder.name, name.as_str()).is_some() {
            return;
        }
        let cure = if by_us || folder.is_ours {
            leave(folder, name)
        } else {
            Cure::Advice("take its entry out of config.json while no Claude Code runs".to_owned())
        };
        found.tell(place(folder, name), "it has left, and is on the roster again as it was", cure);
    });
}

pub(super) fn ghosts(house: &House, found: &mut Found) {
    let now = Timestamp::now();
    teammates(house, |folder, member, name| {
        let Some(pulse) = folder.pulse(name.as_str()) else { return };
        let silent = now.duration_since(pulse.at);
        // Of an earlier team, or an earlier member of that name, it says nothing of this one.
        let joined = member.joined_at().and_then(|at| i64::try_from(at).ok());
        let is_its = joined.is_some_and(|joined| pulse.at.as_millisecond() >= joined);
        if !is_its
            || silent < BACK
            || process::is_there(&pulse.process)
            || house.hosted(&folder.name, name.as_str()).is_some()
            || left_of(folder).get(name.as_str()).map(|left| left.0) == member.joined_at()
        {
            return;
        }
        let silent = ago(silent.as_secs());
        let what = format!("brigade played it, and its process has been gone for {silent}");
        found.tell(place(folder, name), what, leave(folder, name));
    });
}

pub(super) fn stuck_active(house: &House, found: &mut Found) {
    teammates(house, |folder, member, name| {
        let Some(hosted) = house.hosted(&folder.name, name.as_str()) else { return };
        let nobody_starts_it = house.supervisor.is_none() || hosted.trouble.is_some();
        if member.is_active() == Some(true) && hosted.plays.is_none() && nobody_starts_it {
            let what = "its process is gone, and it counts as at work";
            let Some(team) = folder.team.clone() else { return };
            let deed = Deed::Idle { team, member: name.clone() };
            found.fixable(place(folder, name), what, deed);
        }
    });
}

pub(super) fn failed_turn(house: &House, found: &mut Found) {
    teammates(house, |folder, _, name| {
        let state = folder.pulse(name.as_str()).map(|pulse| pulse.state);
        if let Some(State::Idle { failed: Some(why) }) = state {
            found.advise(place(folder, name), failed(&why), go_on(&folder.name, name));
        }
    });
}

/// What is wrong with a member whose vendor refused it.
pub(super) fn failed(why: &str) -> String {
    format!("its last turn failed: {why}")
}

/// What helps it.
pub(super) fn go_on(team: &str, name: &MemberName) -> String {
    format!("see to the cause, then `brigade --team {team} send {name} \"go on\"`")
}

pub(super) fn inbox_of_nobody(house: &House, found: &mut Found) {
    for folder in &house.teams {
        let Some(team) = folder.roster() else { continue };
        let stems: Vec<String> =
            team.members().filter_map(|member| Some(inbox_stem(&member.name()?))).collect();
        for (of, entry) in folder.mail() {
            let known = stems.iter().any(|stem| stem.eq_ignore_ascii_case(of));
            if known || entry.age < NEWCOMER || house.hosted(&folder.name, of).is_some() {
                continue;
            }
            let Some(paper) = entry.read() else { continue };
            let Ok(inbox) = Inbox::read(&paper.bytes) else { continue };
            let unread = inbox.messages().filter(|message| !message.read()).count();
            if unread == 0 {
                continue;
            }
            let what = format!("{unread} unread messages to {of}, who is not on the team");
            if folder.is_ours {
                found.fixable(entry.path.as_path(), what, Deed::MoveAside(entry.path.clone()));
            } else {
                let name = &folder.name;
                let advice = format!("read them with `brigade --team {name} inbox {of}`");
                found.advise(entry.path.as_path(), what, advice);
            }
        }
    }
}

pub(super) fn long_wait(house: &House, found: &mut Found) {
    for folder in house.teams.iter().filter(|folder| folder.is_ours) {
        let Some(team) = folder.roster() else { continue };
        let lead = team.lead().and_then(|lead| lead.name()).unwrap_or_default().into_owned();
        let created = team.created_at().unwrap_or_default();
        // What is in the inbox may not be in the journal yet.
        let inbox = folder.mail().find(|(of, _)| *of == lead).and_then(|(_, entry)| entry.read());
        let mut requests: Vec<(String, String, String)> = Vec::new();
        let mut hear = |message: &Message<'_>| requests.extend(request(&team, message));
        if let Some(Ok(inbox)) = inbox.as_ref().map(|paper| Inbox::read(&paper.bytes)) {
            inbox.messages().for_each(|message| hear(&message));
        }
        for record in folder.journal(&format!("mail/{lead}.jsonl"), &["_request"]) {
            if let Event::Sent { message, team_created, .. } = &record.event
                && *team_created == created
            {
                let _not_a_message =
                    with_message(message.get().as_bytes(), |message| message.map(|m| hear(&m)));
            }
        }
        requests.sort();
        requests.dedup();
        for (id, kind, asked) in requests {
            let Ok(of) = lead.parse() else { continue };
            let question = Question::new(&of, &format!("{lead}@{created}-{kind}-{id}"));
            let is_decided = folder.own.join("decided").join(question.as_str()).exists();
            let Ok(at) = asked.parse::<Timestamp>() else { continue };
            let waited = Timestamp::now().duration_since(at);
            if !is_decided && waited > LONG {
                let what =
                    format!("a {kind} request waits for an answer, {}", ago(waited.as_secs()));
                let advice = "the lead answers it: `brigade approvals`";
                found.advise(format!("{id} in team {}", folder.name), what, advice);
            }
        }
    }
}

/// The request of a member that a message is: its id, what is asked for, and when.
fn request(team: &Team<'_>, message: &Message<'_>) -> Option<(String, String, String)> {
    team.member(&message.from())?;
    let (id, kind) = match message.body() {
        Body::Protocol(Protocol::PlanApprovalRequest(asked)) => (asked.request_id, "plan"),
        Body::Protocol(Protocol::PermissionRequest(asked)) => (asked.request_id, "permission"),
        _ => return None,
    };
    Some((id, kind.to_owned(), message.timestamp().into_owned()))
}

pub(super) fn session_gone(house: &House, found: &mut Found) {
    let here = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let here = here.to_string_lossy();
    for folder in &house.teams {
        let lead = folder.roster().and_then(|team| team.lead_process());
        let Some(lead) = lead else { continue };
        let (Some(pid), Some(began), Some(space)) = (lead.pid, lead.proc_start, lead.pid_space)
        else {
            continue;
        };
        let Ok(pid) = u32::try_from(pid) else { continue };
        let is_here = !here.is_empty() && space.ends_with(&*here);
        if is_here && !process::is_there(&Process { pid, began }) {
            let what = format!("a team of a Claude Code session, process {pid}, that is not there");
            let advice = match &folder.team {
                Some(team) => format!("`brigade --as team-lead team delete {team} --force`"),
                None => "look whether somebody needs what is in it, then move it away".to_owned(),
            };
            found.advise(folder.dir.as_path(), what, advice);
        }
    }
}

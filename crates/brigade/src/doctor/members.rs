//! Checks of members: roster entries without a process, mail without a reader, requests without an answer.

use std::collections::HashMap;
use std::fs;

use brigade_core::event::{Event, Record};
use brigade_core::pulse::{Process, State};
use brigade_core::store::Question;
use brigade_core::wire::inbox::with_message;
use brigade_wire::body::Body;
use brigade_wire::inbox::Inbox;
use brigade_wire::member::Member;
use brigade_wire::message::Message;
use brigade_wire::name::{MemberName, inbox_stem};
use brigade_wire::protocol::Protocol;
use brigade_wire::team::Team;
use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;

use super::fix::Fix;
use super::locks::ago;
use super::snapshot::{DoctorSnapshot, TeamFolder};
use super::{Cure, Findings};
use brigade_host::process;

/// A member whose last heartbeat is more recent than this may be restarting.
const RESTART_GRACE: SignedDuration = SignedDuration::from_secs(60);
/// A lead may send mail to a new member before adding it to the roster. After this many seconds the member must
/// be on the roster.
const JOIN_GRACE: i64 = 600;
/// Requests that wait longer than this are reported.
const LONG_WAIT: SignedDuration = SignedDuration::from_mins(10);

/// Calls `visit` for every member of every team except the leads.
fn teammates(
    snapshot: &DoctorSnapshot,
    mut visit: impl FnMut(&TeamFolder, &Member<'_>, &MemberName),
) {
    for folder in &snapshot.teams {
        let Some(team) = folder.roster() else { continue };
        let lead = team.lead().and_then(|lead| lead.name()).unwrap_or_default();
        for member in team.members().filter(|member| !member.is(&lead)) {
            if let Some(Ok(name)) = member.name().map(|name| name.parse::<MemberName>()) {
                visit(folder, &member, &name);
            }
        }
    }
}

/// The member and its team as text.
fn place(folder: &TeamFolder, name: &MemberName) -> String {
    format!("{name} of team {}", folder.name)
}

fn leave(folder: &TeamFolder, member: &MemberName) -> Cure {
    match &folder.team {
        Some(team) => Cure::Automatic(Fix::Leave { team: team.clone(), member: member.clone() }),
        None => Cure::Manual("remove its entry from config.json".to_owned()),
    }
}

/// Members that left and that brigade did not add again: when each had joined, and whether brigade removed it.
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

pub(super) fn returned(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let mut known: HashMap<String, HashMap<String, (u64, bool)>> = HashMap::new();
    teammates(snapshot, |folder, member, name| {
        let left = known.entry(folder.name.clone()).or_insert_with(|| left_of(folder));
        let left = left.get(name.as_str()).filter(|(at, _)| member.joined_at() == Some(*at));
        let Some(&(_, by_us)) = left else { return };
        if snapshot.hosted(&folder.name, name.as_str()).is_some() {
            return;
        }
        let cure = if by_us || folder.is_ours {
            leave(folder, name)
        } else {
            Cure::Manual(
                "remove its entry from config.json while Claude Code is not running".to_owned(),
            )
        };
        found.add(place(folder, name), "it left, but its old entry is on the roster again", cure);
    });
}

pub(super) fn ghosts(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let now = Timestamp::now();
    teammates(snapshot, |folder, member, name| {
        let Some(pulse) = folder.pulse(name.as_str()) else { return };
        let silent = now.duration_since(pulse.at);
        // A pulse from before this member joined belongs to an earlier member of the same name.
        let joined = member.joined_at().and_then(|at| i64::try_from(at).ok());
        let is_current = joined.is_some_and(|joined| pulse.at.as_millisecond() >= joined);
        if !is_current
            || silent < RESTART_GRACE
            || process::is_there(&pulse.process)
            || snapshot.hosted(&folder.name, name.as_str()).is_some()
            || left_of(folder).get(name.as_str()).map(|left| left.0) == member.joined_at()
        {
            return;
        }
        let silent = ago(silent.as_secs());
        let what = format!("brigade ran it, but its process has been gone for {silent}");
        found.add(place(folder, name), what, leave(folder, name));
    });
}

pub(super) fn stuck_active(snapshot: &DoctorSnapshot, found: &mut Findings) {
    teammates(snapshot, |folder, member, name| {
        let Some(hosted) = snapshot.hosted(&folder.name, name.as_str()) else { return };
        let is_not_restarted = snapshot.supervisor.is_none() || hosted.trouble.is_some();
        if member.is_active() == Some(true) && hosted.process.is_none() && is_not_restarted {
            let what = "its process is gone, but it is marked as active";
            let Some(team) = folder.team.clone() else { return };
            let fix = Fix::Idle { team, member: name.clone() };
            found.fixable(place(folder, name), what, fix);
        }
    });
}

pub(super) fn failed_turn(snapshot: &DoctorSnapshot, found: &mut Findings) {
    teammates(snapshot, |folder, _, name| {
        let state = folder.pulse(name.as_str()).map(|pulse| pulse.state);
        if let Some(State::Idle { failed: Some(why) }) = state {
            found.advise(place(folder, name), failed(&why), continue_advice(&folder.name, name));
        }
    });
}

/// The problem of a member whose last turn failed.
pub(super) fn failed(why: &str) -> String {
    format!("its last turn failed: {why}")
}

/// The advice for a member whose last turn failed.
pub(super) fn continue_advice(team: &str, name: &MemberName) -> String {
    format!("fix the cause, then run `brigade --team {team} send {name} \"continue\"`")
}

pub(super) fn inbox_of_nobody(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for folder in &snapshot.teams {
        let Some(team) = folder.roster() else { continue };
        let stems: Vec<String> =
            team.members().filter_map(|member| Some(inbox_stem(&member.name()?))).collect();
        for (of, entry) in folder.mail() {
            let known = stems.iter().any(|stem| stem.eq_ignore_ascii_case(of));
            if known || entry.age < JOIN_GRACE || snapshot.hosted(&folder.name, of).is_some() {
                continue;
            }
            let Some(file) = entry.read() else { continue };
            let Ok(inbox) = Inbox::read(&file.bytes) else { continue };
            let unread = inbox.messages().filter(|message| !message.read()).count();
            if unread == 0 {
                continue;
            }
            let what = format!("{unread} unread messages to {of}, which is not on the team");
            if folder.is_ours {
                found.fixable(entry.path.as_path(), what, Fix::MoveAside(entry.path.clone()));
            } else {
                let name = &folder.name;
                let advice = format!("read them with `brigade --team {name} inbox {of}`");
                found.advise(entry.path.as_path(), what, advice);
            }
        }
    }
}

pub(super) fn long_wait(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for folder in snapshot.teams.iter().filter(|folder| folder.is_ours) {
        let Some(team) = folder.roster() else { continue };
        let lead = team.lead().and_then(|lead| lead.name()).unwrap_or_default().into_owned();
        let created = team.created_at().unwrap_or_default();
        // A message in the inbox may not be in the journal yet, so read both.
        let inbox = folder.mail().find(|(of, _)| *of == lead).and_then(|(_, entry)| entry.read());
        let mut requests: Vec<(String, String, String)> = Vec::new();
        let mut collect = |message: &Message<'_>| requests.extend(request(&team, message));
        if let Some(Ok(inbox)) = inbox.as_ref().map(|file| Inbox::read(&file.bytes)) {
            inbox.messages().for_each(|message| collect(&message));
        }
        for record in folder.journal(&format!("mail/{lead}.jsonl"), &["_request"]) {
            if let Event::Sent { message, team_created, .. } = &record.event
                && *team_created == created
            {
                let _not_a_message =
                    with_message(message.get().as_bytes(), |message| message.map(|m| collect(&m)));
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
            if !is_decided && waited > LONG_WAIT {
                let what = format!(
                    "a {kind} request has waited for an answer for {}",
                    ago(waited.as_secs())
                );
                let advice = "answer it as the lead: `brigade approvals`";
                found.advise(format!("{id} in team {}", folder.name), what, advice);
            }
        }
    }
}

/// If a message is a member's request: its id, its kind and when it was sent.
fn request(team: &Team<'_>, message: &Message<'_>) -> Option<(String, String, String)> {
    team.member(&message.from())?;
    let (id, kind) = match message.body() {
        Body::Protocol(Protocol::PlanApprovalRequest(asked)) => (asked.request_id, "plan"),
        Body::Protocol(Protocol::PermissionRequest(asked)) => (asked.request_id, "permission"),
        _ => return None,
    };
    Some((id, kind.to_owned(), message.timestamp().into_owned()))
}

pub(super) fn session_gone(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let namespace = namespace.to_string_lossy();
    for folder in &snapshot.teams {
        let lead = folder.roster().and_then(|team| team.lead_process());
        let Some(lead) = lead else { continue };
        let (Some(pid), Some(began), Some(space)) = (lead.pid, lead.proc_start, lead.pid_space)
        else {
            continue;
        };
        let Ok(pid) = u32::try_from(pid) else { continue };
        let is_here = !namespace.is_empty() && space.ends_with(&*namespace);
        if is_here && !process::is_there(&Process { pid, began }) {
            let what = format!("a team of a Claude Code session whose process {pid} is gone");
            let advice = match &folder.team {
                Some(team) => format!("`brigade --as team-lead team delete {team} --force`"),
                None => "check whether you need its contents, then move it away".to_owned(),
            };
            found.advise(folder.dir.as_path(), what, advice);
        }
    }
}

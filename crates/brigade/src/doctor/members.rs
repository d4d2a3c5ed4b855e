//! Checks of members: roster entries without a process, mail without a reader, requests without an answer.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use brigade_core::event::{Event, UncheckedRecord};
use brigade_core::handshake::{RequestKind, answer_question};
use brigade_core::pulse::{Process, ReportedState};
use brigade_core::store::Question;
use brigade_core::text::one_line;
use brigade_core::wire::inbox::with_message;
use brigade_files::layout::{DECIDED, MAIL, TEAM_JOURNAL, member_journal};
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
use super::snapshot::DoctorSnapshot;
use super::team_folder::TeamFolder;
use super::wording::{ANSWER_ADVICE, LONG_WAIT, continue_advice, member_place, turn_failed};
use super::{Cure, Findings};
use crate::output::duration;
use brigade_host::process;

/// A stopped member may be restarting if its last heartbeat is more recent than this.
const RESTART_GRACE: SignedDuration = SignedDuration::from_secs(60);
/// A lead may send mail to a new member before it adds the member to the roster. After this many seconds, the
/// member must be on the roster.
const JOIN_GRACE: i64 = 600;
/// Calls `visit` for every member of every team, except the leads.
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

fn removal(folder: &TeamFolder, member: &MemberName, joined_at: Option<u64>) -> Cure {
    match &folder.team {
        Some(team) => {
            let (team, member) = (team.clone(), member.clone());
            Cure::Automatic(Fix::RemoveMember { team, member, joined_at })
        }
        None => Cure::Manual("remove its entry from config.json".to_owned()),
    }
}

/// A member's departure from the team.
struct Departure {
    /// When the member joined, in milliseconds since 1970.
    joined_at: u64,
    by_brigade: bool,
}

/// Returns the members that left the team and that brigade did not add again.
fn departures(folder: &TeamFolder) -> HashMap<String, Departure> {
    let joined_at = |member: &RawValue| {
        let member: serde_json::Value = serde_json::from_str(member.get()).ok()?;
        member.get("joinedAt")?.as_u64()
    };
    let mut joined: HashMap<String, u64> = HashMap::new();
    let mut departures = HashMap::new();
    let events = ["\"member_left\"", "\"member\"", "\"team_created\""];
    for record in folder.journal(TEAM_JOURNAL, &events) {
        let UncheckedRecord { by, event, .. } = record.into_inner();
        match event {
            Event::TeamCreated { .. } => {
                joined.clear();
                departures.clear();
            }
            Event::Member { name, member, joined: is_new } => {
                if is_new && by.is_some() {
                    departures.remove(&name);
                }
                joined.extend(joined_at(&member).map(|at| (name, at)));
            }
            Event::MemberLeft { name } => {
                if let Some(&joined_at) = joined.get(&name) {
                    departures.insert(name, Departure { joined_at, by_brigade: by.is_some() });
                }
            }
            _ => {}
        }
    }
    departures
}

pub(super) fn returned(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let mut by_team: HashMap<String, HashMap<String, Departure>> = HashMap::new();
    teammates(snapshot, |folder, member, name| {
        let departures = by_team.entry(folder.name.clone()).or_insert_with(|| departures(folder));
        let Some(departure) = departures.get(name.as_str()) else { return };
        if member.joined_at() != Some(departure.joined_at)
            || snapshot.hosted_member(&folder.name, name.as_str()).is_some()
        {
            return;
        }
        let cure = if departure.by_brigade || folder.is_ours {
            removal(folder, name, member.joined_at())
        } else {
            Cure::Manual(
                "remove its entry from config.json while Claude Code is not running".to_owned(),
            )
        };
        found.add(
            member_place(name, &folder.name),
            "it left, but its old entry is on the roster again",
            cure,
        );
    });
}

pub(super) fn ghosts(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let now = Timestamp::now();
    teammates(snapshot, |folder, member, name| {
        let Some(pulse) = folder.pulse(name.as_str()) else { return };
        let silent = now.duration_since(pulse.at);
        // If the pulse is older than this member, it belongs to an earlier member with the same name.
        let joined = member.joined_at().and_then(|at| i64::try_from(at).ok());
        let is_current = joined.is_some_and(|joined| pulse.at.as_millisecond() >= joined);
        if !is_current
            || silent < RESTART_GRACE
            || process::is_running(&pulse.process)
            || snapshot.hosted_member(&folder.name, name.as_str()).is_some()
            || departures(folder).get(name.as_str()).map(|left| left.joined_at)
                == member.joined_at()
        {
            return;
        }
        let silent = duration(silent.as_secs());
        let what = format!("brigade ran it, but its process has been gone for {silent}");
        let cure = removal(folder, name, member.joined_at());
        found.add(member_place(name, &folder.name), what, cure);
    });
}

pub(super) fn stuck_active(snapshot: &DoctorSnapshot, found: &mut Findings) {
    teammates(snapshot, |folder, member, name| {
        let Some(hosted) = snapshot.hosted_member(&folder.name, name.as_str()) else { return };
        let is_not_restarted = snapshot.supervisor.is_none() || hosted.failure.is_some();
        if member.is_active() == Some(true) && hosted.process.is_none() && is_not_restarted {
            let what = "its process is gone, but it is marked as active";
            let Some(team) = folder.team.clone() else { return };
            let fix = Fix::MarkIdle { team, member: name.clone() };
            found.fixable(member_place(name, &folder.name), what, fix);
        }
    });
}

pub(super) fn failed_turn(snapshot: &DoctorSnapshot, found: &mut Findings) {
    teammates(snapshot, |folder, _, name| {
        let state = folder.pulse(name.as_str()).map(|pulse| pulse.state);
        if let Some(ReportedState::Idle { failed: Some(why), .. }) = state {
            found.advise(
                member_place(name, &folder.name),
                turn_failed(&why),
                continue_advice(&folder.name, name),
            );
        }
    });
}

pub(super) fn inbox_of_nobody(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for folder in &snapshot.teams {
        let Some(team) = folder.roster() else { continue };
        let stems: Vec<String> =
            team.members().filter_map(|member| Some(inbox_stem(&member.name()?))).collect();
        for (owner, entry) in folder.member_inboxes() {
            let known = stems.iter().any(|stem| stem.eq_ignore_ascii_case(owner));
            if known
                || entry.age < JOIN_GRACE
                || snapshot.hosted_member(&folder.name, owner).is_some()
            {
                continue;
            }
            let Some(file) = entry.read() else { continue };
            let Ok(inbox) = Inbox::read(&file.bytes) else { continue };
            let unread = inbox.messages().filter(|message| !message.read()).count();
            if unread == 0 {
                continue;
            }
            let what = format!("{unread} unread messages to {owner}, which is not on the team");
            let (team, member) = (folder.team.clone(), owner.parse().ok());
            if folder.is_ours
                && let (Some(team), Some(member)) = (team, member)
            {
                let fix = Fix::MoveInbox { team, member, path: entry.path.clone() };
                found.fixable(entry.path.as_path(), what, fix);
            } else {
                let name = &folder.name;
                let advice = format!("read them with `brigade --team {name} inbox {owner}`");
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
        // A new message may be in the inbox but not yet in the journal, so read both.
        let inbox = folder
            .member_inboxes()
            .find(|(owner, _)| *owner == lead)
            .and_then(|(_, entry)| entry.read());
        let mut requests: Vec<(String, RequestKind, String)> = Vec::new();
        let mut collect = |message: &Message<'_>| {
            requests.extend(request(&team, message).filter(|new| !requests.contains(new)));
        };
        if let Some(Ok(inbox)) = inbox.as_ref().map(|file| Inbox::read(&file.bytes)) {
            inbox.messages().for_each(|message| collect(&message));
        }
        let journal = Path::new(MAIL).join(member_journal(&lead));
        for record in folder.journal(journal, &["_request"]) {
            if let Event::Sent { message, team_created, .. } = &record.event
                && *team_created == created
            {
                let _not_a_message =
                    with_message(message.get().as_bytes(), |message| message.map(|m| collect(&m)));
            }
        }
        requests.sort_by(|one, other| (&one.0, &one.2).cmp(&(&other.0, &other.2)));
        for (id, kind, asked) in requests {
            let Ok(lead) = lead.parse() else { continue };
            let question = Question::new(&lead, &answer_question(&lead, created, kind, &id));
            let is_decided = folder.state_dir.join(DECIDED).join(question.as_str()).exists();
            let Ok(at) = asked.parse::<Timestamp>() else { continue };
            let waited = Timestamp::now().duration_since(at);
            if !is_decided && waited > LONG_WAIT {
                let what = format!(
                    "a {kind} request has waited for an answer for {}",
                    duration(waited.as_secs())
                );
                found.advise(format!("{id} in team {}", folder.name), what, ANSWER_ADVICE);
            }
        }
    }
}

/// If a message is a request from a member, returns the request's id and kind and the time when it was sent.
fn request(team: &Team<'_>, message: &Message<'_>) -> Option<(String, RequestKind, String)> {
    team.member(&message.from())?;
    let (id, kind) = match message.body() {
        Body::Protocol(Protocol::PlanApprovalRequest(asked)) => {
            (asked.request_id, RequestKind::Plan)
        }
        Body::Protocol(Protocol::PermissionRequest(asked)) => {
            (asked.request_id, RequestKind::Permission)
        }
        _ => return None,
    };
    Some((id, kind, message.timestamp().into_owned()))
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
        if is_here && !process::is_running(&Process { pid, began }) {
            let what = format!("a team of a Claude Code session whose process {pid} is gone");
            let advice = match &folder.team {
                Some(team) => {
                    let members = snapshot.host.claude_led().registry;
                    let known = members.last_lead_session(team).ok().flatten();
                    let roster =
                        folder.roster().and_then(|team| Some(team.lead_session_id()?.into_owned()));
                    let continues = known.or(roster).map(|id| {
                        format!("`claude --resume {}` continues it; to delete it: ", one_line(&id))
                    });
                    format!(
                        "{}`brigade --as team-lead team delete {team} --force`",
                        continues.unwrap_or_default()
                    )
                }
                None => "check whether you need its contents, then move it away".to_owned(),
            };
            found.advise(folder.dir.as_path(), what, advice);
        }
    }
}

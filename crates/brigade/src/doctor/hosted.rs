//! Checks that compare the processes that run on this host with the processes that should run.

use brigade_core::clock::SystemClock;
use brigade_core::pulse::ReportedState;
use brigade_files::layout::config_path;
use brigade_wire::name::{MemberName, TeamName};

use super::Findings;
use super::fix::Fix;
use super::snapshot::DoctorSnapshot;
use super::team_folder::{FolderEntry, age, entries};
use super::wording::{MOVE_AWAY, continue_advice, member_place};
use brigade_host::process_lock;
use brigade_host::worktree::Worktree;

/// How many seconds a removed member may take to exit before its process counts as an orphan.
const EXIT_GRACE: i64 = 30;

pub(super) fn windows(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let tmux = snapshot.host.tmux();
    for (server, window) in tmux.all_windows() {
        let names = (window.session.parse::<TeamName>(), window.name.parse::<MemberName>());
        let (Ok(team), Ok(name)) = names else { continue };
        if !snapshot.covers(team.as_str()) {
            continue;
        }
        // A member that was stopped a moment ago is still exiting.
        let dir = snapshot.host.registry.member_dir(&team, &name);
        let is_ending = age(&dir).is_some_and(|age| age < EXIT_GRACE);
        // Ignore windows that a person opened in this tmux session.
        if window.plays
            && !is_ending
            && snapshot.hosted_member(team.as_str(), name.as_str()).is_none()
        {
            let what = format!("a window of {name}, which no longer runs on this host");
            let place = format!("tmux -L {server}, session {team}, window {}", window.id);
            if server == tmux.socket {
                found.fixable(place, what, Fix::CloseWindow(window));
            } else {
                // An older version of brigade shared this tmux server between state folders, so the window may
                // belong to a member in another state folder.
                let close = format!("tmux -L {server} kill-window -t {}", window.id);
                found.advise(place, what, format!("run `{close}` if the window is not in use"));
            }
        }
    }
}

pub(super) fn processes(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let teams = entries(snapshot.host.registry.dir());
    let is_covered = |entry: &&FolderEntry| entry.meta.is_dir() && snapshot.covers(&entry.name);
    for team in teams.iter().filter(is_covered) {
        for member in entries(&team.path).into_iter().filter(|entry| entry.meta.is_dir()) {
            if member.path.join("spec.json").exists() || member.age < EXIT_GRACE {
                continue;
            }
            let lock = member.path.join("seat");
            if let Ok(Some(process)) = process_lock::holder(&lock) {
                let (pid, name) = (process.pid, &member.name);
                if pid == 0 {
                    let what = format!(
                        "a process that brigade cannot identify runs {name}, which was removed"
                    );
                    let find =
                        format!("find the process with `fuser -v {}` and end it", lock.display());
                    found.advise(member.path.as_path(), what, find);
                } else {
                    let what = format!("process {pid} runs {name}, which was removed");
                    found.fixable(member.path.as_path(), what, Fix::Terminate(process, lock));
                }
            }
        }
    }
}

pub(super) fn given_up(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for hosted in &snapshot.hosted {
        let team = &hosted.team;
        for member in hosted.members.iter().filter(|member| member.process.is_none()) {
            let (name, Some(why)) = (&member.name, &member.failure) else { continue };
            let advice = format!(
                "fix the cause, then run `brigade resume {team}`; or remove it with `brigade --team \
                 {team} stop {name}`"
            );
            found.advise(member_place(name, team), why.trim(), advice);
        }
    }
}

pub(super) fn dead(snapshot: &DoctorSnapshot, found: &mut Findings) {
    if snapshot.supervisor.is_some() {
        return;
    }
    for hosted in &snapshot.hosted {
        for member in hosted.members.iter().filter(|member| member.process.is_none()) {
            if member.failure.is_none() && snapshot.has_config(hosted.team.as_str()) {
                let place = member_place(&member.name, &hosted.team);
                found.fixable(place, "its process is not running", Fix::StartSupervisor);
            }
        }
    }
}

pub(super) fn agent_failed(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for hosted in &snapshot.hosted {
        let team = &hosted.team;
        let folder = snapshot.teams.iter().find(|folder| folder.name == team.as_str());
        for member in &hosted.members {
            let (name, Some(process)) = (&member.name, &member.process) else { continue };
            let pulse = folder.and_then(|folder| folder.pulse(name.as_str()));
            // Ignore the report of an earlier process.
            let pulse = pulse.filter(|pulse| pulse.process == *process);
            if let Some(ReportedState::Failed { why }) = pulse.map(|pulse| pulse.state) {
                let what = format!("its agent keeps failing: {}", why.trim());
                found.advise(member_place(name, team), what, continue_advice(team.as_str(), name));
            }
        }
    }
}

pub(super) fn future_key(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for hosted in &snapshot.hosted {
        let (team, keys) = (&hosted.team, snapshot.host.registry.keys(&hosted.team));
        for member in hosted.members.iter().filter(|member| member.process.is_some()) {
            let name = &member.name;
            if let Some(made) = keys.ahead(name, &SystemClock) {
                let what = format!("its key is from {made}, which is later than now");
                let advice = format!(
                    "correct the clock, or restart the member: `brigade --team {team} stop {name}`, then `brigade up`"
                );
                found.advise(member_place(name, team), what, advice);
            }
        }
    }
}

pub(super) fn no_supervisor(snapshot: &DoctorSnapshot, found: &mut Findings) {
    if snapshot.supervisor.is_none() && !snapshot.hosted.is_empty() {
        let teams: Vec<&str> = snapshot.hosted.iter().map(|hosted| hosted.team.as_str()).collect();
        let what =
            format!("the supervisor is not running, but {} is up on this host", teams.join(", "));
        found.fixable("this host".to_owned(), what, Fix::StartSupervisor);
    }
}

pub(super) fn team_gone(snapshot: &DoctorSnapshot, found: &mut Findings) {
    for hosted in &snapshot.hosted {
        let team = &hosted.team;
        if snapshot.nats_findings.is_some() {
            if !snapshot.has_config(team.as_str()) {
                let what =
                    format!("team {team} is up on this host but does not exist on the NATS server");
                let advice =
                    format!("`brigade down {team}` removes it; `brigade up` creates it again");
                found.advise(format!("team {team}"), what, advice);
            }
            continue;
        }
        let config = config_path(&snapshot.claude_dir, team.as_str());
        if config.symlink_metadata().is_err() {
            let what = format!("team {team} is up on this host but has no folder");
            let advice = format!("`brigade down {team}` removes it; `brigade up` creates it again");
            found.advise(config.as_path(), what, advice);
        }
    }
}

pub(super) fn worktrees(snapshot: &DoctorSnapshot, found: &mut Findings) {
    let hosts = entries(&snapshot.state_dir.join("host"));
    let teams = entries(&snapshot.host.worktrees).into_iter();
    for team in teams.filter(|team| snapshot.covers(&team.name)) {
        for member in entries(&team.path) {
            // After `@` follows a mark of the repository, if two repositories have a member of the same name.
            let name = member.name.split('@').next().unwrap_or(&member.name);
            let has_member = |host: &FolderEntry| {
                host.path.join(&team.name).join(name).join("spec.json").exists()
            };
            // Each Claude Code folder has its own host registry. The member may be in any of them.
            if hosts.iter().any(has_member) || !member.path.join(".git").exists() {
                continue;
            }
            let Some(worktree) = Worktree::from_folder(&member.path, &team.name, &member.name)
            else {
                let what = format!("a worktree of {name} whose repository was not found");
                found.advise(member.path.as_path(), what, MOVE_AWAY);
                continue;
            };
            match worktree.distance() {
                Ok(distance) if distance.changed == 0 => {
                    let what = format!("a worktree of {name}, which no longer runs on this host");
                    let names = team.name.parse().ok().zip(name.parse().ok());
                    let fix = Fix::RemoveWorktree(worktree, names);
                    found.fixable(member.path.as_path(), what, fix);
                }
                Ok(distance) => {
                    let changed = distance.changed;
                    let what = format!(
                        "a worktree of {name}, which no longer runs on this host, with {changed} uncommitted files"
                    );
                    let advice = "commit or discard the changes; then --fix removes the worktree";
                    found.advise(member.path.as_path(), what, advice);
                }
                Err(error) => {
                    let what = format!("a worktree of {name} that git cannot read: {error}");
                    found.advise(member.path.as_path(), what, MOVE_AWAY);
                }
            }
        }
    }
}

//! What runs on this host, and what should.

use brigade_wire::name::{MemberName, TeamName};

use super::Found;
use super::fix::Deed;
use super::snapshot::{House, age, entries};
use brigade_host::process_lock;
use brigade_host::worktree::Worktree;

/// Who is told to end has this many seconds to do so.
const ENDING: i64 = 30;

pub(super) fn windows(house: &House, found: &mut Found) {
    let tmux = house.host.tmux();
    for window in tmux.windows() {
        let names = (window.session.parse::<TeamName>(), window.name.parse::<MemberName>());
        let (Ok(team), Ok(name)) = names else { continue };
        // Who was told to end a moment ago is ending.
        let dir = house.host.registry.member_dir(&team, &name);
        let is_ending = age(&dir).is_some_and(|age| age < ENDING);
        // A person may have opened a window of their own there.
        if window.plays && !is_ending && house.hosted(team.as_str(), name.as_str()).is_none() {
            let what = format!("a window of {name}, who does not run on this host any more");
            let place = format!("tmux -L {}, session {team}, window {}", tmux.socket, window.id);
            if house.host.registry.dir().is_dir() {
                found.fixable(place, what, Deed::CloseWindow(window.id));
            } else {
                // It may be known in another folder of state, which has the same server.
                let close = format!("tmux -L {} kill-window -t {}", tmux.socket, window.id);
                found.advise(place, what, format!("`{close}`, if nobody uses it"));
            }
        }
    }
}

pub(super) fn processes(house: &House, found: &mut Found) {
    let teams = entries(house.host.registry.dir());
    for team in teams.iter().filter(|entry| entry.meta.is_dir()) {
        for member in entries(&team.path).into_iter().filter(|entry| entry.meta.is_dir()) {
            if member.path.join("spec.json").exists() || member.age < ENDING {
                continue;
            }
            if let Ok(Some(process)) = process_lock::holder(&member.path.join("seat")) {
                let (pid, name) = (process.pid, &member.name);
                let what = format!("process {pid} plays {name}, who is not to be any more");
                found.fixable(member.path.as_path(), what, Deed::End(process));
            }
        }
    }
}

pub(super) fn given_up(house: &House, found: &mut Found) {
    for hosted in &house.hosted {
        let team = &hosted.team;
        for member in hosted.members.iter().filter(|member| member.plays.is_none()) {
            let (name, Some(why)) = (&member.name, &member.trouble) else { continue };
            let advice = format!(
                "see to the cause, then `brigade resume {team}`; or let it go with `brigade --team \
                 {team} stop {name}`"
            );
            found.advise(format!("{name} of team {team}"), why.trim(), advice);
        }
    }
}

pub(super) fn dead(house: &House, found: &mut Found) {
    if house.supervisor.is_some() {
        return;
    }
    for hosted in &house.hosted {
        for member in hosted.members.iter().filter(|member| member.plays.is_none()) {
            if member.trouble.is_none() && house.has_config(hosted.team.as_str()) {
                let place = format!("{} of team {}", member.name, hosted.team);
                found.fixable(place, "no process plays it", Deed::Supervise);
            }
        }
    }
}

pub(super) fn no_supervisor(house: &House, found: &mut Found) {
    if house.supervisor.is_none() && !house.hosted.is_empty() {
        let teams: Vec<&str> = house.hosted.iter().map(|hosted| hosted.team.as_str()).collect();
        let what = format!("nobody supervises this host, where {} is up", teams.join(", "));
        found.fixable("this host".to_owned(), what, Deed::Supervise);
    }
}

pub(super) fn team_gone(house: &House, found: &mut Found) {
    for hosted in &house.hosted {
        let team = &hosted.team;
        if house.ills.is_some() {
            if !house.has_config(team.as_str()) {
                let what = format!("team {team} is up on this host, and is not in the engine");
                let advice =
                    format!("`brigade down {team}` forgets it; `brigade up` makes it anew");
                found.advise(format!("team {team}"), what, advice);
            }
            continue;
        }
        let config = house.claude_dir.join("teams").join(team.as_str()).join("config.json");
        if config.symlink_metadata().is_err() {
            let what = format!("team {team} is up on this host, and has no folder");
            let advice = format!("`brigade down {team}` forgets it; `brigade up` makes it anew");
            found.advise(config.as_path(), what, advice);
        }
    }
}

pub(super) fn worktrees(house: &House, found: &mut Found) {
    let hosts = entries(&house.state_dir.join("host"));
    for team in entries(&house.host.worktrees) {
        for member in entries(&team.path) {
            let inside = |host: &super::snapshot::Entry| {
                host.path.join(&team.name).join(&member.name).join("spec.json").exists()
            };
            // Teams of every Claude Code folder have their worktrees here.
            if hosts.iter().any(inside) || !member.path.join(".git").exists() {
                continue;
            }
            let name = &member.name;
            let Some(worktree) = Worktree::at(&member.path, &team.name, name) else {
                let what = format!("a worktree of {name}, whose repository is not to be found");
                let advice = "look whether somebody needs what is in it, then move it away";
                found.advise(member.path.as_path(), what, advice);
                continue;
            };
            match worktree.distance() {
                Ok(distance) if distance.changed == 0 => {
                    let what = format!("a worktree of {name}, who does not run here any more");
                    let deed = Deed::RemoveWorktree(worktree);
                    found.fixable(member.path.as_path(), what, deed);
                }
                Ok(distance) => {
                    let changed = distance.changed;
                    let what = format!(
                        "a worktree of {name}, who does not run here any more, with {changed} files not committed"
                    );
                    let advice = "commit what is worth it; then --fix removes the rest";
                    found.advise(member.path.as_path(), what, advice);
                }
                Err(error) => {
                    let what = format!("a worktree of {name} that git cannot look at: {error}");
                    let advice = "look whether somebody needs what is in it, then move it away";
                    found.advise(member.path.as_path(), what, advice);
                }
            }
        }
    }
}

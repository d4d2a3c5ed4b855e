//! Checks for tasks that Claude Code does not show, tasks whose owner is gone, and tasks that can never start.

use std::borrow::Cow;

use brigade_core::graph::Graph;
use brigade_files::layout::task_file;
use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};

use super::fix::{Fix, TaskFix};
use super::snapshot::DoctorSnapshot;
use super::team_folder::TeamFolder;
use super::{Cure, Findings};

/// Calls `visit` with the readable tasks of every team whose roster is readable.
fn boards(snapshot: &DoctorSnapshot, mut visit: impl FnMut(&TeamFolder, &[(TaskId, Task<'_>)])) {
    for folder in snapshot.teams.iter().filter(|folder| folder.roster().is_some()) {
        let tasks = folder.tasks.iter().map(|(id, file)| (*id, &file.bytes));
        let tasks: Vec<(TaskId, Task<'_>)> =
            tasks.filter_map(|(id, bytes)| Some((id, Task::read(bytes).ok()?))).collect();
        visit(folder, &tasks);
    }
}

fn place(folder: &TeamFolder, id: TaskId) -> String {
    format!("task {id} of team {}", folder.name)
}

/// Returns an automatic fix for a task of a team that brigade created, and advice for tasks of other teams.
fn cure(folder: &TeamFolder, id: TaskId, fix: TaskFix, advice: String) -> Cure {
    match &folder.team {
        Some(team) if folder.is_ours => {
            Cure::Automatic(Fix::UpdateTask { team: team.clone(), id, fix })
        }
        _ => Cure::Manual(advice),
    }
}

pub(super) fn invisible(snapshot: &DoctorSnapshot, found: &mut Findings) {
    boards(snapshot, |folder, tasks| {
        for (id, task) in tasks.iter().filter(|(_, task)| !task.is_visible()) {
            let missing: Vec<&str> = [
                ("id", task.id().is_none()),
                ("subject", task.subject().is_none()),
                ("description", task.description().is_none()),
                ("status", task.status().is_none()),
                ("blocks", task.blocks().is_none()),
                ("blockedBy", task.blocked_by().is_none()),
            ]
            .iter()
            .filter_map(|&(field, is_missing)| is_missing.then_some(field))
            .collect();
            let what = format!("it has no valid {}", missing.join(", "));
            let advice = format!("add them to {}", folder.board_dir.join(task_file(*id)).display());
            // A missing subject cannot be filled in automatically.
            let cure = if task.id().is_none() || task.subject().is_none() {
                Cure::Manual(advice)
            } else {
                cure(folder, *id, TaskFix::Complete, advice)
            };
            found.add(place(folder, *id), what, cure);
        }
    });
}

pub(super) fn of_nobody(snapshot: &DoctorSnapshot, found: &mut Findings) {
    boards(snapshot, |folder, tasks| {
        let Some(team) = folder.roster() else { return };
        for (id, task) in tasks.iter().filter(|(_, task)| task.status() != Some(Status::Completed))
        {
            let Some(owner) = task.owner().filter(|owner| !owner.is_empty()) else { continue };
            // Claude Code 2.1.50 keeps a hidden task for each in-process teammate.
            if task.field("metadata").is_some_and(|data| data.contains("\"_internal\"")) {
                continue;
            }
            // A member that will run on this host may own tasks before it joins the team.
            if team.member(&owner).is_some()
                || snapshot.hosted_member(&folder.name, &owner).is_some()
            {
                continue;
            }
            let what = format!("it is unfinished, and its owner {owner} is not on the team");
            let name = &folder.name;
            let advice = format!("`brigade --team {name} --as {owner} task release {owner}`");
            let cure = cure(folder, *id, TaskFix::Release(owner.into_owned()), advice);
            found.add(place(folder, *id), what, cure);
        }
    });
}

pub(super) fn circles(snapshot: &DoctorSnapshot, found: &mut Findings) {
    boards(snapshot, |folder, tasks| {
        let graph = Graph::from_tasks(tasks.iter().map(|(id, task)| (*id, task)));
        let is_done =
            |id: &TaskId| graph.node(*id).is_some_and(|node| node.status == Status::Completed);
        for circle in graph.cycles() {
            // A completed task blocks no other task, so a cycle that contains a completed task is harmless.
            if circle.iter().any(is_done) {
                continue;
            }
            let ids: Vec<String> = circle.iter().map(ToString::to_string).collect();
            let what = format!("tasks {} wait for each other", ids.join(", "));
            let (Some(first), name) = (ids.first(), &folder.name) else { continue };
            let advice = format!(
                "delete one and add it again without the dependency: `brigade --team {name} task delete \
                 {first}`; or mark one completed if it is done"
            );
            found.advise(format!("the board of team {name}"), what, advice);
        }
    });
}

pub(super) fn lost_dependency(snapshot: &DoctorSnapshot, found: &mut Findings) {
    boards(snapshot, |folder, tasks| {
        // A task exists even if its file is damaged.
        let mut existing: Vec<String> =
            folder.board.iter().map(|entry| entry.name.clone()).collect();
        existing.extend(folder.tasks.iter().map(|(id, _)| task_file(*id)));
        let is_lost = |id: &Cow<'_, str>| !existing.contains(&format!("{id}.json"));
        for (id, task) in tasks.iter().filter(|(_, task)| task.status() != Some(Status::Completed))
        {
            let lost: Vec<String> = task
                .blocked_by()
                .unwrap_or_default()
                .into_iter()
                .filter(is_lost)
                .map(Cow::into_owned)
                .collect();
            if !lost.is_empty() {
                let what = format!("it waits for {}, which was deleted", lost.join(", "));
                let advice =
                    "the task counts as ready; if it must still wait, say so in its description";
                let cure = cure(folder, *id, TaskFix::Unblock(lost), advice.to_owned());
                found.add(place(folder, *id), what, cure);
            }
        }
    });
}

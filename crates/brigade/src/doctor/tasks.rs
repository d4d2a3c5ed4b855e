//! The board: tasks that nobody sees, nobody does, or that can never begin.

use std::borrow::Cow;

use brigade_core::graph::Graph;
use brigade_wire::name::TaskId;
use brigade_wire::task::{Status, Task};

use super::fix::{Deed, TaskMend};
use super::snapshot::{House, TeamFolder};
use super::{Cure, Found};

/// Every task that can be read, of every team whose roster can.
fn boards(house: &House, mut look: impl FnMut(&TeamFolder, &[(TaskId, Task<'_>)])) {
    for folder in house.teams.iter().filter(|folder| folder.roster().is_some()) {
        let tasks = folder.tasks.iter().map(|(id, paper)| (*id, &paper.bytes));
        let tasks: Vec<(TaskId, Task<'_>)> =
            tasks.filter_map(|(id, bytes)| Some((id, Task::read(bytes).ok()?))).collect();
        look(folder, &tasks);
    }
}

fn place(folder: &TeamFolder, id: TaskId) -> String {
    format!("task {id} of team {}", folder.name)
}

/// Mends a task in a team of ours; in another the advice is given.
fn mend(folder: &TeamFolder, id: TaskId, mend: TaskMend, advice: String) -> Cure {
    match &folder.team {
        Some(team) if folder.is_ours => Cure::Deed(Deed::MendTask { team: team.clone(), id, mend }),
        _ => Cure::Advice(advice),
    }
}

pub(super) fn invisible(house: &House, found: &mut Found) {
    boards(house, |folder, tasks| {
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
            let advice = format!(
                "write them into {}",
                folder.board_dir.join(format!("{id}.json")).display()
            );
            // What a task is about nobody can make up.
            let cure = if task.id().is_none() || task.subject().is_none() {
                Cure::Advice(advice)
            } else {
                mend(folder, *id, TaskMend::Complete, advice)
            };
            found.tell(place(folder, *id), what, cure);
        }
    });
}

pub(super) fn of_nobody(house: &House, found: &mut Found) {
    boards(house, |folder, tasks| {
        let Some(team) = folder.roster() else { return };
        for (id, task) in tasks.iter().filter(|(_, task)| task.status() != Some(Status::Completed))
        {
            let Some(owner) = task.owner().filter(|owner| !owner.is_empty()) else { continue };
            // Claude Code 2.1.50 keeps one for each teammate inside it, and shows it to nobody.
            if task.field("metadata").is_some_and(|data| data.contains("\"_internal\"")) {
                continue;
            }
            // Who is to run here and has not joined yet may have its tasks already.
            if team.member(&owner).is_some() || house.hosted(&folder.name, &owner).is_some() {
                continue;
            }
            let what = format!("it is open, and belongs to {owner}, who is not on the team");
            let name = &folder.name;
            let advice = format!("`brigade --team {name} --as {owner} task release {owner}`");
            let cure = mend(folder, *id, TaskMend::Release(owner.into_owned()), advice);
            found.tell(place(folder, *id), what, cure);
        }
    });
}

pub(super) fn circles(house: &House, found: &mut Found) {
    boards(house, |folder, tasks| {
        let graph = Graph::of(tasks.iter().map(|(id, task)| (*id, task)));
        let is_done =
            |id: &TaskId| graph.node(*id).is_some_and(|node| node.status == Status::Completed);
        for circle in graph.circles() {
            // One that is done keeps nobody waiting.
            if circle.iter().any(is_done) {
                continue;
            }
            let words: Vec<String> = circle.iter().map(ToString::to_string).collect();
            let what = format!("tasks {} wait for each other", words.join(", "));
            let (Some(first), name) = (words.first(), &folder.name) else { continue };
            let advice = format!(
                "delete one and add it again without the edge: `brigade --team {name} task delete \
                 {first}`; or set it completed if it is"
            );
            found.advise(format!("the board of team {name}"), what, advice);
        }
    });
}

pub(super) fn lost_dependency(house: &House, found: &mut Found) {
    boards(house, |folder, tasks| {
        // A task whose file is torn is not lost.
        let mut there: Vec<String> = folder.board.iter().map(|entry| entry.name.clone()).collect();
        there.extend(folder.tasks.iter().map(|(id, _)| format!("{id}.json")));
        let is_lost = |id: &Cow<'_, str>| !there.contains(&format!("{id}.json"));
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
                let advice = "its lead sees it as ready; if it is not, say so in its description";
                let cure = mend(folder, *id, TaskMend::Forget(lost), advice.to_owned());
                found.tell(place(folder, *id), what, cure);
            }
        }
    });
}

//! Names, texts, tasks and teams that the benchmarks of both stores use.

use brigade_core::board::TaskPlan;
use brigade_core::roster::{self, MemberPlan, TeamPlan};
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

/// The lead's name.
pub(crate) const LEAD: &str = "team-lead";

pub(crate) fn member(name: &str) -> MemberName {
    name.parse().unwrap()
}

/// Returns a text of 500 bytes that starts with the sender's name and the message number.
pub(crate) fn text(from: &str, number: usize) -> String {
    format!("{:.<500}", format!("{from}/{number} "))
}

/// Returns a task of ordinary size.
pub(crate) fn plan(number: usize) -> TaskPlan {
    TaskPlan {
        subject: format!("task {number}"),
        description: text("task", number),
        ..TaskPlan::default()
    }
}

/// Creates the lead's team, with these members.
pub(crate) async fn create_team(lead: &Seat, members: &[&str]) {
    let plan = TeamPlan { description: "a benchmark", lead_model: "none", cwd: "/" };
    roster::create(lead, plan).await.unwrap();
    for name in members {
        join(lead, name, "brigade").await;
    }
}

/// Adds a member to the team.
pub(crate) async fn join(lead: &Seat, name: &str, backend_type: &str) {
    let (agent_type, model, prompt, cwd) = ("bench", "none", "none", "/");
    let plan = MemberPlan { agent_type, model, prompt, cwd, backend_type };
    roster::join(lead, &member(name), plan).await.unwrap();
}

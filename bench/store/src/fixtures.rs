//! Names, texts, tasks and teams of the benchmarks of both stores.

use brigade_core::board::TaskPlan;
use brigade_core::roster::{self, MemberPlan, TeamPlan};
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

/// The lead.
pub(crate) const LEAD: &str = "team-lead";

pub(crate) fn member(name: &str) -> MemberName {
    name.parse().unwrap()
}

/// A text of 500 bytes that starts with its sender and number.
pub(crate) fn text(from: &str, number: usize) -> String {
    format!("{:.<500}", format!("{from}/{number} "))
}

/// A task of an ordinary size.
pub(crate) fn plan(number: usize) -> TaskPlan {
    TaskPlan {
        subject: format!("task {number}"),
        description: text("task", number),
        ..TaskPlan::default()
    }
}

/// Creates the team of a lead, with these members.
pub(crate) async fn create_team(lead: &Seat, members: &[&str]) {
    let plan = TeamPlan { description: "a benchmark", lead_model: "none", cwd: "/" };
    roster::create(lead, plan).await.unwrap();
    for name in members {
        join(lead, name, "brigade").await;
    }
}

/// Adds a member.
pub(crate) async fn join(lead: &Seat, name: &str, backend_type: &str) {
    let (agent_type, model, prompt, cwd) = ("bench", "none", "none", "/");
    let plan = MemberPlan { agent_type, model, prompt, cwd, backend_type };
    roster::join(lead, &member(name), plan).await.unwrap();
}

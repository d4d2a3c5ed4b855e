//! Tests the drivers against recorded output of the real programs.
//!
//! `fixtures/agents` has a transcript of each scenario, recorded with the real program and a scripted model. A
//! test feeds the program's recorded output to the driver, compares the driver's bytes for the program with the
//! transcript, and compares the driver's events with a snapshot. `e2e/drivers/record` records the scenarios again.

mod claude;
mod codex;
mod copilot;
mod gemini;
mod laws;
mod opencode;
mod permission;
mod play;
mod qwen;
mod record;
mod requests;
mod scenario;
mod transcript;

use std::sync::LazyLock;

use brigade_agents::driver::{LaunchOptions, ToolServer};

use play::play;
use scenario::Scenario;
use transcript::ReplayedProcess;

/// The scenarios of all agents.
static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let agents = [
        codex::scenarios(),
        claude::scenarios(),
        gemini::scenarios(),
        opencode::scenarios(),
        copilot::scenarios(),
        qwen::scenarios(),
    ];
    agents.concat()
});

fn launch(scenario: &Scenario, resume: Option<String>) -> LaunchOptions {
    let tools = ToolServer {
        command: "/home/dev/bin/brigade".to_owned(),
        args: ["mcp", "--team", "demo", "--as", "bob"].map(str::to_owned).to_vec(),
        env: vec![("HOME".to_owned(), "/home/dev".to_owned())],
    };
    let mut launch = LaunchOptions::new("/home/dev/project", tools);
    launch.model = scenario.model.map(str::to_owned);
    launch.instructions = "You are bob, a member of the team demo.".to_owned();
    launch.access = scenario.access;
    launch.resume = resume;
    launch.claude_dir = Some("/home/dev/.claude".to_owned());
    launch
}

/// Replays each scenario. The driver must write the same bytes as in the recording, and its events must match the
/// snapshot. If `BRIGADE_RECORD` selects a scenario, first records that scenario again.
fn check(scenarios: &[Scenario]) {
    for scenario in scenarios {
        if record::wanted(scenario) {
            record::record(scenario);
        }
        let log = play(scenario, &mut ReplayedProcess::new(scenario));
        insta::assert_snapshot!(format!("{}-{}", scenario.agent, scenario.name), log);
    }
}

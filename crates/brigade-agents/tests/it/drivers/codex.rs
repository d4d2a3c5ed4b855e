//! Scenarios for Codex 0.166.0.

use brigade_agents::driver::Access;

use super::check;
use super::scenario::ScenarioStep::{Allow, Deny, Interrupt, Killed, SetAccess, Steer, Until};
use super::scenario::{
    RESULT, Scenario, failing, interrupt_twice, limited, say, script, slow, talk, with_model,
};

const AGENT: &str = "codex";

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        talk(AGENT, "team/"),
        permission(),
        files(),
        other_server(),
        steer(),
        interrupt_twice(AGENT, "Taken"),
        resume(),
        access(),
        failing(AGENT),
        limited(AGENT, &[]),
        with_model(AGENT, "scripted-too"),
        edit(),
    ]
}

/// Returns the script step that runs a shell command. `also` contains further arguments as JSON fields.
fn shell(command: &str, also: &str) -> String {
    format!(r#"{{"tool":"exec_command","args":{{"cmd":"{command}"{also}}}}}"#)
}

/// Returns the script step that applies a patch.
fn patch(lines: &str) -> String {
    shell(&format!(r"apply_patch <<'E'\n*** Begin Patch\n{lines}\n*** End Patch\nE"), "")
}

/// Returns a prompt with a script in which the model takes one step and then writes `then_say`.
fn order(text: &str, step: &str, then_say: &str) -> String {
    script(text, &format!("{step},{}", say(then_say)))
}

fn permission() -> Scenario {
    let order = |text, command| {
        let also = r#","sandbox_permissions":"require_escalated","justification":"to see""#;
        order(text, &shell(command, also), RESULT)
    };
    Scenario::new(AGENT, "permission")
        .asked(order("One.", "echo one"), Allow)
        .asked(order("Two.", "echo two"), Deny("not today"))
        .asked(order("Three.", "echo three"), Interrupt)
}

fn files() -> Scenario {
    let outside = patch(r"*** Add File: /home/dev/other/a.txt\n+hello");
    Scenario::new(AGENT, "files").asked(order("Outside.", &outside, RESULT), Allow)
}

fn other_server() -> Scenario {
    let order = |text| order(text, r#"{"tool":"other/task_list"}"#, RESULT);
    Scenario::new(AGENT, "other-server")
        .asked(order("One."), Allow)
        .asked(order("Two."), Deny("not today"))
}

fn steer() -> Scenario {
    Scenario::new(AGENT, "steer")
        .prompt(order("Slowly.", &shell("sleep 2; echo slept", ""), "First."))
        .then([Until("ToolStarted"), Steer(script("By the way.", &say("Second.")))])
        .then([Until("TurnEnded"), Steer("Too late.".to_owned()), Until("NotTaken")])
}

fn resume() -> Scenario {
    Scenario::new(AGENT, "resume")
        .turn(script("First.", &say("One.")))
        .prompt(slow("Second."))
        .then([Until("Taken"), Killed, Until("Ready")])
        .turn(order("Third.", r#"{"tool":"team/task_list"}"#, "Still here."))
}

fn access() -> Scenario {
    let look = format!(r#"{},{{"tool":"team/task_list"}}"#, shell("touch made && echo made", ""));
    let change = shell("touch /home/dev/made && echo made", "");
    Scenario::new(AGENT, "access")
        .access(Access::ReadOnly)
        .turn(order("Look.", &look, "{result#0}"))
        .then([SetAccess(Access::Full)])
        .turn(order("Change.", &change, "{result}"))
}

fn edit() -> Scenario {
    let make = patch(
        r"*** Add File: a.txt\n+one\n+two\n+three\n+four\n+five\n+six\n+seven\n+eight\n+nine\n+ten",
    );
    let change = patch(
        r"*** Update File: a.txt\n@@\n one\n-two\n+TWO\n+TWO AND A HALF\n three\n@@\n eight\n-nine\n ten",
    );
    let rename = patch(r"*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+ONE");
    let delete = patch(r"*** Delete File: b.txt");
    Scenario::new(AGENT, "edit")
        .access(Access::Full)
        .turn(order("Make.", &make, RESULT))
        .turn(order("Change.", &change, RESULT))
        .turn(order("Move.", &format!("{rename},{delete}"), RESULT))
}

#[test]
fn codex() {
    check(&scenarios());
}

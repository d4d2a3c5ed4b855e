//! The differences between a team file and the running team, and `up --recreate` and `up --remove-orphans`.

use serde_json::{Value, json};

use crate::doctor_host::registry;
use crate::host::HostedTeam;
use crate::process::wait_until;

/// A team that is up, and changes of its file.
struct ChangedTeam {
    team: HostedTeam,
    file: String,
}

impl ChangedTeam {
    fn up() -> Self {
        let team = HostedTeam::new();
        team.cli.json(&["up"]);
        wait_until("alice's turn", || team.received("a").contains("hello alice"));
        wait_until("alice is idle", || team.cli.member("alice")["liveness"] == "idle");
        let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
        Self { team, file }
    }

    fn change(&mut self, from: &str, to: &str) {
        assert_eq!(self.file.matches(from).count(), 1, "{from}");
        self.file = self.file.replace(from, to);
        self.team.cli.write("work/brigade.toml", &self.file);
    }

    fn count(&self, dir: &str, word: &str) -> usize {
        self.team.received(dir).lines().filter(|line| *line == word).count()
    }
}

/// Returns the entry of a member in the roster.
pub(crate) fn on_roster(team: &HostedTeam, name: &str) -> Value {
    let members = team.cli.json(&["team", "show"])["members"].clone();
    let mut members = members.as_array().unwrap().iter();
    members.find(|member| member["name"] == name).cloned().unwrap()
}

#[test]
fn up_lists_what_differs_and_changes_nothing() {
    let mut changed = ChangedTeam::up();
    changed.change("dir = \"a\"", "dir = \"b\"\nmodel = \"gpt\"\nallow = [\"make\"]");
    changed.change("[members.bob]\ndir = \"b\"\n", "");
    let team = &changed.team;
    let pids = (team.pid("alice"), team.pid("bob"));
    let sentences = [
        "note: alice still uses its old model (not set); the file says gpt",
        "note: alice still uses its old rules; the file adds \"allow make\"",
        "note: alice still uses its old folder <root>/work/a; the file says <root>/work/b",
        "note: bob is not in the file but keeps running",
        "hint: `brigade up --recreate` restarts members with the settings of the file",
        "hint: `brigade up --remove-orphans` stops members that are not in the file",
    ];
    for command in [&["up", "--check"][..], &["up"]] {
        let outcome = team.cli.run(command);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let said: Vec<&str> =
            outcome.stderr.lines().filter(|line| sentences.contains(line)).collect();
        assert_eq!(said, sentences, "{outcome}");
        let document = team.cli.json(command);
        assert_eq!(document["changes"]["removed"], json!(["bob"]));
        let model = json!({ "setting": "model", "old": null, "new": "gpt" });
        assert_eq!(document["changes"]["changed"][0]["settings"][0], model);
    }
    assert_eq!((team.pid("alice"), team.pid("bob")), pids);
    assert_eq!(changed.count("a", "started"), 1);
}

#[test]
fn recreate_restarts_a_member_in_the_same_session() {
    let mut changed = ChangedTeam::up();
    changed.change("dir = \"a\"", "dir = \"a\"\nmodel = \"gpt\"");
    let team = &changed.team;
    let (alice, bob) = (team.pid("alice"), team.pid("bob"));
    let outcome = team.cli.run(&["up", "--recreate"]);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let line = "alice: new settings (model), restarted in the same session";
    assert!(outcome.stderr.lines().any(|said| said == line), "{outcome}");
    assert_eq!((changed.count("a", "begun"), changed.count("a", "loaded")), (1, 1));
    assert_ne!(team.pid("alice"), alice);
    assert_eq!(on_roster(team, "alice")["model"], "gpt");
    assert_eq!(team.pid("bob"), bob);
    // Nothing differs any more, and the member is not shown its prompt again.
    let again = team.cli.json(&["up", "--recreate"]);
    assert_eq!(again["changes"], json!({ "added": [], "removed": [], "changed": [] }));
    assert_eq!(team.received("a").matches("hello alice").count(), 1);
    let settled = team.cli.run(&["up", "--recreate", "bob"]);
    assert!(settled.stderr.contains("bob has the settings of the file already"), "{settled}");
    let unknown = team.cli.run(&["up", "--recreate", "carol"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
}

/// Agents keep their sessions by folder.
#[test]
fn recreate_begins_a_new_session_in_another_folder() {
    let mut changed = ChangedTeam::up();
    std::fs::create_dir_all(changed.team.cli.path("work/c")).unwrap();
    changed.change("dir = \"a\"", "dir = \"c\"");
    let team = &changed.team;
    let document = team.cli.json(&["up", "--recreate", "alice"]);
    assert_eq!(document["recreated"], json!(["alice"]));
    wait_until("the briefing", || team.received("c").contains("You are alice."));
    assert!(
        team.received("c").contains("team-lead to alice: hello alice"),
        "{}",
        team.received("c")
    );
    assert_eq!(on_roster(team, "alice")["cwd"], team.cli.path("work/c").to_str().unwrap());
    // The member keeps its task, and its recorded folder is the new one.
    assert_eq!(team.cli.json(&["task", "list"])[0]["owner"], "alice");
    let spec = registry(&team.cli, "state");
    let spec = spec.member(&"demo".parse().unwrap(), &"alice".parse().unwrap()).unwrap().unwrap();
    assert_eq!(spec.cwd, team.cli.path("work/c"));
    let alice = team.pid("alice");
    crate::process::kill(alice);
    wait_until("a new process", || {
        team.cli.member("alice")["pid"].as_u64().is_some_and(|pid| pid != alice)
    });
}

#[test]
fn rules_and_prompts_change_without_a_restart() {
    let mut changed = ChangedTeam::up();
    changed.change("hello alice", "hello again");
    changed.change("dir = \"a\"", "dir = \"a\"\nallow = [\"make\"]");
    let team = &changed.team;
    let alice = team.pid("alice");
    let outcome = team.cli.run(&["up", "--recreate"]);
    assert!(outcome.stderr.contains("(prompt, rules), without a restart"), "{outcome}");
    wait_until("the new prompt", || team.received("a").contains("hello again"));
    assert_eq!(team.pid("alice"), alice);
    assert_eq!(on_roster(team, "alice")["prompt"], "hello again");
    team.cli.run_ok(&["send", "alice", "please ASK"]);
    wait_until("the answer of the rule", || team.received("a").contains("allow-it"));
    assert_eq!(team.received("a").matches("hello again").count(), 1);
}

#[test]
fn orphans_are_stopped_and_removed_only_if_asked() {
    let mut changed = ChangedTeam::up();
    changed.change("[members.bob]\ndir = \"b\"\n", "");
    let team = &changed.team;
    let alice = team.pid("alice");
    team.cli.json(&["up"]);
    // A paused member is ended without waiting for its answer.
    team.cli.json(&["pause", "bob"]);
    wait_until("bob is paused", || team.cli.member("bob")["liveness"] == "paused");
    let document = team.cli.json(&["up", "--remove-orphans"]);
    assert_eq!(document["removed"], json!(["bob"]));
    let members = team.cli.json(&["team", "show"])["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 2, "{members}");
    assert_eq!(team.pid("alice"), alice);
}

//! `brigade policy`, and the rules that `approve --always` and `deny --always` add.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use insta::assert_snapshot;

use crate::env::CliEnv;
use crate::host::HostedTeam;
use crate::init::run_on_terminal;
use crate::process::wait_until;

const FILE: &str = "home/.config/brigade/policy.toml";

/// Starts a team whose member alice asks for permission to run `make`.
fn with_request() -> HostedTeam {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    ask(&team, "alice");
    team
}

/// Lets a member ask for permission, and waits until the request waits for the lead.
fn ask(team: &HostedTeam, member: &str) {
    team.cli.run_ok(&["send", member, "ASK"]);
    wait_until("the request", || team.cli.run(&["approvals"]).code == Some(0));
}

fn write_policy(cli: &CliEnv, text: &str) {
    cli.write(FILE, text);
    std::fs::set_permissions(cli.path(FILE), std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn answers(team: &HostedTeam) -> usize {
    team.received("a").matches("allow-it").count()
}

#[test]
fn approve_always_adds_the_exact_command_and_answers_the_next_request() {
    let team = with_request();
    // Without a terminal, the command cannot ask.
    assert_snapshot!(team.cli.run(&["approve", "1", "--always", "--json"]), @r#"
    --- stderr
    {"error":{"message":"cannot ask for confirmation: standard input is not a terminal","hint":"`--yes` does it without asking","code":2}}
    --- exit 2
    "#);
    assert!(!team.cli.path(FILE).exists());
    let out = team.cli.run_ok(&["approve", "1", "--always", "--yes"]);
    let root = team.cli.root.to_str().unwrap();
    let lines = format!(
        "to be added to {root}/{FILE}:\n  [[rules]]\n  ruling = \"allow\"\n  command = \"make\"\n  \
         folder = \"{root}/work/a\"\n\nno other request to this team of the last 30 days would have been answered by it\n\n\
         approved alice's permission 1: run: make\nadded personal rule 1\n"
    );
    assert!(out.ends_with(&lines), "{out}\nshould end with\n{lines}");
    let file = std::fs::metadata(team.cli.path(FILE)).unwrap();
    assert_eq!(file.mode() & 0o777, 0o600);
    wait_until("the answer", || answers(&team) == 1);
    team.cli.run_ok(&["send", "alice", "ASK"]);
    wait_until("the answer of the rule", || answers(&team) == 2);
    let log = team.cli.run_ok(&["log"]);
    assert!(log.contains("(by personal rule 1)"), "{log}");
    // Bob works in another folder.
    ask(&team, "bob");
    let waiting = team.cli.json(&["approvals"]);
    assert_eq!(waiting[0]["from"], "bob");
    let out = team.cli.run_ok(&["approve", "3", "--always", "--everywhere", "--yes"]);
    assert!(out.contains("added personal rule 2\n"), "{out}");
}

/// A no is not an error, and the request still waits.
#[test]
fn a_no_to_the_question_of_always_changes_nothing() {
    let team = with_request();
    let command = team.cli.command(&["approve", "1", "--always"]);
    let (shown, code) = run_on_terminal(command, "n\n");
    assert!(shown.contains("approve this request and add the rule? [y/N]"), "{shown}");
    let note = "nothing was changed: the request was not answered, and no rule was added";
    assert!(shown.contains(note), "{shown}");
    assert!(!shown.contains("error"), "{shown}");
    assert_eq!(code, Some(1));
    assert!(!team.cli.path(FILE).exists());
    assert_eq!(team.cli.json(&["approvals"])[0]["number"], 1);
}

#[test]
fn always_offers_a_rule_for_a_request_that_was_answered_before() {
    let team = with_request();
    team.cli.run_ok(&["approve", "1"]);
    assert_snapshot!(team.cli.run(&["approve", "1", "--turn"]), @"
    --- stderr
    error: request 1 of alice was already answered
    hint: a person approved it just now
    --- exit 1
    ");
    let command = team.cli.command(&["approve", "1", "--always"]);
    let (shown, code) = run_on_terminal(command, "n\n");
    assert!(shown.contains("already answered:"), "{shown}");
    assert!(shown.contains("a person approved it"), "{shown}");
    assert!(shown.contains("add the rule for later requests? [y/N]"), "{shown}");
    assert!(shown.contains("nothing was changed: no rule was added"), "{shown}");
    assert_eq!((code, team.cli.path(FILE).exists()), (Some(1), false));
    let out = team.cli.run_ok(&["approve", "1", "--always", "--yes"]);
    assert!(out.ends_with("\n\nadded personal rule 1\n"), "{out}");
    wait_until("the answer", || answers(&team) == 1);
    team.cli.run_ok(&["send", "alice", "ASK"]);
    wait_until("the answer of the rule", || answers(&team) == 2);
    let again = team.cli.run(&["approve", "1", "--always", "--yes"]);
    assert!(
        again.stderr.contains("hint: request 1 needs no answer: a person approved it"),
        "{again}"
    );
}

#[test]
fn an_answer_for_the_turn_ends_with_the_turn() {
    let team = HostedTeam::new();
    team.cli.run_ok(&["up"]);
    let ask_twice = || {
        team.cli.run_ok(&["send", "alice", "ASKTWICE"]);
        wait_until("the request", || team.cli.run(&["approvals"]).code == Some(0));
    };
    ask_twice();
    assert_snapshot!(team.cli.run(&["approve", "1", "--turn", "--rule", "cargo *"]), @"
    --- stderr
    error: the rule would not answer this request: it does not allow make
    hint: answer without `--turn`
    --- exit 1
    ");
    let approved = team.cli.run_ok(&["approve", "1", "--turn"]);
    assert_snapshot!(approved, @"
    approved alice's permission 1: run: make
    until the turn of alice ends: allow make
    ");
    wait_until("both answers", || answers(&team) == 2);
    assert!(!team.cli.path(FILE).exists(), "the policy file stays as it is");
    let log = team.cli.run_ok(&["log"]);
    assert!(log.contains("(by rule 1 for this turn of alice)"), "{log}");
    team.cli.run_ok(&["wait", "--idle", "alice"]);
    assert_eq!(team.cli.run(&["policy", "list"]).code, Some(4), "the rule ended with the turn");
    // The same request of the next turn waits.
    ask_twice();
    assert_eq!(team.cli.json(&["approvals"]).as_array().unwrap().len(), 1);
    assert_eq!(answers(&team), 2);
    team.cli.run_ok(&["deny", "3", "--turn"]);
    wait_until("the second denial", || team.received("a").matches("refuse-it").count() == 2);
    // A rule that was added just after its turn does not answer in the next turn, either.
    team.cli.run_ok(&["wait", "--idle", "alice"]);
    let folders = std::fs::read_dir(team.cli.path("state/brigade/host")).unwrap();
    let dir = folders.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let rules = dir.join("demo/alice/turn-rules.json");
    // If the request cannot be answered, the turn may be over, and its rules with it.
    std::fs::write(&rules, r#"[{"ruling":"allow","command":"ls"}]"#).unwrap();
    assert_eq!(team.cli.run(&["approve", "1", "--turn"]).code, Some(1));
    assert!(!rules.exists());
    let late = r#"[{"ruling":"allow","command":"make"}]"#;
    std::fs::write(&rules, late).unwrap();
    assert_eq!(team.cli.json(&["policy", "list"])[0]["source"], "turn");
    ask_twice();
    assert_eq!(answers(&team), 2);
}

#[test]
fn a_rule_shows_the_earlier_requests_that_it_covers() {
    let team = with_request();
    team.cli.run_ok(&["approve", "1"]);
    ask(&team, "alice");
    let out = team.cli.run_ok(&["approve", "2", "--always", "--rule", "make *", "--yes"]);
    assert!(out.contains("command = \"make *\"\n"), "{out}");
    let covered = "it would also have answered 1 request to this team of the last 30 days:\n";
    assert!(out.contains(covered), "{out}");
    assert!(out.contains("  alice  run: make\n"), "{out}");
}

#[test]
fn deny_always_comes_before_the_rules_of_the_team() {
    let team = HostedTeam::new();
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    team.cli
        .write("work/brigade.toml", &file.replace("[defaults]", "[defaults]\nask = [\"make *\"]"));
    team.cli.run_ok(&["up"]);
    ask(&team, "alice");
    assert_snapshot!(team.cli.run(&["approve", "1", "--always", "--yes"]), @"
    --- stderr
    error: rule 1 of alice (ask make *) is checked first, and a new rule cannot override it
    hint: answer without `--always`
    --- exit 1
    ");
    team.cli.run_ok(&["deny", "1", "--always", "--yes", "--rule", "mak*"]);
    wait_until("the answer", || team.received("a").contains("refuse-it"));
    team.cli.run_ok(&["send", "alice", "ASK"]);
    wait_until("the second answer", || team.received("a").matches("refuse-it").count() == 2);
    assert!(team.cli.run_ok(&["log"]).contains("denied by personal rule 1"));
}

#[test]
fn a_policy_file_with_mistakes_lets_every_request_wait() {
    let team = HostedTeam::new();
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    let file = file.replace("[defaults]", "[defaults]\nallow = [\"make\"]");
    team.cli.write("work/brigade.toml", &file);
    team.cli.run_ok(&["up"]);
    team.cli.run_ok(&["send", "alice", "ASK"]);
    wait_until("the answer of the team's rule", || answers(&team) == 1);
    write_policy(&team.cli, "[[rules]]\nruling = \"deny\"\n");
    team.cli.run_ok(&["send", "alice", "ASK"]);
    wait_until("the request", || team.cli.run(&["approvals"]).code == Some(0));
    assert_eq!(answers(&team), 1);
    let warning = team.cli.run(&["approvals"]).stderr;
    assert!(
        warning.contains("policy.toml is not valid: a rule needs a command or a tool"),
        "{warning}"
    );
    for args in [
        &["policy", "list"][..],
        &["policy", "remove", "1"],
        &["approve", "2", "--always", "--yes"],
    ] {
        let refused = team.cli.run(args);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("policy.toml is not valid"), "{refused}");
    }
    // A person can still answer.
    team.cli.run_ok(&["approve", "2"]);
}

#[test]
fn rules_are_listed_and_removed() {
    let team = HostedTeam::new();
    assert_snapshot!(team.cli.run(&["policy", "list"]), @"
    --- stderr
    note: there are no rules; every permission request waits for you
    --- exit 4
    ");
    let file = std::fs::read_to_string(team.cli.path("work/brigade.toml")).unwrap();
    let file =
        file.replace("dir = \"b\"", "dir = \"b\"\nallow = [\"git log *\"]\ndeny = [\"rm *\"]");
    team.cli.write("work/brigade.toml", &file);
    team.cli.run_ok(&["up"]);
    let rule = "[[rules]]\nruling = \"allow\"\ncommand = \"head -3\"\n";
    let other = "[[rules]]\nruling = \"deny\"\ntool = \"Write\"\nfolder = \"/elsewhere\"\n";
    write_policy(&team.cli, &format!("{rule}{other}"));
    assert_snapshot!(team.cli.run(&["policy", "list"]), @"
    RULE             DECIDES  PATTERN     APPLIES TO
    personal rule 1  allow    head -3     every folder
    personal rule 2  deny     tool Write  /elsewhere
    rule 1 of bob    deny     rm *        bob of team demo
    rule 2 of bob    allow    git log *   bob of team demo
    ");
    assert_eq!(team.cli.json(&["policy", "list"])[2]["member"], "bob");
    assert_snapshot!(team.cli.run(&["policy", "test", "git log | head -3", "--member", "bob"]), @"
    bob of team demo: allowed
      git log  rule 2 of bob: allow git log *
      head -3  personal rule 1: allow head -3
    ");
    assert_snapshot!(team.cli.run(&["policy", "test", "git log | head -4; ls > x"]), @"
    alice of team demo: waits for an answer: no rule decides
      git log  no rule allows it
      head -4  no rule allows it
      ls > x   no rule may allow it: it writes to a file

    bob of team demo: waits for an answer: no rule decides
      git log  rule 2 of bob: allow git log *
      head -4  no rule allows it
      ls > x   no rule may allow it: it writes to a file
    ");
    assert_snapshot!(team.cli.run(&["policy", "test", "sudo rm x", "--member", "bob"]), @"bob of team demo: denied by rule 1 of bob: deny rm *");
    assert_snapshot!(team.cli.run(&["policy", "test", "git log $(ls)", "--member", "bob"]), @"bob of team demo: waits for an answer: brigade cannot tell which commands the line runs: it contains a variable or a substitution");
    assert_snapshot!(team.cli.run(&["policy", "test", "git log", "--member", "bob", "--dir", "/"]), @"bob of team demo: waits for an answer: it would run outside the member's folder");
    assert_snapshot!(team.cli.run(&["policy", "test", "git log", "--member", "carol"]), @"
    --- stderr
    error: no member carol runs on this host
    hint: `brigade status` shows the members of this host
    --- exit 1
    ");
    let tested = team.cli.json(&["policy", "test", "git log | head -3", "--member", "bob"]);
    assert_eq!(tested[0]["decision"], "allow");
    assert_eq!(tested[0]["parts"][1]["allowed_by"]["source"], "person");
    assert_snapshot!(team.cli.run(&["policy", "remove", "2"]), @"removed: deny tool Write");
    assert_snapshot!(team.cli.run(&["policy", "remove", "2"]), @"
    --- stderr
    error: your policy file has no rule 2
    hint: `brigade policy list` shows the rules and their numbers
    --- exit 1
    ");
    assert_eq!(team.cli.json(&["policy", "list"]).as_array().unwrap().len(), 3);
}

#[test]
fn without_a_member_your_own_rules_are_tested() {
    let cli = CliEnv::new();
    write_policy(&cli, "[[rules]]\nruling = \"allow\"\ncommand = \"cargo test *\"\n");
    assert_snapshot!(cli.run(&["policy", "test", "cargo test -p core"]), @"
    a member in <root>/work: allowed
      cargo test -p core  personal rule 1: allow cargo test *
    ");
    assert_snapshot!(cli.run(&["policy", "test", "cargo publish"]), @"
    a member in <root>/work: waits for an answer: no rule decides
      cargo publish  no rule allows it
    ");
}

/// An agent must not be able to allow itself more.
#[test]
fn only_a_person_changes_rules() {
    let team = with_request();
    write_policy(&team.cli, "[[rules]]\nruling = \"deny\"\ncommand = \"git push *\"\n");
    let before = std::fs::read(team.cli.path(FILE)).unwrap();
    let approve = ["approve", "1", "--always", "--yes"];
    let remove = ["policy", "remove", "1"];
    for variable in [
        ("BRIGADE_ANSWERS", "lead"),
        ("BRIGADE_ANSWERS", "person"),
        ("CLAUDE_CODE_SESSION_ID", "e0c67a80-0000-4000-8000-000000000000"),
        ("BRIGADE_AS", "alice"),
    ] {
        for args in [&approve[..], &remove] {
            let refused = team.cli.run_with_env(args, &[variable]);
            assert_eq!(refused.code, Some(1), "{variable:?} {args:?}: {refused}");
        }
    }
    assert_snapshot!(team.cli.run_with_env(&remove, &[("BRIGADE_ANSWERS", "lead")]), @"
    --- stderr
    error: only a person may remove rules
    hint: run the command in a terminal that no agent uses
    --- exit 1
    ");
    assert_eq!(std::fs::read(team.cli.path(FILE)).unwrap(), before);
    assert_eq!(team.cli.json(&["approvals"]).as_array().unwrap().len(), 1);
    // Agents may read the rules.
    let read = team.cli.run_with_env(&["policy", "list"], &[("BRIGADE_ANSWERS", "person")]);
    assert_eq!(read.code, Some(0), "{read}");
}

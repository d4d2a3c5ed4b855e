//! `brigade store`: servers with a name, and the default store.

use std::os::unix::fs::PermissionsExt as _;

use brigade_testkit::nats_server::TestServers;

use super::org::Operator;
use crate::env::CliEnv;

#[test]
fn a_named_store_can_be_used_and_made_the_default() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let cli = CliEnv::new();
    assert_eq!(cli.run(&["store", "list"]).code, Some(4));
    cli.run_ok(&["store", "add", "work", &engine.store()]);
    cli.run_ok(&["--store", "work", "team", "create", "demo"]);
    assert_eq!(cli.run(&["team", "list"]).code, Some(4), "files are still the default");
    cli.run_ok(&["store", "use", "work"]);
    assert_eq!(cli.json(&["team", "list"])[0]["name"], "demo");
    assert_eq!(cli.json(&["store", "list"])[0]["default"], true);
    // The variable, and a trusted brigade.toml, come before the default.
    assert_eq!(cli.run_with_env(&["team", "list"], &[("BRIGADE_STORE", "files")]).code, Some(4));
    cli.write("work/brigade.toml", "team = \"other\"\nstore = \"files\"\n");
    assert_eq!(cli.run(&["team", "list"]).code, Some(4));
    std::fs::remove_file(cli.path("work/brigade.toml")).unwrap();
    cli.run_ok(&["store", "use", "--none"]);
    assert_eq!(cli.run(&["team", "list"]).code, Some(4));
    let mode = |path: &str| std::fs::metadata(cli.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("home/.config/brigade/config.toml"), 0o600);
    assert_eq!(mode("home/.config/brigade"), 0o700);
}

#[test]
fn an_unknown_store_and_an_address_with_a_password_are_refused() {
    let cli = CliEnv::new();
    for (args, code, said) in [
        (&["--store", "nowhere", "team", "list"][..], 2, "brigade store add nowhere"),
        (&["store", "use", "nowhere"], 2, "brigade store add nowhere"),
        (&["store", "add", "files", "nats://a"], 2, "`files` always means"),
        (&["store", "add", "work", "nats://me:secret@a"], 2, "--creds FILE"),
        (&["store", "add", "work", "nats://a", "--ca", "none.pem"], 2, "there is no file"),
        (&["store", "add", "work", "nats://a", "--creds", "no.creds"], 2, "there is no file"),
        (&["store", "use"], 2, "required"),
    ] {
        let refused = cli.run(args);
        assert_eq!(refused.code, Some(code), "{args:?}: {refused}");
        assert!(refused.stderr.contains(said), "{args:?}: {refused}");
    }
    assert!(!cli.path("home/.config/brigade/config.toml").exists());
    cli.run_ok(&["store", "add", "work", "nats://a"]);
    let close = cli.run(&["--store", "wrok", "team", "list"]);
    assert!(close.stderr.contains("did you mean work?"), "{close}");
    cli.write("home/.config/brigade/config.toml", "store = 1");
    let broken = cli.run(&["team", "list"]);
    assert!(broken.stderr.contains("config.toml is not valid"), "{broken}");
}

#[test]
fn adding_a_store_again_shows_what_it_replaced_and_keeps_the_default() {
    let cli = CliEnv::new();
    cli.run_ok(&["store", "add", "work", "nats://a", "--use"]);
    let same = cli.run(&["store", "add", "work", "nats://a"]);
    assert_eq!(same.stdout, "replaced store work; it is still the default\n");
    assert!(!same.stderr.contains("note"), "{same}");
    let other = cli.run(&["store", "add", "work", "nats://b"]);
    let note = "note: work was nats://a; add it under another name if you still need it";
    assert!(other.stderr.contains(note), "{other}");
}

#[test]
fn a_store_can_be_removed() {
    let cli = CliEnv::new();
    cli.run_ok(&["store", "add", "home", "nats://a"]);
    cli.run_ok(&["store", "add", "work", "nats://b", "--use"]);
    assert_eq!(cli.run_ok(&["store", "remove", "home"]), "removed store home\n");
    assert_eq!(
        cli.run_ok(&["store", "remove", "work"]),
        "removed store work; the default store is the files of this host\n"
    );
    assert_eq!(cli.run(&["store", "list"]).code, Some(4));
    assert_eq!(cli.run(&["store", "remove", "work"]).code, Some(2));
}

#[test]
fn the_credentials_of_each_team_get_their_own_store() {
    let cli = CliEnv::new();
    cli.run_ok(&["org", "init", "acme", "--dir", "op"]);
    let add = |team: &str, more: &[&str]| {
        cli.run_ok(
            &[&["org", "add-member", team, "team-lead", "--lead"], more, &["--dir", "op"]].concat(),
        )
    };
    assert!(add("demo", &["--use"]).contains("as store acme\n"));
    assert!(add("proj", &[]).contains("brigade store add acme-proj "));
    assert!(add("proj", &["--use", "--out", "p.creds"]).contains("as store acme-proj\n"));
    assert_eq!(cli.json(&["store", "list"]).as_array().unwrap().len(), 2);
}

/// Claude Code starts `brigade teammate` for its own teams, which are in files.
#[test]
fn programs_that_others_start_do_not_use_the_default() {
    let cli = CliEnv::new();
    cli.run_ok(&["store", "add", "work", "nats://127.0.0.1:9", "--use"]);
    let supervise = cli.run(&["supervise"]);
    assert_eq!(supervise.code, Some(0), "{supervise}");
    let list = cli.run(&["--wait=0", "team", "list"]);
    assert!(list.stderr.contains("nats://127.0.0.1:9"), "{list}");
}

#[test]
fn check_shows_what_works() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let alice = operator.add(&["demo", "alice", "bob", "--valid", "90d"]);
    operator.cli.run_ok(&["store", "add", "acme", &operator.url, "--creds", &alice]);
    let checked = operator.cli.json(&["store", "check", "acme"]);
    assert_eq!(checked["tls"], false, "{checked}");
    assert_eq!(checked["credentials"]["members"], serde_json::json!(["alice", "bob"]));
    assert!(checked["credentials"]["until"].is_string(), "{checked}");
    assert_eq!(checked["team"]["exists"], false, "{checked}");
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    let text = operator.cli.run_ok(&["store", "check", "acme"]);
    for said in [
        "acme: nats://127.0.0.1:",
        "nats-server 2.",
        "no TLS",
        "alice, bob in team demo (member), valid until ",
        "send and read mail as these members, use the team's board",
        "demo exists",
        "only an admin can check them",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let admin = operator.cli.path("work/op/orgs/acme/admin.creds");
    let admin = ["--creds", admin.to_str().unwrap()];
    let text = operator.cli.run_ok(&[&admin[..], &["store", "check", "acme"]].concat());
    assert!(text.contains("do everything in the organisation"), "{text}");
    assert!(text.contains("5, no problems"), "{text}");
    operator.cli.run_ok(&["org", "revoke", "demo", "alice", "--dir", "op"]);
    let refused = operator.cli.run(&["store", "check", "acme"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("were revoked"), "{refused}");
    let files = operator.cli.run_ok(&["--store", "files", "store", "check"]);
    assert!(files.contains("files in "), "{files}");
}

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

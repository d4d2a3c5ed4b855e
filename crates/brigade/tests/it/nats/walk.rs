//! From nothing to two hosts with TLS and credentials: every command after the first is one that the command before
//! it printed, and is run as it was printed.

use std::net::TcpListener;
use std::process::Command;

use super::tls::certificates;
use crate::env::CliEnv;

/// Returns the printed command that starts like this.
fn printed(output: &str, start: &str) -> String {
    let line = output.lines().map(str::trim).find(|line| line.starts_with(start));
    line.unwrap_or_else(|| panic!("no command {start:?} in:\n{output}")).to_owned()
}

/// Runs a line in a shell, as a person would who pastes it.
fn paste(cli: &CliEnv, line: &str) -> String {
    let brigade = std::path::Path::new(env!("CARGO_BIN_EXE_brigade")).parent().unwrap();
    let path = format!("{}:{}", brigade.display(), std::env::var("PATH").unwrap());
    let environment = cli.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env_clear().current_dir(cli.path("work"));
    for (name, value) in environment.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let output = shell.env("PATH", path).output().unwrap();
    let done = cli.outcome(&output);
    assert_eq!(done.code, Some(0), "{line}\n{done}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn printed_commands_lead_to_the_first_message_between_two_hosts() {
    brigade_testkit::needs!(NatsServer, Openssl);
    let (a, b) = (CliEnv::new(), CliEnv::new());
    certificates(&a.root);
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let cert = |name: &str| a.path(name).display().to_string();
    let init = format!(
        "brigade org init acme --dir 'acme keys' --nodes 127.0.0.1:{port} --tls-cert {} --tls-key {} --tls-ca {}",
        cert("server.pem"),
        cert("server.key"),
        cert("ca.pem")
    );
    let output = paste(&a, &init);
    let server = printed(&output, "nats-server -c");
    assert!(server.contains(" > nats.log 2>&1 &"), "{server}");
    let config = server.split('\'').nth(1).unwrap();
    let _server =
        brigade_testkit::nats_server::ServerProcess::start(config.as_ref(), &a.path("log"));
    // `org apply` waits until the server listens.
    let output = paste(&a, &printed(&output, "brigade org apply"));
    let lead = paste(&a, &printed(&output, "brigade org add-member"));
    let members = paste(&a, &printed(&lead, "brigade org add-member"));
    // The files are copied to the other host, at the same paths.
    paste(&b, &printed(&members, "brigade store add"));

    paste(&a, &printed(&lead, "brigade team create"));
    for cli in [&a, &b] {
        let checked = cli.json(&["store", "check"]);
        assert_eq!(checked["tls"], true, "{checked}");
        assert_eq!(checked["team"]["exists"], true, "{checked}");
    }
    paste(&a, &printed(&members, "brigade --team demo team join alice"));
    paste(&b, &printed(&members, "brigade --as alice send team-lead"));
    assert!(a.run_ok(&["inbox"]).contains("hello"));
    // Bob is in the credentials, but the lead has not added him.
    let hint = "hint: the lead adds it with `brigade --team demo team join bob`";
    let bob = b.run(&["--as", "bob", "send", "team-lead", "hello"]);
    assert!(bob.stderr.contains(hint), "{bob}");
}

#[test]
fn adding_a_store_says_how_to_choose_one_of_several_members() {
    let cli = CliEnv::new();
    cli.run_ok(&["org", "init", "acme", "--dir", "op"]);
    let add = |names: &[&str], file: &str| {
        let words = [&["org", "add-member", "demo"], names, &["--dir", "op", "--out", file]];
        cli.run_ok(&words.concat());
        cli.run(&["store", "add", "acme", "nats://a", "--creds", file]).stderr
    };
    let hint = "hint: the credentials are for several members: add `--as alice` or `--as bob`";
    assert!(add(&["alice", "bob"], "two.creds").contains(hint));
    assert!(!add(&["carol"], "one.creds").contains("--as"));
}

#[test]
fn n15_tls_uses_the_default_server() {
    let cli = CliEnv::new();
    let init = ["org", "init", "acme", "--dir", "op", "--tls-cert", "c.pem", "--tls-key", "k.pem"];
    assert_eq!(cli.json(&init)["urls"], serde_json::json!(["tls://127.0.0.1:4222"]));
}

#[test]
fn n16_the_printed_command_names_the_ca() {
    let cli = CliEnv::new();
    cli.run_ok(&[
        "org",
        "init",
        "acme",
        "--dir",
        "op",
        "--tls-cert",
        "c.pem",
        "--tls-key",
        "k.pem",
        "--tls-ca",
        "ca.pem",
    ]);
    let output =
        cli.run_ok(&["org", "add-member", "demo", "alice", "--dir", "op", "--out", "a.creds"]);
    let line = printed(&output, "brigade ");
    let path = |name: &str| cli.path(name).display().to_string();
    let (ca, creds) = (path("work/ca.pem"), path("work/a.creds"));
    assert!(line.contains(&format!("--ca {ca}")), "{line}");
    assert!(line.contains(&format!("--creds {creds}")), "{line}");
}

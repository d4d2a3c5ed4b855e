//! Failed connections to a NATS server: each cause has its own error and its own next step.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_testkit::nats_server::TestServers;

use super::org::Operator;
use super::tls::certificates;
use crate::env::{CliEnv, Outcome};

/// Checks the error of a command. `address` stands for the address of the server, which differs from run to run.
fn check(outcome: &Outcome, address: &str, expected: &str) {
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let said = outcome.stderr.replace(address, "ADDRESS");
    assert_eq!(said.trim(), expected.trim(), "{outcome}");
}

fn list(cli: &CliEnv, options: &[&str]) -> Outcome {
    cli.run(&[options, &["team", "list"]].concat())
}

/// Returns an address at which no program listens.
fn free_address() -> String {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().to_string()
}

#[test]
fn an_unreachable_server_is_named() {
    let cli = CliEnv::new();
    let address = free_address();
    let away = list(&cli, &["--wait=0", "--store", &format!("nats://{address}")]);
    check(
        &away,
        &address,
        "error: cannot connect to the NATS server\n  \
         caused by: no server answers at nats://ADDRESS: Connection refused (os error 111)\n\
         hint: check the address, that the server is running, and that no firewall blocks it\n\
         hint: `--wait=60s` waits longer for a server that is starting",
    );
}

#[test]
fn another_kind_of_server_is_named_and_not_waited_for() {
    brigade_testkit::needs!(NatsServer);
    let cli = CliEnv::new();
    let hint = "hint: check the host and the port: NATS servers listen for clients on 4222 unless \
                configured otherwise, and 8222 is only for monitoring";
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _closed = client.write_all(b"SSH-2.0-OpenSSH_9.9\r\n");
        }
    });
    let began = Instant::now();
    check(
        &list(&cli, &["--store", &format!("nats://{address}")]),
        &address,
        &format!(
            "error: cannot connect to the NATS server\n  caused by: the program at nats://ADDRESS is not a \
             NATS server: it sends \"SSH-2.0-OpenSSH_9.9\"\n{hint}"
        ),
    );
    assert!(began.elapsed() < Duration::from_secs(15), "the command waited for the server");
    // The port for monitoring speaks HTTP, and says nothing before the client does.
    let engine = TestServers::single();
    let monitor = list(&cli, &["--wait=0", "--store", &format!("nats://{}", engine.monitor(0))]);
    assert!(monitor.stderr.contains("it sends \"HTTP/1.1 400 Bad Request\""), "{monitor}");
}

#[test]
fn n17_tls_to_a_plain_server_is_named() {
    brigade_testkit::needs!(NatsServer, Openssl);
    let cli = CliEnv::new();
    certificates(&cli.root);
    let engine = TestServers::single();
    let address = engine.store().replace("nats://", "");
    let message = "error: cannot connect to the NATS server\n  \
                   caused by: the NATS server at SCHEME://ADDRESS does not use TLS\n";
    let began = Instant::now();
    check(
        &list(&cli, &["--store", &format!("tls://{address}")]),
        &address,
        &format!(
            "{}hint: use the address nats://ADDRESS for a connection without encryption, or let the \
             operator turn on TLS",
            message.replace("SCHEME", "tls")
        ),
    );
    let ca = cli.path("ca.pem");
    check(
        &list(&cli, &["--store", &engine.store(), "--ca", ca.to_str().unwrap()]),
        &address,
        &format!(
            "{}hint: leave out --ca for a connection without encryption, or let the operator turn on TLS",
            message.replace("SCHEME", "nats")
        ),
    );
    assert!(began.elapsed() < Duration::from_secs(15), "the command waited for the server");
}

#[test]
fn certificates_that_are_not_trusted_are_named() {
    brigade_testkit::needs!(NatsServer, Openssl);
    let cli = CliEnv::new();
    certificates(&cli.root);
    let other = CliEnv::new();
    certificates(&other.root);
    let path = |name: &str| cli.path(name).to_str().unwrap().to_owned();
    let tls = format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        path("server.pem"),
        path("server.key"),
        path("ca.pem")
    );
    let engine = TestServers::with(1, &tls);
    let address = engine.store().replace("nats://", "");
    let head = "error: cannot connect to the NATS server\n  caused by: ";
    // A client without TLS settings uses TLS because the server demands it.
    for scheme in ["nats", "tls"] {
        check(
            &list(&cli, &["--store", &format!("{scheme}://{address}")]),
            &address,
            &format!(
                "{head}the certificate of {scheme}://ADDRESS is signed by an unknown CA\n\
                 hint: name the certificate file of its CA with `--ca FILE`"
            ),
        );
    }
    let wrong = other.path("ca.pem");
    let wrong = list(&cli, &["--store", &engine.store(), "--ca", wrong.to_str().unwrap()]);
    let hint = "ca.pem is not the CA of this server; ask its operator for the CA's certificate";
    assert!(wrong.stderr.contains(hint), "{wrong}");
    let ca = path("ca.pem");
    let none = list(&cli, &["--store", &engine.store(), "--ca", &ca]);
    check(
        &none,
        &address,
        &format!(
            "{head}nats://ADDRESS wants a certificate of the client: CertificateRequired\n\
             hint: name a certificate that the server accepts with `--cert FILE --key FILE`"
        ),
    );
    let missing = list(&cli, &["--store", &engine.store(), "--ca", "none.pem"]);
    let named = "none.pem: No such file or directory";
    assert!(missing.stderr.contains(named), "{missing}");
    // The certificate names the address 127.0.0.1 only.
    let name = address.replace("127.0.0.1", "localhost");
    let name = list(&cli, &["--store", &format!("tls://{name}"), "--ca", &ca]);
    assert!(name.stderr.contains("is not valid: certificate not valid for name"), "{name}");
}

#[test]
fn a_credentials_file_that_cannot_be_used_is_named() {
    brigade_testkit::needs!(NatsServer);
    let engine = TestServers::single();
    let cli = CliEnv::new();
    let missing = list(&cli, &["--store", &engine.store(), "--creds", "none.creds"]);
    let hint = "hint: check --creds, BRIGADE_CREDS, `creds` in brigade.toml, and the CREDENTIALS of \
                `brigade store list`";
    for said in ["none.creds: No such file or directory", hint] {
        assert!(missing.stderr.contains(said), "{said}: {missing}");
    }
    assert!(!missing.stderr.contains("unacknowledged"), "{missing}");
    cli.write("work/bad.creds", "nonsense");
    let doctor = cli.run(&["doctor", "--store", &engine.store(), "--creds", "bad.creds"]);
    assert!(doctor.stdout.contains("bad.creds: it has no user JWT"), "{doctor}");
}

#[test]
fn n18_expired_and_revoked_credentials_are_told_apart() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let head = "error: cannot connect to the NATS server\n  caused by: ";
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    let brief = operator.add(&["demo", "alice", "carol", "--valid", "1s"]);
    let bob = operator.add(&["demo", "bob", "--valid", "90d"]);
    std::thread::sleep(Duration::from_millis(2100));
    let show = |file: &str, name: &str| operator.run_as(file, name, &["team", "show"]);
    let short = |file: &str| file.replace(operator.cli.root.to_str().unwrap(), "<root>");
    let expired = show(&brief, "alice");
    check(
        &expired,
        &operator.url,
        &format!(
            "{head}the credentials of alice, carol in team demo expired on <date> at <time> UTC\n\
             hint: {} cannot be used any more; the operator of the server issues new ones with \
             `brigade org add-member`",
            short(&brief)
        ),
    );
    operator.cli.run_ok(&["org", "revoke", "demo", "bob", "--dir", "op"]);
    let revoked = show(&bob, "bob");
    check(
        &revoked,
        &operator.url,
        &format!(
            "{head}the NATS server refused the credentials of bob in team demo, which expire only on \
             <date> at <time> UTC\n\
             hint: the credentials in {} were revoked, or the server does not know their organisation yet\n\
             hint: the operator of the server sees which with `brigade org list`; after a revocation, \
             `brigade org add-member` issues new ones; for a new organisation, `brigade org apply` \
             informs the server",
            short(&bob)
        ),
    );
    check(
        &list(&operator.cli, &["--store", &operator.url]),
        &operator.url,
        &format!(
            "{head}the NATS server at ADDRESS wants credentials\n\
             hint: name your credentials with `--creds FILE`; the operator of the server issues them with \
             `brigade org add-member`"
        ),
    );
}

#[test]
fn an_operation_without_the_right_names_the_credentials_and_the_right() {
    brigade_testkit::needs!(NatsServer);
    let operator = Operator::new();
    let lead = operator.add(&["demo", "team-lead", "--lead"]);
    let alice = operator.add(&["demo", "alice"]);
    operator.run_ok_as(&lead, "team-lead", &["team", "create", "demo"]);
    for name in ["alice", "bob"] {
        operator.run_ok_as(&lead, "team-lead", &["team", "join", name]);
    }
    check(
        &operator.run_as(&alice, "bob", &["send", "team-lead", "as bob"]),
        &operator.url,
        "error: the NATS server does not allow the credentials of alice in team demo to send a message to team-lead: \
         they have no right on mb.0.demo.team-lead.bob.w\n\
         hint: the NATS server checks the credentials, not `--as`; use others with --creds FILE, or ask the \
         operator of the server",
    );
}

#[test]
fn a_command_waits_for_a_server_that_starts() {
    brigade_testkit::needs!(NatsServer);
    let mut engine = TestServers::single();
    let cli = CliEnv::new();
    let store = engine.store();
    cli.run_ok(&["--store", &store, "team", "create", "demo"]);
    engine.stop(0);
    let waiting = cli
        .command(&["--store", &store, "team", "list"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    engine.start(0);
    let done = cli.outcome(&waiting.wait_with_output().unwrap());
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.stdout.contains("demo"), "{done}");
    let note = format!("waiting for {store} to answer (up to 20 s; `--wait=0` fails at once)\n");
    assert_eq!(done.stderr, note);
}

#[test]
fn the_wait_has_a_limit_and_can_be_turned_off() {
    let cli = CliEnv::new();
    let store = format!("nats://{}", free_address());
    let wait = |option: &str| {
        let began = Instant::now();
        let away = list(&cli, &[option, "--store", &store]);
        assert_eq!(away.code, Some(1), "{away}");
        began.elapsed()
    };
    assert!(wait("--wait=0") < Duration::from_secs(2));
    let waited = wait("--wait=3s");
    assert!(waited > Duration::from_secs(2) && waited < Duration::from_secs(10), "{waited:?}");
    assert_eq!(list(&cli, &["--wait=soon"]).code, Some(2));
    assert_eq!(list(&cli, &["--wait"]).code, Some(4), "the files have no team");
}

#[test]
fn a_reachable_server_behind_unusable_ones_is_found() {
    brigade_testkit::needs!(NatsServer);
    let engine = Arc::new(TestServers::single());
    let cli = CliEnv::new();
    let store = format!("nats://{},{}", free_address(), engine.store());
    cli.run_ok(&["--store", &store, "team", "create", "demo"]);
}

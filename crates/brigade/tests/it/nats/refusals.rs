//! Errors with a NATS store.

use super::NatsHost;
use crate::env::CliEnv;

#[test]
fn an_unreachable_server_is_reported_with_its_address() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    let nowhere = ["--wait=0", "--store", "nats://127.0.0.1:9", "team", "list"];
    let gone = client.run(&nowhere);
    assert_eq!(gone.code, Some(1), "{gone}");
    assert!(gone.stderr.contains("no server answers at nats://127.0.0.1:9"), "{gone}");
    // If the store names several servers, one reachable server is enough.
    let store = format!("nats://127.0.0.1:9,{}", client.engine.store());
    assert!(client.run_ok(&["--store", &store, "team", "list"]).contains("demo"));
}

#[test]
fn invalid_addresses_are_usage_errors() {
    let cli = CliEnv::new();
    for (store, said) in [
        ("nats://me:secret@localhost", "--creds"),
        ("redis://localhost", "use `files`"),
        ("nats://local host", "is not a host and a port"),
    ] {
        let refused = cli.run(&["--store", store, "team", "list"]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
        let refused = cli.run_with_env(&["team", "list"], &[("BRIGADE_STORE", store)]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
    }
    let half = ["--store", "nats://127.0.0.1:9", "--cert", "c.pem", "team", "list"];
    assert_eq!(cli.run(&half).code, Some(2));
}

#[test]
fn missing_credentials_files_are_reported() {
    brigade_testkit::needs!(NatsServer);
    let client = NatsHost::with_team();
    let refused = client.run(&["--creds", "none.creds", "team", "list"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("<root>/work/none.creds"), "{refused}");
}

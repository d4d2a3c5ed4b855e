//! What cannot be done in an engine, and what is said then.

use super::Far;
use crate::env::House;

#[test]
fn a_server_that_is_not_there_is_told_with_its_address() {
    let far = Far::with_team();
    let nowhere = ["--store", "nats://127.0.0.1:9", "team", "list"];
    let gone = far.run(&nowhere);
    assert_eq!(gone.code, Some(1), "{gone}");
    let hint = "is the server running at nats://127.0.0.1:9, and reachable from here?";
    assert!(gone.stderr.contains(hint), "{gone}");
    // One of several is enough.
    let store = format!("nats://127.0.0.1:9,{}", far.engine.store());
    assert!(far.done(&["--store", &store, "team", "list"]).contains("demo"));
}

#[test]
fn an_address_that_makes_no_sense_is_a_wrong_command_line() {
    let house = House::new();
    for (store, said) in [
        ("nats://me:secret@localhost", "--creds"),
        ("redis://localhost", "use `files`"),
        ("nats://local host", "is not a host and a port"),
    ] {
        let refused = house.run(&["--store", store, "team", "list"]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
        let refused = house.run_with_env(&["team", "list"], &[("BRIGADE_STORE", store)]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
    }
    let half = ["--store", "nats://127.0.0.1:9", "--cert", "c.pem", "team", "list"];
    assert_eq!(house.run(&half).code, Some(2));
}

#[test]
fn credentials_that_are_not_there_are_named() {
    let far = Far::with_team();
    let refused = far.run(&["--creds", "none.creds", "team", "list"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("<house>/work/none.creds"), "{refused}");
}

//! An engine that is spoken to in secret.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use brigade_testkit::nats_server::Engine;

use super::Far;

fn openssl(dir: &Path, words: &str) {
    let done = Command::new("openssl").args(words.split(' ')).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// An authority, and the certificates of a server and of a client that it vouches for.
fn certificates(dir: &Path) {
    let new = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(dir, &format!("req -x509 {new} -days 2 -subj /CN=ca -keyout ca.key -out ca.pem"));
    std::fs::write(dir.join("san"), "subjectAltName=IP:127.0.0.1").unwrap();
    for name in ["server", "client"] {
        openssl(dir, &format!("req {new} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        openssl(
            dir,
            &format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                 -extfile san -out {name}.pem"
            ),
        );
    }
}

#[test]
fn the_servers_and_the_client_know_each_other() {
    let dir = tempfile::tempdir().unwrap();
    certificates(dir.path());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let [cert, key, ca] = ["server.pem", "server.key", "ca.pem"].map(path);
    let tls = format!(
        "tls {{ cert_file: \"{cert}\", key_file: \"{key}\", ca_file: \"{ca}\", verify: true }}"
    );
    let engine = Arc::new(Engine::with(1, &tls));
    let mut far = Far::on(&engine, "a");
    let store = engine.store().replace("nats://", "tls://");
    far.house.variables = vec![("BRIGADE_STORE", store), ("BRIGADE_CA", ca.clone())];
    // Without a certificate of its own it is not let in.
    assert_eq!(far.run(&["team", "list"]).code, Some(1));
    far.house
        .variables
        .extend([("BRIGADE_CERT", path("client.pem")), ("BRIGADE_KEY", path("client.key"))]);
    far.done(&["team", "create", "demo"]);
    assert_eq!(far.json(&["team", "list"])[0]["name"], "demo");
    // Who vouches for the server has to be known.
    far.house.variables.retain(|(name, _)| *name != "BRIGADE_CA");
    assert_eq!(far.run(&["team", "list"]).code, Some(1));
}

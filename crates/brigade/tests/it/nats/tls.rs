//! Connections to a NATS server with TLS.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use brigade_testkit::nats_server::TestServers;

use super::NatsHost;

fn openssl(dir: &Path, args: &str) {
    let done = Command::new("openssl").args(args.split(' ')).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Creates a CA. Uses it to sign a server certificate and a client certificate.
pub(super) fn certificates(dir: &Path) {
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
fn mutual_tls_works() {
    brigade_testkit::needs!(NatsServer, Openssl);
    let dir = tempfile::tempdir().unwrap();
    certificates(dir.path());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let [cert, key, ca] = ["server.pem", "server.key", "ca.pem"].map(path);
    let tls = format!(
        "tls {{ cert_file: \"{cert}\", key_file: \"{key}\", ca_file: \"{ca}\", verify: true }}"
    );
    let engine = Arc::new(TestServers::with(1, &tls));
    let mut client = NatsHost::on(&engine, "a");
    let store = engine.store().replace("nats://", "tls://");
    client.cli.variables = vec![("BRIGADE_STORE", store), ("BRIGADE_CA", ca.clone())];
    // Without a client certificate the connection is refused.
    assert_eq!(client.run(&["team", "list"]).code, Some(1));
    client
        .cli
        .variables
        .extend([("BRIGADE_CERT", path("client.pem")), ("BRIGADE_KEY", path("client.key"))]);
    client.run_ok(&["team", "create", "demo"]);
    assert_eq!(client.json(&["team", "list"])[0]["name"], "demo");
    // Without BRIGADE_CA, the server's certificate is not trusted.
    client.cli.variables.retain(|(name, _)| *name != "BRIGADE_CA");
    assert_eq!(client.run(&["team", "list"]).code, Some(1));
}

//! Configuration files of the NATS servers.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A server's port for other servers is its port for clients plus this offset. For example, 4222 becomes 6222.
const ROUTE_PORT_OFFSET: u16 = 2000;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAddress {
    /// Host name or IP address. An IPv6 address is in brackets.
    pub host: String,
    /// The port for clients.
    pub port: u16,
}

impl FromStr for ServerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is not HOST:PORT");
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".-[]:_".contains(c);
        if host.is_empty() || !host.chars().all(allowed) {
            return Err(invalid());
        }
        let port: u16 = port.parse().map_err(|_| invalid())?;
        if port.checked_add(ROUTE_PORT_OFFSET).is_none() {
            return Err(format!(
                "port {port} is too high: the port for other servers would be {ROUTE_PORT_OFFSET} higher"
            ));
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// TLS settings of the servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// Certificate file.
    pub cert: PathBuf,
    /// Private key file.
    pub key: PathBuf,
    /// CA certificate file, if the CA is not in the system's trust store.
    pub ca: Option<PathBuf>,
}

/// The servers of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The address of each server.
    pub nodes: Vec<ServerAddress>,
    /// The address on which the servers listen; `None` if each server listens on its own host address.
    pub listen: Option<String>,
    /// TLS settings; `None` for unencrypted connections.
    pub tls: Option<Tls>,
}

impl Cluster {
    /// Returns a cluster with one server on this machine. Other machines cannot reach the server.
    pub fn here() -> Self {
        let node = ServerAddress { host: "127.0.0.1".to_owned(), port: 4222 };
        Self { nodes: vec![node], listen: None, tls: None }
    }

    /// Returns the URLs at which clients reach the servers.
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.tls.is_some() { "tls" } else { "nats" };
        self.nodes.iter().map(|node| format!("{scheme}://{node}")).collect()
    }
}

/// The values that a server's configuration is made from.
pub(super) struct ServerConfig<'c> {
    pub(super) cluster: &'c Cluster,
    /// The folder for the servers' data.
    pub(super) data: &'c Path,
    /// The password with which servers connect to each other.
    pub(super) password: &'c str,
    pub(super) operator: &'c str,
    pub(super) system_account: &'c str,
    /// The public key and the JWT of every account.
    pub(super) accounts: &'c [(String, String)],
}

impl ServerConfig<'_> {
    /// Returns the configuration file of the server with this number, counted from 1.
    pub(super) fn render(&self, number: usize, node: &ServerAddress) -> String {
        let mut text = format!(
            "# Written by `brigade org`, which overwrites this file when organisations or seats change.\n\
             # Contains secrets of the servers.\n\
             server_name: \"brigade-{number}\"\n\
             listen: {}\n\
             # Messages are at most 1 MB. The roster of a team and the read marks of a mailbox may be larger.\n\
             max_payload: 8MB\n\
             # Sync every write to disk before it is acknowledged.\n\
             jetstream {{ store_dir: {}, sync_interval: always }}\n",
            quoted(&format!("{}:{}", self.bind(node), node.port)),
            quoted_path(&self.data.join(format!("server-{number}"))),
        );
        self.tls(&mut text, "");
        if self.cluster.nodes.len() > 1 {
            self.routes(&mut text, node);
        }
        let accounts = quoted_path(&self.data.join(format!("accounts-{number}")));
        let _infallible = write!(
            text,
            "operator: {}\nsystem_account: {}\n\
             # When a client connects, it sends its credentials. They can be long: they list all permissions.\n\
             max_control_line: 1MB\n\
             resolver {{ type: full, dir: {accounts}, allow_delete: false, interval: \"2m\" }}\n\
             resolver_preload {{\n",
            self.operator, self.system_account
        );
        for (account, jwt) in self.accounts {
            let _infallible = writeln!(text, "  {account}: {jwt}");
        }
        text.push_str("}\n");
        text
    }

    fn bind<'a>(&'a self, node: &'a ServerAddress) -> &'a str {
        self.cluster.listen.as_deref().unwrap_or(&node.host)
    }

    fn tls(&self, text: &mut String, indent: &str) {
        let Some(tls) = &self.cluster.tls else { return };
        let (cert, key) = (quoted_path(&tls.cert), quoted_path(&tls.key));
        let _infallible = write!(text, "{indent}tls {{ cert_file: {cert}, key_file: {key}");
        if let Some(ca) = &tls.ca {
            let _infallible = write!(text, ", ca_file: {}", quoted_path(ca));
        }
        text.push_str(" }\n");
    }

    fn routes(&self, text: &mut String, node: &ServerAddress) {
        let listen = format!("{}:{}", self.bind(node), node.port + ROUTE_PORT_OFFSET);
        let password = self.password;
        let _infallible = write!(
            text,
            // If the network fails, a server gets no error: it notices the failure only by unanswered pings. After
            // the network was back, a host was still unreachable for up to 23 s with the default ping interval
            // (two minutes), and for up to 8 s with these values.
            "cluster {{\n  name: \"brigade\"\n  listen: {}\n  \
             ping_interval: \"2s\"\n  ping_max: 2\n  \
             authorization {{ user: \"brigade\", password: \"{password}\" }}\n",
            quoted(&listen)
        );
        self.tls(text, "  ");
        text.push_str("  routes: [\n");
        for other in self.cluster.nodes.iter().filter(|other| *other != node) {
            let (host, port) = (&other.host, other.port + ROUTE_PORT_OFFSET);
            let _infallible = writeln!(text, "    \"nats://brigade:{password}@{host}:{port}\"");
        }
        text.push_str("  ]\n}\n");
    }
}

/// Quotes a string for the configuration file, which uses the same escapes as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cluster: &Cluster) -> String {
        let server = ServerConfig {
            cluster,
            data: Path::new("/data"),
            password: "secret",
            operator: "OPERATOR.JWT",
            system_account: "ASYS",
            accounts: &[("AONE".to_owned(), "ONE.JWT".to_owned())],
        };
        server.render(1, &cluster.nodes[0])
    }

    #[test]
    fn one_server_has_no_routes() {
        let cluster =
            Cluster { nodes: vec!["127.0.0.1:4222".parse().unwrap()], listen: None, tls: None };
        let text = text(&cluster);
        assert!(text.contains("listen: \"127.0.0.1:4222\""), "{text}");
        assert!(text.contains("sync_interval: always"), "{text}");
        assert!(!text.contains("cluster"), "{text}");
        assert!(text.contains("  AONE: ONE.JWT\n"), "{text}");
    }

    #[test]
    fn cluster_routes_use_a_password() {
        let nodes = ["a:4222", "b:4222", "c:4222"].map(|node| node.parse().unwrap()).to_vec();
        let tls = Tls { cert: "/c".into(), key: "/k".into(), ca: Some("/ca".into()) };
        let cluster = Cluster { nodes, listen: Some("0.0.0.0".into()), tls: Some(tls) };
        let text = text(&cluster);
        assert!(text.contains("listen: \"0.0.0.0:6222\""), "{text}");
        assert!(text.contains("nats://brigade:secret@b:6222"), "{text}");
        assert!(!text.contains("@a:6222"), "{text}");
        assert_eq!(
            text.matches("tls { cert_file: \"/c\", key_file: \"/k\", ca_file: \"/ca\" }").count(),
            2
        );
        assert_eq!(cluster.urls()[2], "tls://c:4222");
    }

    #[test]
    fn an_address_needs_a_host_and_a_port() {
        for text in ["", "a", "a:", ":1", "a:b", "a b:1", "a\"}:1", "a:65000"] {
            assert!(text.parse::<ServerAddress>().is_err(), "{text:?}");
        }
        assert_eq!("[::1]:4222".parse::<ServerAddress>().unwrap().host, "[::1]");
    }
}

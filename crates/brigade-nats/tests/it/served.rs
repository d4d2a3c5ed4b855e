//! Starts servers with the configuration files in an operator's folder. Connects raw clients, as an attacker would
//! use them.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use brigade_nats::Identity;
use brigade_nats::identity::CredentialRole;
use brigade_nats::options::StreamSettings;
use brigade_nats::org::{Cluster, Folder, Granted, IssuedSeat, Organisation};
use jiff::Timestamp;
use tempfile::TempDir;

/// A shell script that runs a server, and kills the server when the test process ends for any reason. It notices
/// the end because `read` returns when the test process closes the pipe.
const WATCHDOG: &str =
    r#""$0" -c "$1" >>"$2" 2>&1 & pid=$!; echo $pid; read -r word; kill -9 $pid; wait $pid"#;

/// An operator's folder, and the running servers that use it.
pub(crate) struct OrgServers {
    pub(crate) folder: Folder,
    pub(crate) urls: Vec<String>,
    watchdogs: Vec<Child>,
    dir: TempDir,
}

impl OrgServers {
    /// Creates an operator with this number of servers, and starts the servers.
    pub(crate) fn start(nodes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let nodes = free_ports(nodes).into_iter();
        let nodes = nodes.map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
        let cluster = Cluster { nodes, listen: None, tls: None };
        let urls = cluster.urls();
        let folder =
            Folder::init(&dir.path().join("operator"), Some(cluster), Timestamp::now()).unwrap();
        let mut servers = Self { folder, urls, watchdogs: Vec::new(), dir };
        servers.launch();
        servers
    }

    /// Starts the servers. Data from an earlier start is kept.
    pub(crate) fn launch(&mut self) {
        let program =
            std::env::var_os("BRIGADE_NATS_SERVER").unwrap_or_else(|| "nats-server".into());
        for number in 1..=self.urls.len() {
            let mut watchdog = Command::new("sh")
                .args(["-c", WATCHDOG])
                .arg(&program)
                .args([self.folder.server(number), self.log(number)])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut pid = String::new();
            BufReader::new(watchdog.stdout.take().unwrap()).read_line(&mut pid).unwrap();
            self.watchdogs.push(watchdog);
        }
    }

    /// Kills the servers.
    pub(crate) fn kill(&mut self) {
        for mut watchdog in self.watchdogs.drain(..) {
            drop(watchdog.stdin.take());
            let _ended = watchdog.wait();
        }
    }

    pub(crate) fn log(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("log-{number}"))
    }

    /// Creates an organisation and its streams.
    pub(crate) async fn organisation(&self, name: &str) -> Organisation {
        let name = name.parse().unwrap();
        let organisation =
            self.folder.add(&name, &StreamSettings::default(), Timestamp::now()).unwrap();
        let options =
            brigade_nats::NatsOptions { servers: self.urls.clone(), ..Default::default() };
        // Retry, because the servers might not be listening yet.
        for _ in 0..100 {
            let pushed = brigade_nats::org::push(&self.folder, &options, Timestamp::now()).await;
            if pushed.is_ok_and(|answers| answers.len() >= self.urls.len()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let creds = Some(self.folder.admin(&organisation.name));
        let options =
            brigade_nats::NatsOptions { creds, settings: organisation.settings(), ..options };
        brigade_nats::NatsStore::connect(options).await.unwrap();
        organisation
    }

    /// Issues credentials for members of a team.
    pub(crate) fn grant(
        &self,
        organisation: &mut Organisation,
        team: &str,
        members: &[&str],
        (role, answers): (CredentialRole, bool),
    ) -> IssuedSeat {
        let members = members.iter().map(|name| name.parse().unwrap()).collect();
        let team = team.parse().unwrap();
        let granted = Granted { team, members, role, answers, until: None, out: None, shard: None };
        self.folder.grant(organisation, granted, Timestamp::now()).unwrap()
    }

    pub(crate) async fn raw(&self, creds: &Path) -> RawClient {
        RawClient::connect(&self.urls, &std::fs::read_to_string(creds).unwrap()).await.unwrap()
    }
}

impl Drop for OrgServers {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A raw client that collects the server's errors and events.
pub(crate) struct RawClient {
    pub(crate) client: Client,
    events: Arc<Mutex<Vec<String>>>,
}

impl RawClient {
    pub(crate) async fn connect(
        urls: &[String],
        creds: &str,
    ) -> Result<Self, async_nats::ConnectError> {
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&events);
        let prefix = Identity::parse(creds).unwrap().inbox_prefix;
        let client = ConnectOptions::with_credentials(creds)
            .unwrap()
            .custom_inbox_prefix(prefix)
            .connection_timeout(Duration::from_secs(3))
            .max_reconnects(3)
            .event_callback(move |event| {
                let events = match event {
                    Event::ServerError(error) => error.to_string(),
                    event => format!("event: {event}"),
                };
                sink.lock().unwrap().push(events);
                std::future::ready(())
            })
            .connect(urls)
            .await?;
        Ok(Self { client, events })
    }

    /// Returns the errors and events that were received so far, and clears the list.
    pub(crate) fn take_events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// Waits until an error or event contains this lower-case text. Returns `false` on timeout.
    pub(crate) async fn sees_event(&self, text: &str, timeout: Duration) -> bool {
        let end = tokio::time::Instant::now() + timeout;
        while tokio::time::Instant::now() < end {
            if self.events.lock().unwrap().iter().any(|event| event.to_lowercase().contains(text)) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }
}

/// Finds free ports for clients. For each of them, the port for other servers (2000 higher) is also free.
fn free_ports(count: usize) -> Vec<u16> {
    let mut found = Vec::new();
    while found.len() < count {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let route = port.checked_add(2000).map(|route| TcpListener::bind(("127.0.0.1", route)));
        if matches!(route, Some(Ok(_))) {
            found.push((port, listener, route));
        }
    }
    found.iter().map(|(port, ..)| *port).collect()
}

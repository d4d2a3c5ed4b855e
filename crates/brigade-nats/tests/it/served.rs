//! Servers started from the configuration that an operator's folder has, and raw clients of them: what
//! somebody would use who does not mean well.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use brigade_nats::Identity;
use brigade_nats::identity::Role;
use brigade_nats::options::Settings;
use brigade_nats::org::{Cluster, Folder, Granted, Organisation, Seat};
use jiff::Timestamp;
use tempfile::TempDir;

/// Ends the server when this test does, however it ends: then the pipe is closed.
const KEEPER: &str =
    r#""$0" -c "$1" >>"$2" 2>&1 & pid=$!; echo $pid; read -r word; kill -9 $pid; wait $pid"#;

/// An operator's folder, and its servers running.
pub(crate) struct Served {
    pub(crate) folder: Folder,
    pub(crate) urls: Vec<String>,
    keepers: Vec<Child>,
    dir: TempDir,
}

impl Served {
    /// So many servers.
    pub(crate) fn start(nodes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let nodes = free_ports(nodes).into_iter();
        let nodes = nodes.map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
        let cluster = Cluster { nodes, listen: None, tls: None };
        let urls = cluster.urls();
        let folder =
            Folder::init(&dir.path().join("operator"), Some(cluster), Timestamp::now()).unwrap();
        let mut served = Self { folder, urls, keepers: Vec::new(), dir };
        served.launch();
        served
    }

    /// Starts the servers, with the data they had.
    pub(crate) fn launch(&mut self) {
        let program =
            std::env::var_os("BRIGADE_NATS_SERVER").unwrap_or_else(|| "nats-server".into());
        for number in 1..=self.urls.len() {
            let mut keeper = Command::new("sh")
                .args(["-c", KEEPER])
                .arg(&program)
                .args([self.folder.server(number), self.log(number)])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut pid = String::new();
            BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut pid).unwrap();
            self.keepers.push(keeper);
        }
    }

    /// Kills the servers.
    pub(crate) fn kill(&mut self) {
        for mut keeper in self.keepers.drain(..) {
            drop(keeper.stdin.take());
            let _ended = keeper.wait();
        }
    }

    pub(crate) fn log(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("log-{number}"))
    }

    /// An organisation with its streams.
    pub(crate) async fn organisation(&self, name: &str) -> Organisation {
        let name = name.parse().unwrap();
        let its = self.folder.add(&name, &Settings::default(), Timestamp::now()).unwrap();
        let options = brigade_nats::Options { servers: self.urls.clone(), ..Default::default() };
        // The servers may not listen yet.
        for _ in 0..100 {
            let pushed = brigade_nats::org::push(&self.folder, &options, Timestamp::now()).await;
            if pushed.is_ok_and(|told| told.len() >= self.urls.len()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let creds = Some(self.folder.admin(&its.name));
        let options = brigade_nats::Options { creds, settings: its.settings(), ..options };
        brigade_nats::NatsStore::connect(options).await.unwrap();
        its
    }

    /// Gives somebody credentials.
    pub(crate) fn grant(
        &self,
        organisation: &mut Organisation,
        team: &str,
        members: &[&str],
        (role, answers): (Role, bool),
    ) -> Seat {
        let members = members.iter().map(|name| name.parse().unwrap()).collect();
        let team = team.parse().unwrap();
        let granted = Granted { team, members, role, answers, until: None, out: None };
        self.folder.grant(organisation, granted, Timestamp::now()).unwrap()
    }

    pub(crate) async fn raw(&self, creds: &Path) -> Raw {
        Raw::connect(&self.urls, &std::fs::read_to_string(creds).unwrap()).await.unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A raw client, and what the server told it that it did not ask for.
pub(crate) struct Raw {
    pub(crate) client: Client,
    told: Arc<Mutex<Vec<String>>>,
}

impl Raw {
    pub(crate) async fn connect(
        urls: &[String],
        creds: &str,
    ) -> Result<Self, async_nats::ConnectError> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let prefix = Identity::parse(creds).unwrap().inbox_prefix;
        let client = ConnectOptions::with_credentials(creds)
            .unwrap()
            .custom_inbox_prefix(prefix)
            .connection_timeout(Duration::from_secs(3))
            .max_reconnects(3)
            .event_callback(move |event| {
                let told = match event {
                    Event::ServerError(error) => error.to_string(),
                    event => format!("event: {event}"),
                };
                tell.lock().unwrap().push(told);
                std::future::ready(())
            })
            .connect(urls)
            .await?;
        Ok(Self { client, told })
    }

    /// What the server told since the last time.
    pub(crate) fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap())
    }

    /// Waits until the server has told something that has these words in it.
    pub(crate) async fn hears(&self, words: &str, patience: Duration) -> bool {
        let end = tokio::time::Instant::now() + patience;
        while tokio::time::Instant::now() < end {
            if self.told.lock().unwrap().iter().any(|its| its.to_lowercase().contains(words)) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }
}

/// Ports that are free now, and with them those for the routes.
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

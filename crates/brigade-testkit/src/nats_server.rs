//! Starts real NATS servers for tests, alone or as a cluster, on free loopback ports and in a temporary directory.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The environment variable that holds the path of the server program. The default is `nats-server` on the `PATH`.
pub const PROGRAM: &str = "BRIGADE_NATS_SERVER";

/// The oldest minor version of NATS 2 that the NATS store supports.
const MINOR: u32 = 15;

/// How long to wait until the servers have started and elected a leader.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A shell script that starts the server, and kills it when standard input is closed. Standard
/// input is a pipe that the operating system closes when the test process ends or is killed.
const WRAPPER: &str =
    r#""$0" -c "$1" >>"$2" 2>&1 & pid=$!; echo $pid; read -r word; kill -9 $pid; wait $pid"#;

/// Whether the server program is installed and recent enough.
pub(crate) fn is_installed() -> bool {
    let Ok(output) = Command::new(program()).arg("--version").output() else { return false };
    let version = String::from_utf8_lossy(&output.stdout);
    let minor = version.split_once("v2.").and_then(|(_, rest)| rest.split('.').next());
    minor.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor >= MINOR)
}

fn program() -> OsString {
    env::var_os(PROGRAM).unwrap_or_else(|| "nats-server".into())
}

/// NATS servers that run until this value is dropped.
#[derive(Debug)]
pub struct TestServers {
    /// The addresses of the servers: `nats://127.0.0.1:PORT`.
    pub urls: Vec<String>,
    nodes: Vec<ServerNode>,
    dir: TempDir,
}

#[derive(Debug)]
struct ServerNode {
    port: u16,
    monitor: u16,
    route: u16,
    running: Option<ServerProcess>,
}

/// One server, which is killed when this value is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    wrapper: Child,
    pid: u32,
}

impl ServerProcess {
    /// Starts a server with this configuration file, and appends its output to `log`. Does not wait until the
    /// server is ready.
    pub fn start(config: &Path, log: &Path) -> Self {
        assert!(
            is_installed(),
            "no nats-server 2.15 or later: install it on the PATH, or set {PROGRAM} to its path"
        );
        let mut wrapper = Command::new("sh")
            .arg("-c")
            .arg(WRAPPER)
            .arg(program())
            .args([config, log])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(wrapper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { wrapper, pid: line.trim().parse().unwrap() }
    }
}

impl TestServers {
    /// Starts one server.
    pub fn single() -> Self {
        Self::with(1, "")
    }

    /// Starts a cluster with this number of servers.
    pub fn cluster(nodes: usize) -> Self {
        Self::with(nodes, "")
    }

    /// Starts servers with additional lines in their configuration.
    pub fn with(nodes: usize, more: &str) -> Self {
        loop {
            let engine = Self::start_all(nodes, more);
            if engine.wait_for_start() {
                return engine;
            }
        }
    }

    fn start_all(nodes: usize, more: &str) -> Self {
        let ports = free_ports(nodes * 3);
        let node = |ports: &[u16]| ServerNode {
            port: ports[0],
            monitor: ports[1],
            route: ports[2],
            running: None,
        };
        let nodes: Vec<ServerNode> = ports.chunks(3).map(node).collect();
        let urls = nodes.iter().map(|node| format!("nats://127.0.0.1:{}", node.port)).collect();
        let mut engine = Self { urls, nodes, dir: tempfile::tempdir().unwrap() };
        for index in 0..engine.nodes.len() {
            fs::create_dir(engine.folder(index)).unwrap();
            fs::write(engine.folder(index).join("server.conf"), engine.config(index, more))
                .unwrap();
        }
        for index in 0..engine.nodes.len() {
            engine.launch(index);
        }
        engine
    }

    /// Waits until the servers are ready. Returns false if another process has taken one of the ports.
    fn wait_for_start(&self) -> bool {
        let since = Instant::now();
        while !self.is_ready() {
            if self.logs().contains("address already in use") {
                return false;
            }
            assert!(since.elapsed() < TIMEOUT, "the NATS servers did not start:\n{}", self.logs());
            thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// Returns the addresses of all servers, in the form that `--store` accepts.
    pub fn store(&self) -> String {
        self.urls.join(",")
    }

    /// Returns the directory that contains a server's configuration (`server.conf`), data (`data`) and log
    /// (`log`).
    pub fn folder(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("n{index}"))
    }

    /// Returns the process id of a running server.
    pub fn pid(&self, index: usize) -> u32 {
        self.nodes[index].running.as_ref().expect("the server should be running").pid
    }

    /// Returns the HTTP monitoring address of a server: `127.0.0.1:PORT`.
    pub fn monitor(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.nodes[index].monitor)
    }

    /// Returns the index of the cluster leader, if all running servers agree on the leader.
    pub fn leader(&self) -> Option<usize> {
        let running = self.nodes.iter().filter(|node| node.running.is_some());
        let leaders: Vec<String> = running.filter_map(|node| cluster_state(node)?.leader).collect();
        let first = leaders.first()?;
        let agreed = leaders.iter().all(|name| name == first);
        agreed.then(|| first.strip_prefix('n')?.parse().ok()).flatten()
    }

    /// Sends a request to the first server, without credentials, and returns the answer.
    pub fn request(&self, subject: &str, payload: &str) -> String {
        let stream = TcpStream::connect(("127.0.0.1", self.nodes[0].port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let len = payload.len();
        write!(
            &stream,
            "CONNECT {{\"verbose\":false}}\r\nSUB _INBOX.test 1\r\n\
             PUB {subject} _INBOX.test {len}\r\n{payload}\r\n"
        )
        .unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let _answer = lines.find(|line| line.starts_with("MSG _INBOX.test")).unwrap();
        lines.next().unwrap()
    }

    /// Kills a server with SIGKILL.
    pub fn stop(&mut self, index: usize) {
        drop(self.nodes[index].running.take());
    }

    /// Restarts a stopped server with its existing data. Does not wait until the server is ready.
    pub fn start(&mut self, index: usize) {
        if self.nodes[index].running.is_none() {
            self.launch(index);
        }
    }

    /// Waits until all running servers are healthy and agree on a leader.
    pub fn wait_ready(&self) {
        let since = Instant::now();
        while !self.is_ready() {
            if since.elapsed() > TIMEOUT {
                panic!("the NATS servers are not ready after {TIMEOUT:?}:\n{}", self.logs());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_ready(&self) -> bool {
        let running = || self.nodes.iter().filter(|node| node.running.is_some());
        let healthy = running().all(|node| {
            http_get(node, "/healthz").is_ok_and(|answer| answer.contains(r#""status":"ok""#))
        });
        if !healthy || self.nodes.len() == 1 {
            return healthy;
        }
        let Some(leader) = self.leader() else { return false };
        let peers = running().count() - 1;
        cluster_state(&self.nodes[leader]).is_some_and(|state| state.current >= peers)
    }

    fn launch(&mut self, index: usize) {
        let folder = self.folder(index);
        let process = ServerProcess::start(&folder.join("server.conf"), &folder.join("log"));
        self.nodes[index].running = Some(process);
    }

    fn config(&self, index: usize, more: &str) -> String {
        let ServerNode { port, monitor, route, .. } = &self.nodes[index];
        let data = self.folder(index).join("data");
        let mut text = format!(
            "listen: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\nserver_name: n{index}\n\
             max_payload: 8MB\n\
             jetstream {{ store_dir: {data:?}, sync_interval: always }}\n{more}\n"
        );
        if self.nodes.len() > 1 {
            let route_of = |node: &ServerNode| format!("nats://127.0.0.1:{}", node.route);
            let routes: Vec<String> = self.nodes.iter().map(route_of).collect();
            text += &format!(
                "cluster {{ name: test, listen: 127.0.0.1:{route}, routes: [{}] }}\n",
                routes.join(", ")
            );
        }
        text
    }

    fn logs(&self) -> String {
        let read = |index| fs::read_to_string(self.folder(index).join("log")).unwrap_or_default();
        (0..self.nodes.len()).map(read).collect()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The shell script kills the server when this pipe is closed, and then exits.
        drop(self.wrapper.stdin.take());
        let _exit_status = self.wrapper.wait();
    }
}

/// The state of the cluster, as one server reports it.
struct ClusterState {
    leader: Option<String>,
    current: usize,
}

fn cluster_state(node: &ServerNode) -> Option<ClusterState> {
    let answer = http_get(node, "/jsz").ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let meta = body.get("meta_cluster")?;
    let leader = meta.get("leader").and_then(|name| name.as_str()).map(str::to_owned);
    let peers = meta.get("replicas").and_then(|peers| peers.as_array());
    let current = |peer: &&serde_json::Value| peer["current"] == true;
    Some(ClusterState {
        leader,
        current: peers.map_or(0, |peers| peers.iter().filter(current).count()),
    })
}

fn http_get(node: &ServerNode, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", node.monitor))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Returns different free ports. Operating systems may take a port for an outgoing connection at
/// any time. Therefore all ports are below the range that is used for outgoing connections.
fn free_ports(count: usize) -> Vec<u16> {
    let mut listeners = Vec::new();
    while listeners.len() < count {
        let port = 10_000 + u16::try_from(uuid::Uuid::new_v4().as_u128() % 20_000).unwrap();
        listeners.extend(TcpListener::bind(("127.0.0.1", port)));
    }
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

//! A real NATS server for a test, or a cluster of them: on free ports of the loopback, in a folder that
//! is thrown away.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The variable that names the server's program. Without it, the one on the path.
pub const PROGRAM: &str = "BRIGADE_NATS_SERVER";

/// How long a server, or a cluster's election, may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the server and ends it, at the latest when whoever started this is gone: then the pipe it
/// reads from is closed, however that process ended.
const KEEPER: &str =
    r#""$0" -c "$1" >>"$2" 2>&1 & pid=$!; echo $pid; read -r word; kill -9 $pid; wait $pid"#;

/// Servers that run until this is dropped.
#[derive(Debug)]
pub struct Engine {
    /// Where clients find the servers: `nats://127.0.0.1:PORT`, one for each.
    pub urls: Vec<String>,
    nodes: Vec<Node>,
    dir: TempDir,
}

#[derive(Debug)]
struct Node {
    port: u16,
    monitor: u16,
    route: u16,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    keeper: Child,
    pid: u32,
}

impl Engine {
    /// One server.
    pub fn single() -> Self {
        Self::with(1, "")
    }

    /// A cluster of so many.
    pub fn cluster(nodes: usize) -> Self {
        Self::with(nodes, "")
    }

    /// So many servers, with more lines in the configuration of each.
    pub fn with(nodes: usize, more: &str) -> Self {
        loop {
            let engine = Self::launched(nodes, more);
            if engine.becomes_ready() {
                return engine;
            }
        }
    }

    fn launched(nodes: usize, more: &str) -> Self {
        let ports = free_ports(nodes * 3);
        let node = |ports: &[u16]| Node {
            port: ports[0],
            monitor: ports[1],
            route: ports[2],
            running: None,
        };
        let nodes: Vec<Node> = ports.chunks(3).map(node).collect();
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

    /// Waits until it is ready; false if somebody else has taken one of its ports meanwhile.
    fn becomes_ready(&self) -> bool {
        let since = Instant::now();
        while !self.is_ready() {
            if self.logs().contains("address already in use") {
                return false;
            }
            assert!(since.elapsed() < PATIENCE, "not ready in time:\n{}", self.logs());
            thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// The addresses as `--store` takes them.
    pub fn store(&self) -> String {
        self.urls.join(",")
    }

    /// Where a server keeps its configuration (`server.conf`), its data (`data`) and its log.
    pub fn folder(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("n{index}"))
    }

    /// The process of a server that runs.
    pub fn pid(&self, index: usize) -> u32 {
        self.nodes[index].running.as_ref().expect("a server that runs").pid
    }

    /// Where the servers tell how they are: `127.0.0.1:PORT`, over HTTP.
    pub fn monitor(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.nodes[index].monitor)
    }

    /// Which server leads the cluster, as the servers that run tell it.
    pub fn leader(&self) -> Option<usize> {
        let running = self.nodes.iter().filter(|node| node.running.is_some());
        let told: Vec<String> = running.filter_map(|node| meta(node)?.leader).collect();
        let first = told.first()?;
        let agreed = told.iter().all(|name| name == first);
        agreed.then(|| first.strip_prefix('n')?.parse().ok()).flatten()
    }

    /// Asks the first server something, as a client without credentials does, and gives its answer.
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

    /// Kills a server, as `kill -9` does.
    pub fn stop(&mut self, index: usize) {
        drop(self.nodes[index].running.take());
    }

    /// Starts a server that was stopped, with the data it had. Does not wait for it.
    pub fn start(&mut self, index: usize) {
        if self.nodes[index].running.is_none() {
            self.launch(index);
        }
    }

    /// Waits until all servers that run are well, and agree who leads.
    pub fn wait_ready(&self) {
        let since = Instant::now();
        while !self.is_ready() {
            if since.elapsed() > PATIENCE {
                panic!("the engine is not ready after {PATIENCE:?}:\n{}", self.logs());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_ready(&self) -> bool {
        let running = || self.nodes.iter().filter(|node| node.running.is_some());
        let well = running().all(|node| {
            ask(node, "/healthz").is_ok_and(|answer| answer.contains(r#""status":"ok""#))
        });
        if !well || self.nodes.len() == 1 {
            return well;
        }
        let Some(leader) = self.leader() else { return false };
        let peers = running().count() - 1;
        meta(&self.nodes[leader]).is_some_and(|meta| meta.current >= peers)
    }

    fn launch(&mut self, index: usize) {
        let folder = self.folder(index);
        let program = env::var_os(PROGRAM).unwrap_or_else(|| "nats-server".into());
        let found = Command::new(&program).arg("--version").stdout(Stdio::null()).status();
        assert!(
            found.is_ok_and(|status| status.success()),
            "these tests need nats-server 2.15: put it on the path, or its path into {PROGRAM}"
        );
        let mut keeper = Command::new("sh")
            .arg("-c")
            .arg(KEEPER)
            .arg(program)
            .args([folder.join("server.conf"), folder.join("log")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.nodes[index].running = Some(Running { keeper, pid: line.trim().parse().unwrap() });
    }

    fn config(&self, index: usize, more: &str) -> String {
        let Node { port, monitor, route, .. } = &self.nodes[index];
        let data = self.folder(index).join("data");
        let mut text = format!(
            "listen: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\nserver_name: n{index}\n\
             max_payload: 8MB\n\
             jetstream {{ store_dir: {data:?}, sync_interval: always }}\n{more}\n"
        );
        if self.nodes.len() > 1 {
            let route_of = |node: &Node| format!("nats://127.0.0.1:{}", node.route);
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

impl Drop for Running {
    fn drop(&mut self) {
        // The keeper ends the server when this pipe is closed, and then itself.
        drop(self.keeper.stdin.take());
        let _ended = self.keeper.wait();
    }
}

/// What a server knows of the cluster's leadership.
struct Meta {
    leader: Option<String>,
    current: usize,
}

fn meta(node: &Node) -> Option<Meta> {
    let answer = ask(node, "/jsz").ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let meta = body.get("meta_cluster")?;
    let leader = meta.get("leader").and_then(|name| name.as_str()).map(str::to_owned);
    let peers = meta.get("replicas").and_then(|peers| peers.as_array());
    let current = |peer: &&serde_json::Value| peer["current"] == true;
    Some(Meta { leader, current: peers.map_or(0, |peers| peers.iter().filter(current).count()) })
}

fn ask(node: &Node, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", node.monitor))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Ports that are free now, all different. Not of those that systems give to clients, who would take
/// them again at once.
fn free_ports(count: usize) -> Vec<u16> {
    let mut listeners = Vec::new();
    while listeners.len() < count {
        let port = 10_000 + u16::try_from(uuid::Uuid::new_v4().as_u128() % 20_000).unwrap();
        listeners.extend(TcpListener::bind(("127.0.0.1", port)));
    }
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

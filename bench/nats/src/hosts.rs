//! Simulates four hosts: three with a server each, and one for the clients. Each host is a network namespace that
//! is connected to a bridge and can be unplugged.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tempfile::TempDir;

/// The number of servers.
pub(crate) const SERVERS: usize = 3;
/// The number of the host on which the clients run.
pub(crate) const CLIENTS: usize = SERVERS;

/// A shell script that deletes the namespaces when its standard input is closed. The input is also closed if this
/// process is killed.
const KEEPER: &str = r#"read -r word; for name in "$@"; do ip netns del "$name"; done"#;
/// A shell script that starts a server on a host, and kills the server when the script's standard input is closed.
/// `ip netns exec` replaces itself with the program, so `$pid` is the server's own process id.
const SERVER: &str = r#"ip netns exec "$0" "$1" -c "$2" >>"$3" 2>&1 & pid=$!; read -r word; kill -9 $pid; wait $pid"#;

/// The hosts and their servers, removed on drop.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The prefix of the namespaces' names, unique to this process.
    tag: String,
    dir: TempDir,
    servers: Vec<Option<Child>>,
    keeper: Child,
}

impl Hosts {
    /// Creates the network and starts the servers. Moves the calling thread to the host of the clients.
    /// Threads that the calling thread starts later also run there.
    pub(crate) fn start() -> Self {
        let tag = format!("bp{}", std::process::id());
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..=CLIENTS).map(|host| format!("{tag}-{host}")).collect();
        let switch = format!("{tag}-switch");
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "keeper", &switch]).args(&names);
        let keeper = keeper.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut hosts = Self { tag, dir, servers: Vec::new(), keeper };
        ip(&format!("netns add {switch}"));
        ip(&format!("-n {switch} link add switch type bridge"));
        ip(&format!("-n {switch} link set switch up"));
        for (host, name) in names.iter().enumerate() {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
            ip(&format!("-n {switch} link add port{host} type veth peer name eth0 netns {name}"));
            ip(&format!("-n {name} addr add {}/24 dev eth0", address(host)));
            ip(&format!("-n {name} link set eth0 up"));
            ip(&format!("-n {switch} link set port{host} up"));
            hosts.plug(host);
        }
        for server in 0..SERVERS {
            fs::create_dir(hosts.folder(server)).unwrap();
            let conf = hosts.folder(server).join("server.conf");
            fs::write(conf, hosts.config(server)).unwrap();
            hosts.servers.push(None);
            hosts.launch(server);
        }
        let here = fs::File::open(format!("/var/run/netns/{}", names[CLIENTS])).unwrap();
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(here.as_fd(), kind)
            .expect("this process may enter a network namespace");
        hosts
    }

    /// Returns the addresses of the servers.
    pub(crate) fn urls() -> Vec<String> {
        (0..SERVERS).map(|server| format!("nats://{}:4222", address(server))).collect()
    }

    fn folder(&self, server: usize) -> PathBuf {
        self.dir.path().join(format!("n{server}"))
    }

    fn config(&self, server: usize) -> String {
        let data = self.folder(server).join("data");
        let here = address(server);
        let routes: Vec<String> =
            (0..SERVERS).map(|other| format!("nats://{}:6222", address(other))).collect();
        format!(
            "listen: \"{here}:4222\"\nserver_name: n{server}\nmax_payload: 8MB\n\
             jetstream {{ store_dir: {data:?}, sync_interval: always }}\n\
             cluster {{ name: bench, listen: \"{here}:6222\", routes: [{}] }}\n",
            routes.join(", ")
        )
    }

    /// Starts a server on its host.
    pub(crate) fn launch(&mut self, server: usize) {
        let program = std::env::var(brigade_testkit::nats_server::PROGRAM);
        let program = program.unwrap_or_else(|_| "nats-server".into());
        let folder = self.folder(server);
        let child = Command::new("sh")
            .args(["-c", SERVER, &format!("{}-{server}", self.tag), &program])
            .args([folder.join("server.conf"), folder.join("log")])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.servers[server] = Some(child);
    }

    /// Kills a server with SIGKILL.
    pub(crate) fn kill(&mut self, server: usize) {
        if let Some(mut child) = self.servers[server].take() {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    /// Deletes the data of a killed server.
    pub(crate) fn wipe(&self, server: usize) {
        fs::remove_dir_all(self.folder(server).join("data")).unwrap();
    }

    /// Cuts a host off from the network: packets to and from it are lost without an error.
    pub(crate) fn unplug(&self, host: usize) {
        ip(&format!("-n {}-switch link set port{host} nomaster", self.tag));
    }

    /// Connects a host to the network again.
    pub(crate) fn plug(&self, host: usize) {
        ip(&format!("-n {}-switch link set port{host} master switch", self.tag));
    }

    /// Returns the last lines of a server's log.
    pub(crate) fn log(&self, server: usize) -> String {
        let log = fs::read_to_string(self.folder(server).join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for server in 0..self.servers.len() {
            self.kill(server);
        }
        let mut stdin = self.keeper.stdin.take().unwrap();
        let _gone = stdin.write_all(b"done\n");
        drop(stdin);
        let _ended = self.keeper.wait();
    }
}

fn address(host: usize) -> String {
    format!("10.213.0.{}", host + 1)
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status();
    let done = done.expect("the program `ip` is installed (package iproute2)");
    assert!(done.success(), "ip {arguments}: this benchmark needs root");
}

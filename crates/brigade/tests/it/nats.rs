//! Tests of all commands with teams in a NATS store, on a real server.

mod approvals;
mod away;
mod board;
mod connect;
mod credentials;
mod doctor;
mod frozen;
mod hosts;
mod link;
mod link_service;
mod mail;
mod mcp;
mod operation;
mod org;
mod refusals;
mod seats;
mod stores;
mod teams;
mod tls;
mod waits;
mod walk;

use std::ops::Deref;
use std::sync::Arc;

use brigade_testkit::nats_server::TestServers;

use crate::env::{CliEnv, FAKE_AGENT};
use crate::process::wait_until;

/// A host whose teams are stored on a NATS server. Dropping the host ends its members.
struct NatsHost {
    cli: CliEnv,
    engine: Arc<TestServers>,
}

impl Deref for NatsHost {
    type Target = CliEnv;

    fn deref(&self) -> &CliEnv {
        &self.cli
    }
}

impl Drop for NatsHost {
    fn drop(&mut self) {
        let _none_up = self.cli.run(&["down", "--now"]);
    }
}

impl NatsHost {
    /// Creates a host `a` with its own NATS server.
    fn new() -> Self {
        Self::on(&Arc::new(TestServers::single()), "a")
    }

    /// Creates a host with this name that uses the given NATS server.
    fn on(engine: &Arc<TestServers>, host: &str) -> Self {
        let mut cli = CliEnv::new();
        cli.variables = vec![("BRIGADE_STORE", engine.store()), ("BRIGADE_HOST", host.to_owned())];
        Self { cli, engine: Arc::clone(engine) }
    }

    /// Creates another host that uses the same NATS server.
    fn another(&self, host: &str) -> Self {
        Self::on(&self.engine, host)
    }

    /// Creates a host `a` with a team `demo` of `team-lead`, `alice` and `bob`.
    fn with_team() -> Self {
        let client = Self::new();
        client.create_team();
        client
    }

    /// Writes a `brigade.toml` with these members, each a scripted agent in its own folder.
    fn write_file(&self, members: &[&str], more: &str) {
        let mut file =
            format!("team = \"demo\"\n{more}\n[defaults]\nagent = \"acp:{FAKE_AGENT}\"\n");
        for name in members {
            std::fs::create_dir_all(self.path(&format!("work/{name}"))).unwrap();
            file += &format!("[members.{name}]\ndir = \"{name}\"\nprompt = \"hello {name}\"\n");
        }
        self.write("work/brigade.toml", &file);
    }

    /// Returns everything that a member's agent received.
    fn received(&self, dir: &str) -> String {
        std::fs::read_to_string(self.path(&format!("work/{dir}/heard"))).unwrap_or_default()
    }

    /// Returns what `brigade status` on this host reports about a member.
    fn member(&self, name: &str) -> serde_json::Value {
        let status = self.json(&["status", "--team", "demo"]);
        let members = status[0]["members"].as_array().unwrap();
        members.iter().find(|member| member["name"] == name).cloned().unwrap_or_default()
    }
}

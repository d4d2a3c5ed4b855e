//! Teams that live in an engine: every command, on a real server.

mod approvals;
mod board;
mod doctor;
mod hosts;
mod link;
mod mail;
mod mcp;
mod operation;
mod org;
mod refusals;
mod seats;
mod teams;
mod tls;

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_testkit::nats_server::Engine;

use crate::env::House;

const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-agent.sh");

/// A host whose teams live in an engine. Members that run on it are ended with it.
struct Far {
    house: House,
    engine: Arc<Engine>,
}

impl Deref for Far {
    type Target = House;

    fn deref(&self) -> &House {
        &self.house
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _none_up = self.house.run(&["down", "--now"]);
    }
}

impl Far {
    /// A host `a` and an engine of its own.
    fn new() -> Self {
        Self::on(&Arc::new(Engine::single()), "a")
    }

    /// A host of this name on an engine.
    fn on(engine: &Arc<Engine>, host: &str) -> Self {
        let mut house = House::new();
        house.variables =
            vec![("BRIGADE_STORE", engine.store()), ("BRIGADE_HOST", host.to_owned())];
        Self { house, engine: Arc::clone(engine) }
    }

    /// The same engine from another host.
    fn another(&self, host: &str) -> Self {
        Self::on(&self.engine, host)
    }

    /// With a team `demo` of `team-lead`, `alice` and `bob`.
    fn with_team() -> Self {
        let far = Self::new();
        far.done(&["team", "create", "demo", "--description", "Ship the parser"]);
        far.done(&["team", "join", "alice"]);
        far.done(&["team", "join", "bob", "--agent-type", "codex"]);
        far
    }

    /// With a `brigade.toml` of these members, each a scripted agent in a folder of its own.
    fn write_file(&self, members: &[&str], more: &str) {
        let mut file = format!("team = \"demo\"\n{more}\n[defaults]\nagent = \"acp:{FAKE}\"\n");
        for name in members {
            std::fs::create_dir_all(self.path(&format!("work/{name}"))).unwrap();
            file += &format!("[members.{name}]\ndir = \"{name}\"\nprompt = \"hello {name}\"\n");
        }
        self.write("work/brigade.toml", &file);
    }

    /// What a member's agent was told.
    fn heard(&self, dir: &str) -> String {
        std::fs::read_to_string(self.path(&format!("work/{dir}/heard"))).unwrap_or_default()
    }

    /// How a member is, as seen from here.
    fn member(&self, name: &str) -> serde_json::Value {
        let status = self.json(&["status", "--team", "demo"]);
        let members = status[0]["members"].as_array().unwrap();
        members.iter().find(|member| member["name"] == name).cloned().unwrap_or_default()
    }
}

/// Waits for something that comes soon.
fn until(what: &str, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

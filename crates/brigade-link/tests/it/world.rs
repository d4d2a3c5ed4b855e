//! Test hosts with their files, the shared store, and simulated native members.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brigade_core::clock::{Clock, SystemClock};
use brigade_core::roster::{self, MemberPlan};
use brigade_core::seat::Seat;
use brigade_core::signature::Signer;
use brigade_core::store::memory::MemoryStore;
use brigade_core::store::{MailStore, Store};
use brigade_core::wire::inbox::with_message;
use brigade_files::FileStore;
use brigade_link::{Link, LinkConfig, LinkEvent, LinkStateStore, LinkTiming};
use brigade_testkit::env::{member, member_plan, team, team_plan};
use brigade_wire::generation::Generation;
use brigade_wire::inbox::{self, Inbox};
use brigade_wire::message::{GenerationFields, NewMessage};
use brigade_wire::name::MemberName;
use brigade_wire::task::{NewTask, Status, Task, TaskChange};
use tempfile::TempDir;
use uuid::Uuid;

use brigade_testkit::files::options;
use brigade_testkit::flaky::FlakyStore;

/// Stores a link's state. A test can clear it.
#[derive(Debug, Default)]
pub(crate) struct LosableNotebook(Mutex<Option<Vec<u8>>>);

impl LosableNotebook {
    pub(crate) fn lose(&self) {
        *self.0.lock().unwrap() = None;
    }
}

impl LinkStateStore for LosableNotebook {
    fn read(&self) -> std::io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn write(&self, text: &[u8]) -> std::io::Result<()> {
        *self.0.lock().unwrap() = Some(text.to_vec());
        Ok(())
    }
}

/// A host with its files and native members.
pub(crate) struct TestHost {
    pub(crate) name: &'static str,
    home: TempDir,
    pub(crate) store: Arc<FileStore>,
    pub(crate) notebook: Arc<LosableNotebook>,
    pub(crate) flaky: Arc<FlakyStore>,
    pub(crate) events: Arc<Mutex<Vec<LinkEvent>>>,
    pub(crate) signer: Option<Arc<dyn Signer>>,
    pub(crate) speaks_for: BTreeSet<MemberName>,
    /// The texts that each native member has read.
    pub(crate) read_texts: Mutex<BTreeMap<String, Vec<String>>>,
}

impl TestHost {
    fn new(name: &'static str, shared_store: &Arc<dyn Store>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Arc::new(FileStore::new(options(&home), Arc::new(SystemClock)));
        let flaky = Arc::new(FlakyStore::new(Arc::clone(shared_store)));
        let (notebook, events) = (Arc::default(), Arc::default());
        let (signer, speaks_for, read_texts) = (None, BTreeSet::new(), Mutex::default());
        Self { name, home, store, notebook, flaky, events, signer, speaks_for, read_texts }
    }

    /// Returns a new link, as after a restart.
    pub(crate) fn link(&self) -> Link {
        let events = Arc::clone(&self.events);
        let retry = Duration::from_millis(20);
        let pace = LinkTiming {
            sweep: Duration::from_secs(2),
            // This timeout must be long enough for a busy computer, but one test waits until it expires.
            call_timeout: Duration::from_secs(4),
            retry,
            connection_check: Duration::from_millis(100),
            end_grace: Duration::from_millis(600),
            stop_wait: Duration::from_secs(2),
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        // Open a separate store, as another process would, so that nothing is cached in memory.
        let local = Arc::new(FileStore::new(options(&self.home), Arc::clone(&clock)));
        Link::new(LinkConfig {
            local,
            shared: Arc::clone(&self.flaky) as _,
            clock,
            host: self.name.into(),
            team: team(),
            acts_for: self.speaks_for.clone(),
            signer: self.signer.clone(),
            state_store: Arc::clone(&self.notebook) as _,
            on_event: Arc::new(move |event: &LinkEvent| events.lock().unwrap().push(event.clone())),
            timing: pace,
        })
        .unwrap()
    }

    /// Synchronizes the host with a new link.
    pub(crate) async fn sync(&self) {
        self.link().once().await.unwrap();
    }

    pub(crate) fn seat(&self, name: &str) -> Seat {
        Seat::new(Arc::clone(&self.store) as _, team(), member(name))
    }

    /// Creates the team on this host, with a native lead.
    pub(crate) async fn lead(&self) {
        roster::create(&self.seat("team-lead"), team_plan()).await.unwrap();
    }

    /// Adds a native member on this host.
    pub(crate) async fn join(&self, name: &str) {
        let plan = MemberPlan { backend_type: "tmux", ..member_plan() };
        roster::join(&self.seat("team-lead"), &member(name), plan).await.unwrap();
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home.path().join("claude").join(path)
    }

    /// Edits a file while holding Claude Code's lock.
    fn locked(&self, path: &str, edit: impl FnOnce(Vec<u8>) -> Vec<u8>) {
        let path = self.path(path);
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        while fs::create_dir(&lock).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let bytes = fs::read(&path).unwrap_or_else(|_| inbox::EMPTY.to_vec());
        fs::write(&path, edit(bytes)).unwrap();
        fs::remove_dir(lock).unwrap();
    }

    /// Writes a message as Claude Code of this generation would.
    pub(crate) fn write(&self, generation: Generation, from: &str, to: &str, text: &str) {
        let id = Uuid::new_v4().to_string();
        let stamp = match generation {
            Generation::Old => GenerationFields::Old { msg_id: None },
            Generation::New => GenerationFields::New { msg_id: &id, lead_sig: None },
        };
        let now = brigade_core::clock::wire_time(SystemClock.now());
        let message = NewMessage {
            from,
            text,
            summary: Some("in short"),
            timestamp: &now,
            color: None,
            read: false,
            stamp,
        };
        self.locked(&format!("teams/demo/inboxes/{to}.json"), |mut bytes| {
            inbox::append(&mut bytes, std::slice::from_ref(&message)).unwrap();
            bytes
        });
    }

    /// Reads an inbox as Claude Code of this generation would.
    pub(crate) fn read_inbox(&self, generation: Generation, member_name: &str) {
        if !self.path(&format!("teams/demo/inboxes/{member_name}.json")).exists() {
            return;
        }
        self.locked(&format!("teams/demo/inboxes/{member_name}.json"), |bytes| {
            let inbox = Inbox::read(&bytes).unwrap();
            let texts = inbox.messages().filter(|message| !message.read());
            let texts: Vec<String> = texts.map(|message| message.text().into_owned()).collect();
            self.read_texts.lock().unwrap().entry(member_name.into()).or_default().extend(texts);
            match generation {
                Generation::Old => inbox.with_read(|_| true).into_owned(),
                Generation::New => inbox::EMPTY.to_vec(),
            }
        });
    }

    /// Returns the texts that a native member has read so far.
    pub(crate) fn read_texts(&self, member_name: &str) -> Vec<String> {
        self.read_texts.lock().unwrap().get(member_name).cloned().unwrap_or_default()
    }

    /// Creates a task as a native member would, with the next number on this host's board.
    pub(crate) fn make_task(&self, subject: &str, blocked_by: &[u64]) -> u64 {
        let dir = self.path("tasks/demo");
        fs::create_dir_all(&dir).unwrap();
        let names = fs::read_dir(&dir).unwrap();
        let numbers = names.filter_map(|name| {
            name.unwrap().file_name().to_str()?.strip_suffix(".json")?.parse::<u64>().ok()
        });
        let mark = fs::read_to_string(dir.join(".highwatermark")).ok();
        let mark = mark.and_then(|mark| mark.trim().parse().ok()).unwrap_or(0);
        let number = numbers.max().unwrap_or(0).max(mark) + 1;
        let id = |number| brigade_wire::name::TaskId::new(number).unwrap();
        let blocked_by: Vec<_> = blocked_by.iter().copied().map(id).collect();
        let task = NewTask {
            id: id(number),
            subject,
            description: "",
            active_form: None,
            owner: None,
            status: Status::Pending,
            blocks: &[],
            blocked_by: &blocked_by,
            metadata: &[],
        };
        fs::write(dir.join(format!("{number}.json")), task.to_bytes()).unwrap();
        number
    }

    /// Changes a task in place, as a native member would.
    pub(crate) fn change_task(&self, number: u64, change: &TaskChange<'_>) {
        self.locked(&format!("tasks/demo/{number}.json"), |bytes| {
            Task::read(&bytes).unwrap().with(change).into_owned()
        });
    }

    /// Deletes a task as a native member would.
    pub(crate) fn delete_task(&self, number: u64) {
        fs::write(self.path("tasks/demo/.highwatermark"), number.to_string()).unwrap();
        fs::remove_file(self.path(&format!("tasks/demo/{number}.json"))).unwrap();
    }

    /// Returns the board in the files: number, subject, owner and status of each task.
    pub(crate) async fn board(&self) -> Vec<(u64, String, String, String)> {
        board(self.store.as_ref()).await
    }

    /// Returns the names in the roster, each with its backend.
    pub(crate) async fn roster(&self) -> Vec<(String, String)> {
        names(self.store.as_ref()).await
    }

    /// Returns the texts in an inbox.
    pub(crate) async fn texts(&self, member_name: &str) -> Vec<String> {
        let mail = self.store.inbox(&team(), &member(member_name)).await.unwrap();
        let text = |json: &[u8]| {
            let read = |message: Option<brigade_wire::message::Message<'_>>| {
                message.unwrap().text().into_owned()
            };
            with_message(json, read).unwrap()
        };
        mail.iter().map(|mail| text(&mail.json)).collect()
    }

    /// Returns the link's events since the last call.
    pub(crate) fn drain_events(&self) -> Vec<LinkEvent> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

/// Returns the board in a store: number, subject, owner and status of each task.
pub(crate) async fn board(store: &dyn Store) -> Vec<(u64, String, String, String)> {
    let tasks = store.tasks(&team()).await.unwrap();
    let read = |(id, document): &(brigade_wire::name::TaskId, brigade_core::store::Document)| {
        let task = Task::read(&document.bytes).unwrap();
        let text = |text: Option<std::borrow::Cow<'_, str>>| text.unwrap_or_default().into_owned();
        assert_eq!(text(task.id()), id.to_string(), "the number in the file must match its name");
        let status = task.status().unwrap().to_string();
        (id.get(), text(task.subject()), text(task.owner()), status)
    };
    tasks.iter().map(read).collect()
}

/// Returns the roster in a store: each member's name and backend.
pub(crate) async fn names(store: &dyn Store) -> Vec<(String, String)> {
    let config = store.team(&team()).await.unwrap().unwrap();
    let config = brigade_wire::team::Team::read(&config.bytes).unwrap();
    let text = |text: Option<std::borrow::Cow<'_, str>>| text.unwrap_or_default().into_owned();
    config.members().map(|member| (text(member.name()), text(member.backend_type()))).collect()
}

/// Returns a seat in the shared store.
pub(crate) fn shared_seat(shared_store: &Arc<dyn Store>, name: &str) -> Seat {
    Seat::new(Arc::clone(shared_store), team(), member(name))
}

/// Synchronizes all hosts until each sees the changes of the others.
pub(crate) async fn sync(hosts: &[&TestHost]) {
    for _ in 0..3 {
        for host in hosts {
            host.sync().await;
        }
    }
}

/// Creates a shared store and hosts without a team.
pub(crate) fn hosts<const N: usize>(names: [&'static str; N]) -> (Arc<dyn Store>, [TestHost; N]) {
    let shared_store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let hosts = names.map(|name| TestHost::new(name, &shared_store));
    (shared_store, hosts)
}

/// Creates two hosts: the lead and alice are on `a`, bob is on `b`.
pub(crate) async fn two_hosts() -> (Arc<dyn Store>, TestHost, TestHost) {
    let (shared_store, [a, b]) = hosts(["a", "b"]);
    a.lead().await;
    a.join("alice").await;
    a.sync().await;
    b.sync().await;
    b.join("bob").await;
    sync(&[&b, &a]).await;
    for host in [&a, &b] {
        host.drain_events();
    }
    (shared_store, a, b)
}

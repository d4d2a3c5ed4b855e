//! The operations of `brigade-proofs cost`, done by the crate agent-teams 0.1.0 on files of the same
//! size. Prints lines of the same form; `run` puts both side by side.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use agent_teams::messaging::{FileInboxManager, InboxManager};
use agent_teams::models::{CreateTaskRequest, InboxMessage, TaskStatus, TaskUpdate};
use agent_teams::task::{FileTaskManager, TaskManager};

fn main() {
    let short = std::env::args().any(|arg| arg == "--short");
    let root = std::env::temp_dir().join(format!("brigade-store-proof-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&root).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let result = std::panic::catch_unwind(|| {
        runtime.block_on(async {
            sends(&root, short).await;
            tasks(&root, short).await;
        });
    });
    std::fs::remove_dir_all(&root).unwrap();
    if result.is_err() {
        std::process::exit(1);
    }
}

fn text(number: usize) -> String {
    format!("{:.<500}", format!("writer/{number} "))
}

/// One send into an inbox of so many messages, all read: this crate keeps them in the file.
async fn sends(root: &Path, short: bool) {
    let sizes: &[usize] = if short { &[10, 1_000, 10_000] } else { &[10, 1_000, 10_000, 100_000] };
    let inboxes = FileInboxManager::new(root.join("teams"));
    for &size in sizes {
        let team = format!("of-{size}");
        let dir = root.join("teams").join(&team).join("inboxes");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("reader.json"), inbox(size)).unwrap();
    }
    let mut times = vec![Vec::new(); sizes.len()];
    for number in 0..if short { 20 } else { 50 } {
        for (size, times) in sizes.iter().zip(&mut times) {
            let message = InboxMessage::new("writer", "reader", text(number));
            let start = Instant::now();
            inboxes.send_message(&format!("of-{size}"), message).await.unwrap();
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    for (size, times) in sizes.iter().zip(times) {
        line(&format!("send, history of {size}"), times);
    }
}

fn inbox(size: usize) -> String {
    let mut json = String::from("[");
    for number in 0..size {
        let comma = if number == 0 { "" } else { "," };
        let text = text(number);
        write!(json, "{comma}\n  {{\n    \"id\": \"00000000-0000-4000-8000-{number:012}\",\n    \"from\": \"native\",\n    \"to\": \"reader\",\n    \"content\": \"{text}\",\n    \"timestamp\": \"2026-01-01T00:00:00.000Z\",\n    \"read\": true\n  }}").unwrap();
    }
    json + "\n]"
}

/// Adding, claiming and finishing on boards of different sizes, and a list of the biggest.
async fn tasks(root: &Path, short: bool) {
    let sizes = [10, 1_000, 10_000];
    let base: PathBuf = root.join("tasks");
    for size in sizes {
        let dir = base.join(format!("of-{size}"));
        std::fs::create_dir_all(&dir).unwrap();
        for id in 1..=size {
            let text = text(id);
            let task = format!(
                "{{\n  \"id\": \"{id}\",\n  \"subject\": \"task {id}\",\n  \"description\": \"{text}\",\n  \"status\": \"pending\"\n}}"
            );
            std::fs::write(dir.join(format!("{id}.json")), task).unwrap();
        }
    }
    let board = FileTaskManager::new(base);
    let mut times: Vec<[Vec<f64>; 3]> = sizes.iter().map(|_| Default::default()).collect();
    for number in 0..if short { 20 } else { 50 } {
        for (size, [add, claim, done]) in sizes.iter().zip(&mut times) {
            let team = format!("of-{size}");
            let request = CreateTaskRequest {
                subject: format!("task {number}"),
                description: Some(text(number)),
                active_form: None,
                metadata: None,
            };
            let start = Instant::now();
            let task = board.create_task(&team, request).await.unwrap();
            add.push(start.elapsed().as_secs_f64() * 1e6);
            let mut step = TaskUpdate {
                owner: Some("writer".into()),
                status: Some(TaskStatus::InProgress),
                ..TaskUpdate::default()
            };
            let start = Instant::now();
            board.update_task(&team, &task.id, step).await.unwrap();
            claim.push(start.elapsed().as_secs_f64() * 1e6);
            step = TaskUpdate { status: Some(TaskStatus::Completed), ..TaskUpdate::default() };
            let start = Instant::now();
            board.update_task(&team, &task.id, step).await.unwrap();
            done.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    for (size, [add, claim, done]) in sizes.iter().zip(times) {
        line(&format!("add, {size} tasks"), add);
        line(&format!("claim, {size} tasks"), claim);
        line(&format!("done, {size} tasks"), done);
    }
    let mut list = Vec::new();
    for _ in 0..if short { 5 } else { 20 } {
        let start = Instant::now();
        let all = board.list_tasks("of-10000", None).await.unwrap();
        list.push(start.elapsed().as_secs_f64() * 1e6);
        assert!(all.len() >= 10_000);
    }
    line("list, 10000 tasks", list);
}

fn line(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let last = times.len() - 1;
    let (median, low, high) = (times[last / 2], times[last / 10], times[last * 9 / 10]);
    println!("{what:<52} {median:>9.0} {low:>9.0} {high:>9.0} {:>6}", times.len());
}

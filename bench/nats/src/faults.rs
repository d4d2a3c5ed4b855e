//! A leader killed, a disk removed, a host cut off: nothing that was acknowledged is lost, nothing is
//! shown twice, no task goes to two.

use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions};
use brigade_nats::layout::Stream;
use serde_json::Value;

use crate::faults_count::count;
use crate::faults_load::{Done, Load, SENDERS};
use crate::figures::Report;
use crate::hosts::{CLIENTS, Hosts};
use crate::{Length, block_on};

/// How long something may take to come back before the proof says that it does not.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(report: &mut Report, length: Length) {
    // On a thread of its own, for it moves to another host.
    std::thread::scope(|scope| {
        let run = || {
            let hosts = Hosts::start();
            block_on(faults(report, length, hosts));
        };
        scope.spawn(run).join().unwrap();
    });
}

/// The hosts, and somebody who looks how they are.
struct Field {
    hosts: Hosts,
    admin: Client,
}

async fn faults(report: &mut Report, length: Length, hosts: Hosts) {
    let urls = Hosts::urls();
    let options = ConnectOptions::new()
        .ping_interval(Duration::from_secs(1))
        .request_timeout(Some(Duration::from_secs(1)))
        .retry_on_initial_connect();
    let admin = options.connect(&urls).await.unwrap();
    let mut field = Field { hosts, admin };
    field.until("a leader of the cluster", async |field| field.is_ready().await).await;
    let (load, work) = Load::start(&urls).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("longest pause until the next of each, in seconds; all senders count");
    let (whole, again) = ("all whole", "shown again");
    println!("{:<44} {:>7} {:>7} {:>7} {whole} {again}", "", "sends", "shown", "claims");

    for round in 1..=length.of(3, 20) {
        let leader = field.leader().await;
        let fault = Instant::now();
        field.hosts.kill(leader);
        let down = Duration::from_secs(3);
        tokio::time::sleep(down).await;
        field.goes_on(&load, fault).await;
        field.hosts.launch(leader);
        field.told(&load, &format!("{round}: leader n{leader} killed, started again"), fault).await;
    }

    let leader = field.leader().await;
    let fault = Instant::now();
    field.hosts.kill(leader);
    field.hosts.wipe(leader);
    field.hosts.launch(leader);
    field.told(&load, &format!("disk of leader n{leader} removed"), fault).await;

    let long = Duration::from_secs(length.of(10, 20));
    let leader = field.leader().await;
    let fault = Instant::now();
    field.hosts.cut(leader);
    tokio::time::sleep(long).await;
    field.hosts.mend(leader);
    let what = format!("leader n{leader} cut off for {} s", long.as_secs());
    field.told(&load, &what, fault).await;

    let fault = Instant::now();
    field.hosts.cut(CLIENTS);
    tokio::time::sleep(long).await;
    field.hosts.mend(CLIENTS);
    let what = format!("all clients cut off for {} s", long.as_secs());
    field.told(&load, &what, fault).await;

    load.end();
    tokio::time::timeout(PATIENCE, work.join_all()).await.expect("the team comes to its end");
    count(report, &load, &urls).await;
}

impl Field {
    /// Prints how long things stood still in a fault, once all is well again.
    async fn told(&self, load: &Load, what: &str, fault: Instant) {
        self.goes_on(load, fault).await;
        self.until("all replicas current", async |field| field.is_whole().await).await;
        let whole = fault.elapsed();
        // Something has to have got done since, for the pause to be over.
        self.goes_on(load, Instant::now()).await;
        let sends = (0..SENDERS).map(|number| pause(load, Done::Sent(number), fault));
        let sends = sends.max().unwrap_or_default();
        let [shown, claims] = [Done::Shown, Done::Claimed].map(|done| pause(load, done, fault));
        let [sends, shown, claims, whole] = [sends, shown, claims, whole].map(|d| d.as_secs_f64());
        let again: usize = load.seen().shown.values().map(|times| times - 1).sum();
        println!("{what:<44} {sends:>7.2} {shown:>7.2} {claims:>7.2} {whole:>9.2} {again:>11}");
    }

    /// Waits until everybody has got something done since `fault`.
    async fn goes_on(&self, load: &Load, fault: Instant) {
        self.until("work that goes on", async |_| {
            let seen = load.seen();
            let since = |done: Done| {
                seen.done
                    .iter()
                    .rev()
                    .take_while(|(_, at)| *at > fault)
                    .any(|(its, _)| *its == done)
            };
            let all = (0..SENDERS).map(Done::Sent).all(since);
            all && since(Done::Shown) && since(Done::Claimed)
        })
        .await;
    }

    async fn until(&self, what: &str, is_so: impl AsyncFn(&Self) -> bool) {
        let since = Instant::now();
        while !is_so(self).await {
            if since.elapsed() > PATIENCE {
                let logs: Vec<String> = (0..CLIENTS).map(|server| self.hosts.log(server)).collect();
                panic!("not after {PATIENCE:?}: {what}\n{}", logs.join("\n--\n"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn api(&self, what: &str) -> Option<Value> {
        let answer = self.admin.request(format!("$JS.API.{what}"), "".into()).await.ok()?;
        let answer: Value = serde_json::from_slice(&answer.payload).ok()?;
        answer.get("error").is_none().then_some(answer)
    }

    async fn is_ready(&self) -> bool {
        self.api("STREAM.NAMES").await.is_some()
    }

    /// Who leads the mail.
    async fn leader(&self) -> usize {
        let since = Instant::now();
        loop {
            let info = self.api(&format!("STREAM.INFO.{}", Stream::Mail.name(0))).await;
            let leader = info.as_ref().and_then(|info| info["cluster"]["leader"].as_str());
            if let Some(number) = leader.and_then(|name| name.strip_prefix('n')?.parse().ok()) {
                return number;
            }
            assert!(since.elapsed() < PATIENCE, "nobody leads the mail");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Whether every stream has all its replicas, and they are current.
    async fn is_whole(&self) -> bool {
        for stream in Stream::ALL {
            let Some(info) = self.api(&format!("STREAM.INFO.{}", stream.name(0))).await else {
                return false;
            };
            let Some(peers) = info["cluster"]["replicas"].as_array() else { return false };
            let well = |peer: &Value| peer["current"] == true && peer["offline"] != true;
            if peers.len() != CLIENTS - 1 || !peers.iter().all(well) {
                return false;
            }
        }
        true
    }
}

/// The longest time after a fault in which something did not get done.
fn pause(load: &Load, done: Done, fault: Instant) -> Duration {
    let seen = load.seen();
    let mut longest = Duration::ZERO;
    let mut before = fault;
    for (_, at) in seen.done.iter().filter(|(its, at)| *its == done && *at > fault) {
        longest = longest.max(at.duration_since(before));
        before = *at;
    }
    longest
}

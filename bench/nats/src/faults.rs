//! Kills the leader, deletes a server's data and cuts off hosts. Checks that no acknowledged message is lost, no
//! message is shown twice, and no task has two owners.

use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions};
use brigade_nats::layout::Stream;
use serde_json::Value;

use crate::faults_count::count;
use crate::faults_load::{FaultLoad, Operation, SENDERS};
use crate::figures::BenchReport;
use crate::hosts::{CLIENTS, Hosts};
use crate::{Length, block_on};

/// The longest time that the recovery from a fault may take.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    // Use another thread, because `Hosts::start` moves its thread into another network namespace.
    std::thread::scope(|scope| {
        let run = || {
            let hosts = Hosts::start();
            block_on(faults(report, length, hosts));
        };
        scope.spawn(run).join().unwrap();
    });
}

/// The hosts, and a connection to query the servers' state.
struct FaultBench {
    hosts: Hosts,
    admin: Client,
}

async fn faults(report: &mut BenchReport, length: Length, hosts: Hosts) {
    let urls = Hosts::urls();
    let options = ConnectOptions::new()
        .ping_interval(Duration::from_secs(1))
        .request_timeout(Some(Duration::from_secs(1)))
        .retry_on_initial_connect();
    let admin = options.connect(&urls).await.unwrap();
    let mut bench = FaultBench { hosts, admin };
    bench.until("the cluster has a leader", async |bench| bench.is_ready().await).await;
    let (load, work) = FaultLoad::start(&urls, &"faults".parse().unwrap()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("longest pause of each operation, in seconds");
    let (whole, again) = ("recovered", "shown again");
    println!("{:<44} {:>7} {:>7} {:>7} {whole} {again}", "", "sends", "shown", "claims");

    for round in 1..=length.pick(3, 20) {
        let leader = bench.leader().await;
        let fault = Instant::now();
        bench.hosts.kill(leader);
        let down = Duration::from_secs(3);
        tokio::time::sleep(down).await;
        bench.is_running(&load, fault).await;
        bench.hosts.launch(leader);
        bench
            .report_fault(&load, &format!("{round}: leader n{leader} killed and restarted"), fault)
            .await;
    }

    let leader = bench.leader().await;
    let fault = Instant::now();
    bench.hosts.kill(leader);
    bench.hosts.wipe(leader);
    bench.hosts.launch(leader);
    bench.report_fault(&load, &format!("disk of leader n{leader} deleted"), fault).await;

    let long = Duration::from_secs(length.pick(10, 20));
    let leader = bench.leader().await;
    let fault = Instant::now();
    bench.hosts.unplug(leader);
    tokio::time::sleep(long).await;
    bench.hosts.plug(leader);
    let what = format!("leader n{leader} cut off for {} s", long.as_secs());
    bench.report_fault(&load, &what, fault).await;

    let fault = Instant::now();
    bench.hosts.unplug(CLIENTS);
    tokio::time::sleep(long).await;
    bench.hosts.plug(CLIENTS);
    let what = format!("all clients cut off for {} s", long.as_secs());
    bench.report_fault(&load, &what, fault).await;

    load.end();
    tokio::time::timeout(TIMEOUT, work.join_all()).await.expect("all members finish in time");
    count(report, &load, &urls).await;
}

impl FaultBench {
    /// Waits for the recovery from a fault, and prints the longest pause of each operation.
    async fn report_fault(&self, load: &FaultLoad, what: &str, fault: Instant) {
        self.is_running(load, fault).await;
        self.until("all replicas are current", async |bench| bench.is_replicated().await).await;
        let whole = fault.elapsed();
        // Wait until each member completes another operation. Then all pauses have ended.
        self.is_running(load, Instant::now()).await;
        let sends = (0..SENDERS).map(|number| pause(load, Operation::Sent(number), fault));
        let sends = sends.max().unwrap_or_default();
        let [shown, claims] =
            [Operation::Shown, Operation::Claimed].map(|done| pause(load, done, fault));
        let [sends, shown, claims, whole] = [sends, shown, claims, whole].map(|d| d.as_secs_f64());
        let again: usize = load.seen().shown.values().map(|times| times - 1).sum();
        println!("{what:<44} {sends:>7.2} {shown:>7.2} {claims:>7.2} {whole:>9.2} {again:>11}");
    }

    /// Waits until every member has completed an operation since `fault`.
    async fn is_running(&self, load: &FaultLoad, fault: Instant) {
        self.until("every member makes progress", async |_| {
            let seen = load.seen();
            let since = |done: Operation| {
                seen.done
                    .iter()
                    .rev()
                    .take_while(|(_, at)| *at > fault)
                    .any(|(step, _)| *step == done)
            };
            let all = (0..SENDERS).map(Operation::Sent).all(since);
            all && since(Operation::Shown) && since(Operation::Claimed)
        })
        .await;
    }

    async fn until(&self, what: &str, is_so: impl AsyncFn(&Self) -> bool) {
        let since = Instant::now();
        while !is_so(self).await {
            if since.elapsed() > TIMEOUT {
                let logs: Vec<String> = (0..CLIENTS).map(|server| self.hosts.log(server)).collect();
                panic!("timed out after {TIMEOUT:?} waiting until {what}\n{}", logs.join("\n--\n"));
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

    /// Returns the number of the server that leads the mail stream.
    async fn leader(&self) -> usize {
        let since = Instant::now();
        loop {
            let info = self.api(&format!("STREAM.INFO.{}", Stream::Mail.name(0))).await;
            let leader = info.as_ref().and_then(|info| info["cluster"]["leader"].as_str());
            if let Some(number) = leader.and_then(|name| name.strip_prefix('n')?.parse().ok()) {
                return number;
            }
            assert!(since.elapsed() < TIMEOUT, "the mail stream has no leader");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Whether all replicas of every stream are current.
    async fn is_replicated(&self) -> bool {
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

/// Returns the longest time after a fault in which no operation of this kind was completed.
fn pause(load: &FaultLoad, done: Operation, fault: Instant) -> Duration {
    let seen = load.seen();
    let mut longest = Duration::ZERO;
    let mut before = fault;
    for (_, at) in seen.done.iter().filter(|(step, at)| *step == done && *at > fault) {
        longest = longest.max(at.duration_since(before));
        before = *at;
    }
    longest
}

//! Adds a shard to three servers while a team works and a server is killed. Then a second team works in the new shard,
//! and the leader of its mail stream is killed. Checks both teams like the fault benchmark.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_nats::layout::Stream;
use brigade_nats::{NatsOptions, NatsStore};
use brigade_testkit::nats_server::TestServers;
use brigade_wire::name::TeamName;
use tokio::task::JoinSet;

use crate::faults_count::count;
use crate::faults_load::{FaultLoad, Operation};
use crate::figures::BenchReport;
use crate::{Length, block_on};

const SERVERS: usize = 3;
/// How long a killed server stays away.
const DOWN: Duration = Duration::from_secs(3);
/// The longest time in which all members of a team finish.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn run(report: &mut BenchReport, length: Length) {
    block_on(shards(report, length, TestServers::cluster(SERVERS)));
}

/// A team that works.
struct WorkingTeam {
    load: Arc<FaultLoad>,
    work: JoinSet<()>,
}

impl WorkingTeam {
    async fn start(urls: &[String], team: &TeamName) -> Self {
        let (load, work) = FaultLoad::start(urls, team).await;
        Self { load, work }
    }

    /// Returns the number of acknowledged messages per second since `since`.
    fn rate(&self, since: Instant) -> f64 {
        let seen = self.load.seen();
        let is_send = |done: &Operation| matches!(done, Operation::Sent(_));
        let sends = seen.done.iter().filter(|(done, at)| is_send(done) && *at > since).count();
        sends as f64 / since.elapsed().as_secs_f64()
    }

    async fn end(self, report: &mut BenchReport, urls: &[String]) {
        self.load.end();
        let ended = tokio::time::timeout(TIMEOUT, self.work.join_all()).await;
        ended.expect("all members finish in time");
        println!("team {}", self.load.team);
        count(report, &self.load, urls).await;
    }
}

async fn shards(report: &mut BenchReport, length: Length, mut servers: TestServers) {
    let urls = servers.urls.clone();
    let calm = Duration::from_secs(length.pick(3, 30));
    let [old, new] = ["old", "new"].map(|name| name.parse::<TeamName>().unwrap());
    let first = WorkingTeam::start(&urls, &old).await;
    // This client reads the map of shards before the shard is added.
    let early = connect(&urls).await;
    tokio::time::sleep(calm).await;

    let operator = connect(&urls).await;
    let start = Instant::now();
    servers.stop(leader(&early, 0).await);
    let adding = tokio::spawn({
        let operator = Arc::clone(&operator);
        async move { operator.add_shard().await }
    });
    tokio::time::sleep(DOWN).await;
    (0..SERVERS).for_each(|server| servers.start(server));
    let shard = adding.await.unwrap().expect("the shard is added");
    println!("shard {shard} added in {:.1} s, a server was killed", start.elapsed().as_secs_f64());

    operator.assign_shard(&new, shard).await.expect("the new team gets the new shard");
    let second = WorkingTeam::start(&urls, &new).await;
    let both = Instant::now();
    tokio::time::sleep(calm).await;
    let rate = first.rate(both) + second.rate(both);
    println!("both teams together: {rate:.0} acknowledged messages per second");
    for _ in 0..length.pick(1, 5) {
        servers.stop(leader(&early, shard).await);
        tokio::time::sleep(DOWN).await;
        (0..SERVERS).for_each(|server| servers.start(server));
        tokio::time::sleep(calm).await;
    }

    let usage = early.shards().await.expect("the shards are listed");
    let teams: Vec<usize> = usage.iter().map(|shard| shard.teams).collect();
    report.check(teams == [1, 1], format!("teams in each shard: {teams:?}"));
    first.end(report, &urls).await;
    second.end(report, &urls).await;
}

async fn connect(urls: &[String]) -> Arc<NatsStore> {
    let options = NatsOptions { servers: urls.to_vec(), ..NatsOptions::default() };
    Arc::new(NatsStore::connect(options).await.expect("the NATS store opens"))
}

/// Returns the number of the server that leads the mail stream of a shard.
async fn leader(store: &NatsStore, shard: u16) -> usize {
    let name = Stream::Mail.name(shard);
    let start = Instant::now();
    while start.elapsed() < TIMEOUT {
        let streams = store.measures().await.map(|measures| measures.streams).unwrap_or_default();
        let stream = streams.into_iter().find(|stream| stream.name == name);
        let leader = stream.and_then(|stream| stream.leader);
        if let Some(number) = leader.and_then(|name| name.strip_prefix('n')?.parse().ok()) {
            return number;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the stream {name} has no leader");
}

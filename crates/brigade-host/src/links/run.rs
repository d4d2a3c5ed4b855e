//! Runs links in this process, until a signal or the end of their teams.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use brigade_core::clock::Timestamp;
use brigade_core::store::{Store, StoreError, TeamStore};
use brigade_link::{EndedSide, Link, LinkConfig, LinkError, LinkEvent, LinkTiming};
use brigade_wire::name::{MemberName, TeamName};
use tokio::task::JoinSet;

use super::process::{HeldLink, LinkStateFile};
use super::refusal::RefusalWatch;
use crate::context::Context;
use crate::error::{ErrorKind, HostError, Trouble};
use crate::link_registry::{LinkCondition, LinkFiles, LinkStatus};
use crate::location::{Location, NatsServers, ServerWait};
use crate::progress;
use crate::registry;

/// How often to check for new teams on the NATS server.
const TEAMS_INTERVAL: Duration = Duration::from_secs(5);
/// How long to wait before the next attempt to reach a server that was unreachable at startup.
const CONNECT_INTERVAL: Duration = Duration::from_secs(2);

/// Which teams to link, and with which servers.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The NATS servers.
    pub servers: NatsServers,
    /// The teams. If empty: the team of the credentials, or else all teams on the servers.
    pub teams: Vec<TeamName>,
    /// The name of this host in the teams.
    pub host: String,
    /// How long to wait for servers that do not answer. A link that keeps running tries again without end.
    pub wait: ServerWait,
}

/// Something that a front end shows while links run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkNote {
    /// The server cannot be reached, for this reason. The link tries again.
    Retrying(String),
    /// The NATS store has no team yet.
    NoTeamYet,
    /// The link of a team has ended, for this reason.
    Ended(TeamName, String),
}

/// Receives the events of the links of a host.
pub type LinkEventHandler = Arc<dyn Fn(&TeamName, &LinkEvent) + Send + Sync>;

/// Where links report to.
#[derive(Clone)]
pub struct LinkOutput {
    /// Receives the events of each link.
    pub on_event: LinkEventHandler,
    /// Receives notes.
    pub on_note: Arc<dyn Fn(&LinkNote) + Send + Sync>,
    /// Returns whether no program reads the output any more, so that the links should end.
    pub is_closed: fn() -> bool,
}

impl fmt::Debug for LinkOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkOutput")
    }
}

/// Synchronizes each team once. Fails with [`ErrorKind::Nothing`] if there is no team.
pub async fn once(
    context: &Context,
    options: &LinkOptions,
    output: &LinkOutput,
) -> Result<(), HostError> {
    let store = options.servers.open(false, options.wait, &progress::silent).await?;
    let links = Links::new(context, options, output, store)?;
    let teams = links.teams().await?;
    if teams.is_empty() {
        return Err(HostError::new(ErrorKind::Nothing, Trouble::NoTeamOnServer));
    }
    for team in teams {
        check_known(context, &options.servers, &links.store, &team).await?;
        let (mut link, _held) = links.link(links.hold(&team).await?)?;
        link.once().await.map_err(|error| link_failed(&options.servers, error))?;
    }
    Ok(())
}

/// Keeps the teams synchronized. Waits for a server that cannot be reached. Returns when every named team has ended.
pub async fn run(
    context: &Context,
    options: &LinkOptions,
    output: &LinkOutput,
) -> Result<(), HostError> {
    let mut held = BTreeMap::new();
    // Lock the teams first: the supervisor starts a link again whose process holds no lock.
    for team in named(options) {
        held.insert(team.clone(), hold(context, options, &team).await?);
    }
    let done = run_held(context, options, output, &mut held).await;
    if let Err(error) = &done
        && is_final(error)
    {
        // Without this record the supervisor would start the link again.
        for team in named(options) {
            let files = files(context, options, &team)?;
            if files.is_expected() {
                files.set_failure(Some(&error.to_agent_text()))?;
            }
        }
    }
    done
}

/// Returns whether another attempt would fail in the same way until a person acts.
fn is_final(error: &HostError) -> bool {
    let link_error = error.source.downcast_ref::<LinkError>();
    (error.is_unreachable() && !error.is_temporary())
        || link_error.is_some_and(LinkError::is_final)
        || matches!(error.source.downcast_ref(), Some(StoreError::Forbidden { .. }))
        || matches!(
            error.source.downcast_ref(),
            Some(Trouble::NoTeamToLink { .. } | Trouble::CredentialsOfOther { .. })
        )
}

async fn run_held(
    context: &Context,
    options: &LinkOptions,
    output: &LinkOutput,
    held: &mut BTreeMap<TeamName, HeldLink>,
) -> Result<(), HostError> {
    let store = connect(&options.servers, output, held).await?;
    let links = Links::new(context, options, output, store)?;
    for team in held.keys() {
        check_known(context, &options.servers, &links.store, team).await?;
    }
    links.keep_linked(held).await
}

/// Connects to the servers. Tries again while they cannot be reached.
async fn connect(
    servers: &NatsServers,
    output: &LinkOutput,
    held: &BTreeMap<TeamName, HeldLink>,
) -> Result<Arc<dyn Store>, HostError> {
    let mut is_noted = false;
    loop {
        let error = match servers.open(false, ServerWait::NONE, &progress::silent).await {
            Ok(store) => return Ok(store),
            Err(error) if !error.is_temporary() => return Err(error),
            Err(error) => error.to_agent_text(),
        };
        for link in held.values() {
            link.report(LinkCondition::Unreachable, Some(error.clone()));
        }
        if !std::mem::replace(&mut is_noted, true) {
            (output.on_note)(&LinkNote::Retrying(error));
        }
        tokio::time::sleep(CONNECT_INTERVAL).await;
    }
}

/// Returns the teams that the options or the credentials name.
fn named(options: &LinkOptions) -> BTreeSet<TeamName> {
    if options.teams.is_empty() {
        return options.servers.seat().map(|(team, _)| team).into_iter().collect();
    }
    options.teams.iter().cloned().collect()
}

pub(super) fn files(
    context: &Context,
    options: &LinkOptions,
    team: &TeamName,
) -> Result<LinkFiles, HostError> {
    let key = Location::Nats(options.servers.clone()).key(context.claude_dir());
    Ok(LinkFiles::new(&context.files_host()?.registry, &key, team))
}

async fn hold(
    context: &Context,
    options: &LinkOptions,
    team: &TeamName,
) -> Result<HeldLink, HostError> {
    let status = LinkStatus {
        files: context.files_host()?.registry.key(),
        servers: options.servers.servers.clone(),
        host: options.host.clone(),
        state: LinkCondition::Starting,
        since: Timestamp::now(),
        why: None,
        local: Vec::new(),
        remote: Vec::new(),
    };
    HeldLink::new(files(context, options, team)?, status).await
}

/// Returns the teams to link: the named ones, or all teams on the NATS servers.
pub(super) async fn teams_to_link(
    options: &LinkOptions,
    store: &Arc<dyn Store>,
) -> Result<BTreeSet<TeamName>, HostError> {
    let named = named(options);
    if !named.is_empty() {
        return Ok(named);
    }
    Ok(store.teams().await?.into_iter().collect())
}

/// Fails if the credentials are for another team, or if the team exists neither on this host nor on the servers. The
/// error lists the known teams.
pub(super) async fn check_known(
    context: &Context,
    servers: &NatsServers,
    store: &Arc<dyn Store>,
    team: &TeamName,
) -> Result<(), HostError> {
    if let Some((of, _)) = servers.seat().filter(|(of, _)| of != team) {
        let (team, of) = (team.to_string(), of.to_string());
        let hint = format!("name the credentials for team {team} with `--creds FILE`");
        return Err(HostError::failed(Trouble::CredentialsOfOther { team, of }).hint(hint));
    }
    if context.files.team(team).await?.is_some() || store.team(team).await?.is_some() {
        return Ok(());
    }
    let addresses = servers.servers.join(", ");
    let list = |teams: Vec<TeamName>| match teams.as_slice() {
        [] => "none".to_owned(),
        teams => teams.iter().map(TeamName::as_str).collect::<Vec<_>>().join(", "),
    };
    let here = list(context.files.teams().await?);
    let there = list(store.teams().await.unwrap_or_default());
    let error = HostError::failed(Trouble::NoTeamToLink {
        team: team.to_string(),
        servers: addresses.clone(),
    });
    Err(error.hint(format!("teams on this host: {here}; teams at {addresses}: {there}")).hint(
        "start the team first, with Claude Code or with `brigade up --store files`, then link it",
    ))
}

/// Converts an error that ended a link.
fn link_failed(servers: &NatsServers, error: LinkError) -> HostError {
    match error {
        LinkError::Shared(error) | LinkError::Local(error) => error.into(),
        error @ LinkError::OtherTeam { .. } => {
            let addresses = servers.servers.join(",");
            let team = match &error {
                LinkError::OtherTeam { team } => team.to_string(),
                _ => String::new(),
            };
            HostError::failed(error).hint(format!(
                "if the one in the NATS store is no longer used, delete it with `brigade team delete {team} --store \
                 {addresses}`, then link again"
            ))
        }
        error => HostError::failed(error),
    }
}

/// The state that all links of this process share.
struct Links<'l> {
    context: &'l Context,
    options: &'l LinkOptions,
    output: &'l LinkOutput,
    store: Arc<dyn Store>,
    acts_for: BTreeSet<MemberName>,
}

impl<'l> Links<'l> {
    fn new(
        context: &'l Context,
        options: &'l LinkOptions,
        output: &'l LinkOutput,
        store: Arc<dyn Store>,
    ) -> Result<Self, HostError> {
        let acts_for = options.servers.speaks_for()?.into_iter().collect();
        Ok(Self { context, options, output, store, acts_for })
    }

    async fn teams(&self) -> Result<BTreeSet<TeamName>, HostError> {
        teams_to_link(self.options, &self.store).await
    }

    async fn hold(&self, team: &TeamName) -> Result<HeldLink, HostError> {
        hold(self.context, self.options, team).await
    }

    /// Opens the link of one team.
    fn link(&self, held: HeldLink) -> Result<(Link, Arc<HeldLink>), HostError> {
        let held = Arc::new(held);
        let team = held.files.team.clone();
        let (name, on_event, reports) =
            (team.clone(), Arc::clone(&self.output.on_event), Arc::clone(&held));
        let link = Link::new(LinkConfig {
            local: Arc::clone(&self.context.files),
            shared: Arc::clone(&self.store),
            clock: Arc::clone(&self.context.clock),
            host: self.options.host.clone(),
            acts_for: self.acts_for.clone(),
            signer: Some(Arc::new(self.context.file_store_keys(&team)) as _),
            state_store: Arc::new(LinkStateFile { path: held.files.saved_state() }),
            on_event: Arc::new(move |event: &LinkEvent| {
                reports.report_event(event);
                on_event(&name, event);
            }),
            team,
            timing: LinkTiming::default(),
        });
        Ok((link.map_err(|error| link_failed(&self.options.servers, error))?, held))
    }

    /// Keeps every team synchronized, with one task for each team. Returns the first error that ends a link.
    async fn keep_linked(&self, held: &mut BTreeMap<TeamName, HeldLink>) -> Result<(), HostError> {
        let named: BTreeSet<TeamName> = held.keys().cloned().collect();
        let mut running: BTreeMap<TeamName, Arc<HeldLink>> = BTreeMap::new();
        let mut refusals = RefusalWatch::default();
        let mut ended = BTreeSet::new();
        let mut links = JoinSet::new();
        let mut is_noted = false;
        loop {
            // Ignore a failure to list the teams: the running links handle a lost connection themselves.
            let teams = if named.is_empty() { self.teams().await } else { Ok(named.clone()) };
            let is_none = teams.as_ref().is_ok_and(BTreeSet::is_empty) && running.is_empty();
            if is_none && !std::mem::replace(&mut is_noted, true) {
                (self.output.on_note)(&LinkNote::NoTeamYet);
            }
            for team in teams.unwrap_or_default() {
                if running.contains_key(&team) || (!named.is_empty() && ended.contains(&team)) {
                    continue;
                }
                let held = match held.remove(&team) {
                    Some(held) => held,
                    None => self.hold(&team).await?,
                };
                let (mut link, held) = self.link(held)?;
                running.insert(team.clone(), Arc::clone(&held));
                links.spawn(async move {
                    let end = link.run(std::future::pending()).await;
                    (team, held, end)
                });
            }
            tokio::select! {
                Some(Ok((team, held, end))) = links.join_next() => {
                    running.remove(&team);
                    self.finish(&team, &held, end)?;
                    ended.insert(team);
                    if !named.is_empty() && ended == named {
                        return Ok(());
                    }
                }
                () = tokio::time::sleep(TEAMS_INTERVAL) => {
                    refusals.check(&self.options.servers, running.values()).await?;
                }
            }
            if (self.output.is_closed)() {
                return Ok(());
            }
        }
    }

    /// Removes the files of a link whose team has ended.
    fn finish(
        &self,
        team: &TeamName,
        held: &HeldLink,
        end: Result<(), LinkError>,
    ) -> Result<(), HostError> {
        match end {
            Ok(()) => Ok(()),
            Err(error @ LinkError::Ended { side, .. }) => {
                (self.output.on_note)(&LinkNote::Ended(team.clone(), error.to_string()));
                held.files.remove()?;
                // With the saved state, a new link does not create a team again that was deleted in the NATS store.
                if side != EndedSide::Shared || self.is_gone(team) {
                    registry::remove(&held.files.saved_state())?;
                }
                Ok(())
            }
            Err(error) => Err(link_failed(&self.options.servers, error)),
        }
    }

    /// Returns whether the team's folder is gone from the files of this host.
    fn is_gone(&self, team: &TeamName) -> bool {
        !brigade_files::layout::config_path(self.context.claude_dir(), team.as_str()).exists()
    }
}

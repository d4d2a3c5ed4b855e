//! `brigade play`: runs one member on this host, as specified in the host registry. The supervisor starts this
//! command.

use std::sync::Arc;

use brigade_agents::driver;
use brigade_core::seat::Seat;
use brigade_core::store::NoteKind;
use brigade_core::wire::backend;
use brigade_wire::name::{MemberName, TeamName};
use brigade_wire::team::Team;
use rustix::process::setsid;

use super::agent_run::{self, TeammateSettings};
use super::claude_member::ClaudeMember;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, Trouble};
use crate::{env, exit, progress};
use brigade_host::claude_led::{self, FollowedLead};
use brigade_host::error::failed;
use brigade_host::native::{self, NativeOptions};
use brigade_host::signals::StopSignal;
use brigade_host::spec::{MemberPlace, MemberSpec};
use brigade_host::{Host, detach, process_lock, roster_entry, shutdown, spawn};

pub(crate) async fn run(context: &CliContext) -> Result<u8, CliError> {
    let missing = |what| CliError::usage(CliTrouble::NativeArgument { what });
    let team = context.named_team().ok_or_else(|| missing("--team"))?;
    let name = context.named_member().ok_or_else(|| missing("--as"))?;
    let host = context.host()?;
    let spec = host.local_member(team, name)?;
    if matches!(spec.place, MemberPlace::Headless | MemberPlace::Pane) {
        // Fails only if this process already leads a session, which is fine.
        let _leads = setsid();
    }
    if spec.place == MemberPlace::Pane {
        return wait_for_lead(context, &host, team, spec).await;
    }
    let taken = process_lock::take(&host.registry.seat(team, name)).await;
    let Some(_held) = taken.map_err(|source| failed("take the seat", source))? else {
        // Another process runs this member already.
        return Ok(exit::DONE);
    };
    let seat = context.seat_of(team.clone(), name.clone());
    spawn::check_not_elsewhere(&host, &seat, name).await?;
    host.registry.check_folder(team, &spec)?;
    let cwd = match host.worktree(team, &spec) {
        Some(worktree) => worktree.make(&spec.cwd)?,
        None => spec.cwd.clone(),
    };
    let lead = seat.for_member(MemberName::lead());
    roster_entry::write(&host, &lead, &spec, Some(&cwd)).await;
    match play(context, &host, team, name, MemberSpec { cwd, ..spec.clone() }).await? {
        MemberEnd::Left(code) => {
            shutdown::remove_left(&host, &seat, &spec).await?;
            Ok(code)
        }
        MemberEnd::LeadAway(followed) => {
            let choice = spawn::known_agent(&spec.agent)?;
            let registration =
                claude_led::register_late_joiner(&host, team, spec, followed).await?;
            detach::from_terminal(&registration.log())?;
            ClaudeMember { context, choice, task_list: None }.wait(registration).await
        }
    }
}

/// The reason why the run of a member has ended.
enum MemberEnd {
    /// The member has left the team. This process ends with an exit code.
    Left(u8),
    /// The session of the lead, which is Claude Code, has ended.
    LeadAway(FollowedLead),
}

/// Runs a member that Claude Code started, when its lead is back.
async fn wait_for_lead(
    context: &CliContext,
    host: &Host,
    team: &TeamName,
    spec: MemberSpec,
) -> Result<u8, CliError> {
    let choice = spawn::known_agent(&spec.agent)?;
    let Some(registration) = claude_led::register_again(host, team, spec).await? else {
        // Another process runs this member already.
        return Ok(exit::DONE);
    };
    ClaudeMember { context, choice, task_list: None }.wait(registration).await
}

async fn play(
    context: &CliContext,
    host: &Host,
    team: &TeamName,
    name: &MemberName,
    spec: MemberSpec,
) -> Result<MemberEnd, CliError> {
    let mut seat = context.seat_of(team.clone(), name.clone());
    if spec.place == MemberPlace::Native {
        let keys = context.host()?.registry.keys(team);
        let inherits = env::inherited(&spawn::known_agent("claude")?.agent, spec.env.as_deref());
        let in_files = context.location().nats().is_none();
        let is_alone = in_files && is_alone(host, &seat).await?;
        let alone_in = is_alone.then(|| Arc::clone(&context.files));
        let options = NativeOptions {
            programs: context.programs(),
            host: context.host_name(),
            claude_dir: context.claude_dir(),
            keys,
            registry: host.registry.clone(),
            inherits,
            alone_in,
            report: &progress::print,
        };
        native::run(seat, &spec, options).await?;
        return Ok(MemberEnd::Left(exit::DONE));
    }
    let Some(choice) = driver::agent(&spec.agent) else {
        return Err(CliError::usage(Trouble::NoAgent { name: spec.agent }));
    };
    let access = spec.driver_access();
    let first = seat.store.get_note(team, name, NoteKind::Memory).await?.is_none();
    let ours = host.leads(&seat).await?;
    // In a NATS store, the server authenticates senders, so messages need no signature.
    let is_signed = ours && context.location().nats().is_none();
    let key = host.registry.keys(team).member_key(name).map_err(CliError::failed)?;
    let key = key.verify_key();
    if is_signed {
        seat.lead_key = Some(key.parse().map_err(CliError::failed)?);
    }
    let settings = TeammateSettings {
        program: spec.program,
        model: spec.model,
        access,
        lead_key: is_signed.then_some(key),
        // In a team that brigade leads, the prompt was already sent as a message.
        prompt: spec.prompt.filter(|_| first && !ours),
        cwd: spec.cwd.to_string_lossy().into_owned(),
        inherits: env::inherited(&choice.agent, spec.env.as_deref()),
        answers: host.registry.team(team)?.map(|team| team.answers).unwrap_or_default(),
        home: context.location().clone(),
        task_list: None,
        folder: Some(host.registry.member_dir(team, name)),
        paused: host.registry.is_paused(team, name),
    };
    let registry = &host.registry;
    let run = agent_run::play_and_leave(seat.clone(), choice, settings, |signal| {
        // The supervisor starts an expected member again. If the whole team is deleted, this member need not leave it.
        let stays = registry.expects(team, name) || registry.is_being_deleted(team);
        stays.then(|| match signal {
            StopSignal::HungUp => CliTrouble::WindowGone,
            StopSignal::Requested => CliTrouble::Terminated,
        })
    });
    let follows = !ours && !host.is_shared && !spec.worktree;
    let mut followed = FollowedLead::default();
    let code = tokio::select! {
        code = run => code?,
        // The lead has resumed its session with another team.
        () = followed.follow(host, &seat), if follows => exit::DONE,
    };
    let waits = registry.expects(team, name) && followed.is_lead_away(host, &seat).await?;
    Ok(if waits { MemberEnd::LeadAway(followed) } else { MemberEnd::Left(code) })
}

/// Returns whether this member is the only Claude Code process that uses the team's files: brigade leads the team
/// and runs all other members itself.
async fn is_alone(host: &Host, seat: &Seat) -> Result<bool, CliError> {
    if !host.leads(seat).await? {
        return Ok(false);
    }
    let Some(config) = seat.find_config().await? else { return Ok(false) };
    let team = Team::read(&config.bytes).map_err(CliError::failed)?;
    let lead = MemberName::lead();
    let known = [lead.as_str(), seat.name.as_str()];
    for other in team.members().filter(|other| !known.iter().any(|name| other.is(name))) {
        let Some(Ok(name)) = other.name().map(|name| name.parse()) else { return Ok(false) };
        match host.registry.member(&seat.team, &name)? {
            Some(spec) if spec.place != MemberPlace::Native => {}
            // Members added by `brigade team join` are not in the registry. They write only through brigade.
            None if other.backend_type().as_deref() == Some(backend::PROCESS) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

//! Where the records on the screen come from: a live team, or a journal that is replayed.

use std::path::Path;

use brigade_core::store::event_log::{EventStream, RecordBatch};
use brigade_files::stream_records_file;
use brigade_host::{Context, HostError, claude_led, stopped};
use brigade_wire::name::{MemberName, TeamName};

use super::keys::KeyCommand;
use super::replay::ReplayPlayer;
use super::screen::Screen;
use super::screen::attached::AttachedState;
use super::style::Theme;

/// The source of the records on the screen: a live team or a journal.
pub(crate) enum RecordSource {
    Live(EventStream),
    Replay(ReplayPlayer),
}

impl RecordSource {
    pub(crate) async fn next(&mut self) -> Option<RecordBatch> {
        match self {
            Self::Live(feed) => feed.next().await,
            Self::Replay(player) => Some(player.next().await),
        }
    }
}

/// Opens the team that a command would use. If that is not clear, opens the first team and shows the list of teams.
pub(crate) async fn open_initial_team(
    context: &Context,
    theme: Theme,
) -> Result<(Screen, RecordSource), HostError> {
    let teams = context.teams().await?;
    match (context.team().await, teams.first()) {
        (Err(_), Some(first)) if context.named_team().is_none() => {
            let (mut screen, source) = open_team(context, first.clone(), theme).await?;
            // `open_team` has already loaded the list of teams, so ignore the effect that would fetch it
            // again.
            let _ignored = screen.run_command(KeyCommand::Teams);
            Ok((screen, source))
        }
        (team, _) => open_team(context, team?, theme).await,
    }
}

/// Opens a team in the store. The source delivers the team's whole history first, then new records.
pub(crate) async fn open_team(
    context: &Context,
    team: TeamName,
    theme: Theme,
) -> Result<(Screen, RecordSource), HostError> {
    let (feed, lookup) = context.event_stream(&team).await?;
    let mut screen = Screen::new(team.to_string(), lookup, theme, context.clock.now());
    // A person without an identity on this team can only view it.
    screen.me = context.identity(&team).await.ok();
    if let Some(me) = context.named_member() {
        let seat = context.seat_of(team.clone(), me.clone());
        if context.team_exists(&team).await? && seat.role().await?.is_none() {
            return Err(seat.not_a_member_error().await?.into());
        }
    }
    screen.teams = context.teams().await?;
    Ok((screen, RecordSource::Live(feed)))
}

/// Opens the screen of one member.
pub(crate) async fn open_attached(
    context: &Context,
    member: &MemberName,
    theme: Theme,
) -> Result<(Screen, RecordSource), HostError> {
    let team = context.team().await?;
    let seat = context.seat_of(team.clone(), member.clone());
    if seat.role().await?.is_none() {
        let error = seat.not_a_member_error().await?.into();
        return Err(stopped::explain(context, error).await);
    }
    let (mut screen, source) = open_team(context, team, theme).await?;
    let view_only = match claude_led::sending_seat(context, member.as_str()).await {
        Ok(sender) if sender.name == *member => Some(format!("you are {member}")),
        Ok(sender) => {
            screen.me = Some(sender.name);
            None
        }
        Err(error) => Some(error.to_one_line()),
    };
    if view_only.is_some() {
        screen.me = None;
    }
    screen.attached = Some(AttachedState::new(member.clone(), view_only));
    Ok((screen, source))
}

/// Opens a journal file for a replay.
pub(crate) async fn open_replay(
    path: &Path,
    speed: f64,
    theme: Theme,
) -> Result<(Screen, RecordSource), HostError> {
    let (feed, lookup) = stream_records_file(path).map_err(HostError::failed)?;
    let player = ReplayPlayer::start(feed, speed).await;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut screen = Screen::new(name.unwrap_or_default(), lookup, theme, player.now());
    screen.replay = Some(player.state());
    Ok((screen, RecordSource::Replay(player)))
}

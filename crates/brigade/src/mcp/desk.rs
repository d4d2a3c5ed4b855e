//! The context of one tool call: the calling seat, and access to the connection.

use std::time::Duration;

use brigade_core::event::MessageKey;
use brigade_core::mail::{self, MailError, Which};
use brigade_core::seat::Seat;
use brigade_core::store::Mail;
use brigade_wire::name::MemberName;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;

use super::reply::Refusal;
use super::server::Server;
use super::team_view::with_team;

/// The context of one tool call.
pub(super) struct Desk<'c> {
    pub(super) server: &'c Server,
    pub(super) call: &'c RequestContext<RoleServer>,
    seat: Option<Seat>,
}

impl<'c> Desk<'c> {
    pub(super) fn new(server: &'c Server, call: &'c RequestContext<RoleServer>) -> Self {
        Self { server, call, seat: server.seat() }
    }

    /// The calling seat. It is fixed when the server starts; no argument can change it.
    pub(super) fn seat(&self) -> Result<&Seat, Refusal> {
        let none = || Refusal::new("you have no team yet; create one with team_create");
        self.seat.as_ref().ok_or_else(none)
    }

    /// The colour of a member.
    pub(super) async fn color_of(&self, name: &str) -> Result<Option<String>, Refusal> {
        let color = |team: &brigade_wire::team::Team<'_>| {
            team.member(name).and_then(|member| Some(member.color()?.into_owned()))
        };
        with_team(self.seat()?, color).await
    }

    /// Checks that the team has a member with this name.
    pub(super) async fn member(&self, name: &str) -> Result<MemberName, Refusal> {
        let seat = self.seat()?;
        let names = |team: &brigade_wire::team::Team<'_>| {
            team.members().filter_map(|member| Some(member.name()?.into_owned())).collect()
        };
        let members: Vec<String> = with_team(seat, names).await?;
        match name.parse() {
            Ok(found) if members.iter().any(|member| member == name) => Ok(found),
            _ => {
                let (to, team) = (name.to_owned(), seat.team.to_string());
                Err(MailError::NoMember { to, team, members }.into())
            }
        }
    }

    /// The messages the model has not seen, except those in another answer that is being sent.
    pub(super) async fn unseen(&self) -> Result<Vec<Mail>, Refusal> {
        let seat = self.seat()?;
        let mut mail = mail::inbox(seat, &seat.name, Which::All).await?;
        let on_their_way = self.server.handed.on_their_way();
        let unseen = self.server.handed.unseen();
        mail.retain(|mail| {
            (mail.is_unread() || unseen.contains(&mail.key)) && !on_their_way.contains(&mail.key)
        });
        Ok(mail)
    }

    /// Marks these messages read once the answer to this call has been written.
    pub(super) fn hand_out(&self, keys: Vec<MessageKey>) {
        if let Some(seat) = &self.seat
            && !keys.is_empty()
        {
            self.server.handed.give(self.call.id.clone(), seat.clone(), keys);
        }
    }

    /// Sends a progress notification, if the client asked for them.
    pub(super) async fn progress(&self, done: Duration, of: Duration) {
        if let Some(token) = self.call.meta.get_progress_token() {
            let mut progress = ProgressNotificationParam::new(token, done.as_secs_f64());
            progress.total = Some(of.as_secs_f64());
            progress.message = Some("waiting for messages".to_owned());
            if let Err(error) = self.call.peer.notify_progress(progress).await {
                tracing::debug!(%error, "cannot send a progress notification");
            }
        }
    }

    /// Whether the client cancelled the call.
    pub(super) fn is_called_off(&self) -> bool {
        self.call.ct.is_cancelled()
    }

    /// Waits until the client cancels the call.
    pub(super) async fn called_off(&self) {
        self.call.ct.cancelled().await;
    }
}

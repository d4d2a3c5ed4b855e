//! The context of one tool call: the caller's seat, and access to the connection with the client.

use std::time::Duration;

use brigade_core::event::MessageKey;
use brigade_core::mail::{self, InboxFilter, MailError};
use brigade_core::seat::Seat;
use brigade_core::store::Mail;
use brigade_wire::name::MemberName;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;

use crate::reply::ToolError;
use crate::server::McpServer;
use crate::team_view::with_team;

/// The context of one tool call.
pub(super) struct CallContext<'c> {
    pub(super) server: &'c McpServer,
    pub(super) request: &'c RequestContext<RoleServer>,
    seat: Option<Seat>,
}

impl<'c> CallContext<'c> {
    pub(super) fn new(server: &'c McpServer, request: &'c RequestContext<RoleServer>) -> Self {
        Self { server, request, seat: server.seat() }
    }

    /// Returns the caller's seat. The seat is fixed when the server starts, and no tool argument can change it.
    pub(super) fn seat(&self) -> Result<&Seat, ToolError> {
        let no_team = || ToolError::new("you have no team yet; create one with team_create");
        self.seat.as_ref().ok_or_else(no_team)
    }

    /// Returns the current folder of the server.
    pub(super) fn cwd(&self) -> String {
        self.server.context.cwd.to_string_lossy().into_owned()
    }

    /// Returns the colour of a member.
    pub(super) async fn color_of(&self, name: &str) -> Result<Option<String>, ToolError> {
        let color = |team: &brigade_wire::team::Team<'_>| {
            team.member(name).and_then(|member| Some(member.color()?.into_owned()))
        };
        with_team(self.seat()?, color).await
    }

    /// Checks that the team has a member with this name, and returns the parsed name.
    pub(super) async fn member(&self, name: &str) -> Result<MemberName, ToolError> {
        let seat = self.seat()?;
        let all_names = |team: &brigade_wire::team::Team<'_>| {
            team.members().filter_map(|member| Some(member.name()?.into_owned())).collect()
        };
        let members: Vec<String> = with_team(seat, all_names).await?;
        match name.parse() {
            Ok(found) if members.iter().any(|member| member == name) => Ok(found),
            _ => {
                let (to, team) = (name.to_owned(), seat.team.to_string());
                Err(MailError::NoMember { to, team, members }.into())
            }
        }
    }

    /// Returns the messages that the model has not seen. Skips messages that another unfinished answer contains.
    pub(super) async fn unseen(&self) -> Result<Vec<Mail>, ToolError> {
        let seat = self.seat()?;
        let mut mail = mail::inbox(seat, &seat.name, InboxFilter::All).await?;
        let in_unwritten_answers = self.server.read_marks.in_unwritten_answers();
        let unseen = self.server.read_marks.unseen();
        mail.retain(|mail| {
            (mail.is_unread() || unseen.contains(&mail.key))
                && !in_unwritten_answers.contains(&mail.key)
        });
        Ok(mail)
    }

    /// Registers these messages, so that they are marked as read once the answer to this call has been written.
    pub(super) fn deliver(&self, keys: Vec<MessageKey>) {
        if let Some(seat) = &self.seat
            && !keys.is_empty()
        {
            self.server.read_marks.register(self.request.id.clone(), seat.clone(), keys);
        }
    }

    /// Sends a progress notification, if the client asked for progress notifications.
    pub(super) async fn progress(&self, done: Duration, total: Duration) {
        if let Some(token) = self.request.meta.get_progress_token() {
            let mut progress = ProgressNotificationParam::new(token, done.as_secs_f64());
            progress.total = Some(total.as_secs_f64());
            progress.message = Some("waiting for messages".to_owned());
            if let Err(error) = self.request.peer.notify_progress(progress).await {
                tracing::debug!(%error, "cannot send a progress notification");
            }
        }
    }

    /// Returns whether the client cancelled the call.
    pub(super) fn is_cancelled(&self) -> bool {
        self.request.ct.is_cancelled()
    }

    /// Waits until the client cancels the call.
    pub(super) async fn cancelled(&self) {
        self.request.ct.cancelled().await;
    }
}

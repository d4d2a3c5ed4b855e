//! One call of the API: what the client sent.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::Bytes;
use brigade_host::Context;
use brigade_wire::name::{MemberName, TaskId, TeamName};
use serde::de::DeserializeOwned;

use crate::access::AccessGrant;
use crate::problem::{Problem, ProblemKind};
use crate::state::{Credential, WebState};

/// The most entries that a list returns.
const MAX_ENTRIES: usize = 500;
/// The number of entries that a list returns if the client names no limit.
const ENTRIES: usize = 100;

/// A request of a client.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) state: Arc<WebState>,
    pub(crate) grant: AccessGrant,
    pub(crate) path: HashMap<String, String>,
    pub(crate) query: HashMap<String, String>,
    pub(crate) body: Bytes,
    /// The id of the last event that the client of a stream received.
    pub(crate) last_event_id: Option<String>,
    /// The credential of a stream, which is checked again while the stream is open.
    pub(crate) credential: Option<Credential>,
}

impl Call {
    /// Returns the context of a call that names no team.
    pub(crate) fn context(&self) -> Context {
        self.state.context.for_web(&self.grant.name)
    }

    /// Returns the context of the team in the path. Fails if the team does not exist.
    pub(crate) async fn team_context(&self) -> Result<(Context, TeamName), Problem> {
        let team: TeamName = self.segment("team")?;
        let context = self.context().with_team(Some(team.clone()));
        context.check_exists(&team).await?;
        Ok((context, team))
    }

    /// Returns the member in the path.
    pub(crate) fn member(&self) -> Result<MemberName, Problem> {
        self.segment("member")
    }

    /// Returns the task in the path.
    pub(crate) fn task(&self) -> Result<TaskId, Problem> {
        self.segment("task")
    }

    /// Returns a part of the path.
    pub(crate) fn segment<T: FromStr>(&self, name: &str) -> Result<T, Problem> {
        let text = self.path.get(name).map(String::as_str).unwrap_or_default();
        text.parse().map_err(|_| {
            Problem::new(ProblemKind::NotFound, format!("{text:?} is not the name of a {name}"))
        })
    }

    /// Returns a parameter of the query; `None` if the client did not send it.
    pub(crate) fn parameter<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.query.get(name) else { return Ok(None) };
        let bad = |error| Problem::invalid(format!("the parameter {name} is not valid: {error}"));
        text.parse().map(Some).map_err(bad)
    }

    /// Returns how many entries the client wants.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        Ok(self.parameter("limit")?.unwrap_or(ENTRIES).clamp(1, MAX_ENTRIES))
    }

    /// Returns the content of the request.
    pub(crate) fn content<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let bytes: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(bytes)
            .map_err(|error| Problem::invalid(format!("the content is not valid: {error}")))
    }
}

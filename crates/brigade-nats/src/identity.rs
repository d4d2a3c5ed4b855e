//! A client's identity and role, read from its credentials.
//!
//! The server enforces the permissions in the credentials. The client reads the credentials only to avoid requests
//! that the server would refuse.
//!
//! ```
//! use brigade_nats::Identity;
//! use brigade_nats::identity::CredentialRole;
//!
//! assert_eq!(Identity::trusted().role, CredentialRole::Admin);
//! assert!(Identity::parse("no credentials").is_err());
//! ```

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use brigade_wire::name::{MemberName, TeamName};
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::layout::Subjects;
use crate::options::StreamSettings;

/// A client's identity, as its credentials describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The client's role.
    pub role: CredentialRole,
    /// The team; `None` for an administrator.
    pub team: Option<TeamName>,
    /// The members that the client may act as. A host may run several members.
    pub members: Vec<MemberName>,
    /// Whether the client may approve or reject requests, and give orders.
    pub answers: bool,
    /// The stream settings of the organisation.
    pub settings: StreamSettings,
    /// The team's shard; `None` for an administrator.
    pub shard: Option<u16>,
    /// Prefix of the subjects on which the client receives answers. Each credentials file has its own prefix, so
    /// that no client receives another client's answers.
    pub inbox_prefix: String,
    /// Prefix of the subjects for JetStream API requests. Seats have their own account, which imports a few API
    /// subjects under the prefix [`SEATS_API`].
    pub api_prefix: &'static str,
    /// When the credentials expire; `None` if they do not expire.
    pub until: Option<Timestamp>,
}

/// Prefix of the JetStream API in the account that owns the streams.
pub const API: &str = "$JS.API";
/// Prefix under which the seats' account imports parts of the JetStream API.
pub const SEATS_API: &str = "js";

/// The role of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CredentialRole {
    /// Acts as some members of a team.
    Member,
    /// Acts as some members. Also writes the roster, and the read marks and notes of all members.
    Lead,
    /// Administers the organisation; may do everything.
    Admin,
}

impl CredentialRole {
    /// Returns the role's name in the credentials.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Lead => "lead",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for CredentialRole {
    type Err = ();

    fn from_str(value: &str) -> Result<Self, ()> {
        match value {
            "member" => Ok(Self::Member),
            "lead" => Ok(Self::Lead),
            "admin" => Ok(Self::Admin),
            _ => Err(()),
        }
    }
}

/// Why credentials could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file could not be read.
    #[error("cannot read the credentials {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a valid credentials file.
    #[error("{} is not a valid credentials file: {what}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: &'static str,
    },
}

#[derive(Deserialize)]
struct CredentialClaims {
    sub: String,
    /// The expiry, in seconds since 1970; zero or absent if there is none.
    #[serde(default)]
    exp: i64,
    #[serde(default)]
    nats: NatsClaims,
}

#[derive(Deserialize, Default)]
struct NatsClaims {
    #[serde(default)]
    tags: Vec<String>,
}

impl Identity {
    /// Returns the identity of a client without credentials, for a server that accepts every client.
    pub fn trusted() -> Self {
        Self {
            role: CredentialRole::Admin,
            team: None,
            members: Vec::new(),
            answers: true,
            settings: StreamSettings::default(),
            shard: None,
            inbox_prefix: inbox_prefix(CredentialRole::Admin, ""),
            api_prefix: API,
            until: None,
        }
    }

    /// Returns whose credentials these are, for messages.
    pub fn holder(&self) -> String {
        let Some(team) = &self.team else { return "these credentials".to_owned() };
        let names: Vec<&str> = self.members.iter().map(MemberName::as_str).collect();
        format!("the credentials of {} in team {team}", names.join(", "))
    }

    /// Reads the identity from a credentials file. Does not check the signature, because the server does.
    pub fn from_creds(path: &Path) -> Result<Self, IdentityError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| IdentityError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|what| IdentityError::Form { path: path.to_owned(), what })
    }

    /// Reads the identity from the text of a credentials file.
    pub fn parse(creds: &str) -> Result<Self, &'static str> {
        let claims = claims(creds)?;
        let tags = |key| claims.nats.tags.iter().filter_map(move |tag| tag_value(tag, key));
        // Credentials made by other tools have no tags. The server enforces their permissions anyway.
        let until = Timestamp::from_second(claims.exp).ok().filter(|_| claims.exp > 0);
        let Some(role) = tags("role").next() else { return Ok(Self { until, ..Self::trusted() }) };
        let role: CredentialRole = role.parse().map_err(|()| "it has an unknown role")?;
        let team = tags("team").next().map(str::parse).transpose();
        let team: Option<TeamName> = team.map_err(|_| "its team name is invalid")?;
        let members: Result<Vec<MemberName>, _> = tags("member").map(str::parse).collect();
        let members = members.map_err(|_| "a member name in it is invalid")?;
        if role != CredentialRole::Admin && (team.is_none() || members.is_empty()) {
            return Err("it does not name a team and its members");
        }
        let number = |key, default| match tags(key).next().map(str::parse::<u64>) {
            None => Ok(default),
            Some(number) => number.map_err(|_| "a number in it is invalid"),
        };
        let defaults = StreamSettings::default();
        let small = |number: u64| u16::try_from(number).map_err(|_| "a number in it is too large");
        let settings = StreamSettings {
            shards: small(number("shards", defaults.shards.into())?)?,
            replicas: match number("replicas", 0)? {
                0 => None,
                replicas => Some(small(replicas)?.into()),
            },
            retention: Duration::from_secs(number("retention", defaults.retention.as_secs())?),
        };
        let shard = tags("shard").next().map(str::parse::<u16>).transpose();
        let shard = shard.map_err(|_| "its shard is invalid")?;
        let answers = role == CredentialRole::Admin || tags("answers").any(|value| value == "yes");
        let inbox_prefix = inbox_prefix(role, &claims.sub);
        let api_prefix = if role == CredentialRole::Admin { API } else { SEATS_API };
        Ok(Self { role, team, members, answers, settings, shard, inbox_prefix, api_prefix, until })
    }

    /// Returns the subjects of the client's team; `None` for an administrator.
    pub fn subjects(&self) -> Option<Subjects> {
        let team = self.team.as_ref()?;
        Some(match self.shard {
            Some(shard) => Subjects { shard, team: team.clone() },
            None => Subjects::new(team, self.settings.shards),
        })
    }
}

/// Returns the prefix of the subjects on which the owner of a key receives answers.
pub(crate) fn inbox_prefix(role: CredentialRole, public_key: &str) -> String {
    match role {
        CredentialRole::Admin => "_INBOX".to_owned(),
        CredentialRole::Member | CredentialRole::Lead => format!("_INBOX.{public_key}"),
    }
}

/// Returns the value of a tag of the form `key:value`; `None` if the tag has another key. Ignores the case of the
/// key, because some tools convert keys to lower case.
fn tag_value<'t>(tag: &'t str, key: &str) -> Option<&'t str> {
    let (tag_key, value) = tag.split_once(':')?;
    tag_key.eq_ignore_ascii_case(key).then_some(value)
}

fn claims(creds: &str) -> Result<CredentialClaims, &'static str> {
    let after = creds.split_once("BEGIN NATS USER JWT-----").ok_or("it has no user JWT")?.1;
    let (jwt, _) = after.split_once("-----").ok_or("its user JWT is incomplete")?;
    let body = jwt.trim().split('.').nth(1).ok_or("its user JWT is invalid")?;
    let body = BASE64URL_NOPAD.decode(body.as_bytes()).map_err(|_| "its user JWT is invalid")?;
    serde_json::from_slice(&body).map_err(|_| "its user JWT has no claims")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn creds(claims: &str) -> String {
        let body = BASE64URL_NOPAD.encode(claims.as_bytes());
        format!("-----BEGIN NATS USER JWT-----\nx.{body}.y\n------END NATS USER JWT------\n")
    }

    fn tagged(tags: &str) -> Result<Identity, &'static str> {
        Identity::parse(&creds(&format!(r#"{{"sub":"UKEY","nats":{{"tags":[{tags}]}}}}"#)))
    }

    #[test]
    fn a_seat_is_read_from_the_tags() {
        let seat = tagged(
            r#""team:demo","member:Alice","member:bob","role:member","shards:16","retention:60""#,
        )
        .unwrap();
        assert_eq!(seat.role, CredentialRole::Member);
        assert_eq!(
            seat.members.iter().map(MemberName::as_str).collect::<Vec<_>>(),
            ["Alice", "bob"]
        );
        assert_eq!(seat.inbox_prefix, "_INBOX.UKEY");
        assert_eq!(seat.api_prefix, "js");
        assert!(!seat.answers);
        assert_eq!(
            seat.settings,
            StreamSettings { shards: 16, replicas: None, retention: Duration::from_secs(60) }
        );
        assert_eq!(seat.subjects(), Some(Subjects::new(&"demo".parse().unwrap(), 16)));
    }

    #[test]
    fn a_seat_uses_the_shard_in_its_credentials() {
        let tags = r#""team:demo","member:bob","role:member","shards:4""#;
        let added = tagged(&format!(r#"{tags},"shard:4""#)).unwrap();
        assert_eq!(added.subjects().map(|subjects| subjects.shard), Some(4));
        assert_eq!(tagged(&format!(r#"{tags},"shard:x""#)), Err("its shard is invalid"));
    }

    #[test]
    fn credentials_without_tags_are_trusted() {
        assert_eq!(tagged("").unwrap(), Identity::trusted());
    }

    #[test]
    fn invalid_credentials_are_rejected() {
        for text in ["", "-----BEGIN NATS USER JWT-----\nabc", "{}"] {
            assert!(Identity::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(tagged(r#""role:king""#), Err("it has an unknown role"));
        assert_eq!(
            tagged(r#""role:lead","team:demo""#),
            Err("it does not name a team and its members")
        );
        let invalid = tagged(r#""role:lead","team:a.b","member:x""#);
        assert_eq!(invalid, Err("its team name is invalid"));
    }
}

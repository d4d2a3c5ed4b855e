//! Who a client is, by its credentials.
//!
//! The server lets a client do what its credentials say, whatever the client believes of itself. What
//! stands here is for the client alone: so that it does not ask for what it would be refused.
//!
//! ```
//! use brigade_nats::Identity;
//! use brigade_nats::identity::Role;
//!
//! assert_eq!(Identity::trusted().role, Role::Admin);
//! assert!(Identity::parse("no credentials").is_err());
//! ```

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use brigade_wire::name::{MemberName, TeamName};
use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::layout::Place;
use crate::options::Settings;

/// Who a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What it may do.
    pub role: Role,
    /// Its team; `None` for those who run the organisation.
    pub team: Option<TeamName>,
    /// For whom it speaks, in its team. More than one for a host on which several members live.
    pub members: Vec<MemberName>,
    /// Whether it may answer requests and give orders.
    pub answers: bool,
    /// How the streams of its organisation are.
    pub settings: Settings,
    /// What the subjects begin with on which it hears the server's answers. No two credentials have the
    /// same, so that nobody hears what another asked.
    pub inbox_prefix: String,
    /// What the subjects begin with on which the server is asked for what is stored. Seats are in an
    /// account of their own, to which the owner of the streams lends a few of its subjects under this name.
    pub api_prefix: &'static str,
}

/// The prefix of the server's own interface, for those who are where the streams are.
pub const API: &str = "$JS.API";
/// The same as seats know it.
pub const SEATS_API: &str = "js";

/// What a seat may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Speaks for some members of a team.
    Member,
    /// Also keeps the roster, and everybody's marks and notes.
    Lead,
    /// Runs the organisation: everything.
    Admin,
}

impl Role {
    /// As it is written in the credentials.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Lead => "lead",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "member" => Ok(Self::Member),
            "lead" => Ok(Self::Lead),
            "admin" => Ok(Self::Admin),
            _ => Err(()),
        }
    }
}

/// Why it is not known who a client is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The file cannot be read.
    #[error("cannot read the credentials {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The file is something else.
    #[error("{} is no credentials file: {what}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is missing in it.
        what: &'static str,
    },
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    nats: Nats,
}

#[derive(Deserialize, Default)]
struct Nats {
    #[serde(default)]
    tags: Vec<String>,
}

impl Identity {
    /// Who is anybody, where the engine lets everybody in.
    pub fn trusted() -> Self {
        Self {
            role: Role::Admin,
            team: None,
            members: Vec::new(),
            answers: true,
            settings: Settings::default(),
            inbox_prefix: inbox_prefix(Role::Admin, ""),
            api_prefix: API,
        }
    }

    /// Who the owner of a credentials file is. The signature is the server's to check.
    pub fn from_creds(path: &Path) -> Result<Self, IdentityError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| IdentityError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|what| IdentityError::Form { path: path.to_owned(), what })
    }

    /// Who the owner of credentials is.
    pub fn parse(creds: &str) -> Result<Self, &'static str> {
        let claims = claims(creds)?;
        let tags = |key| claims.nats.tags.iter().filter_map(move |tag| value(tag, key));
        // Credentials that were made elsewhere say nothing of this. The server knows what they are for.
        let Some(role) = tags("role").next() else { return Ok(Self::trusted()) };
        let role: Role = role.parse().map_err(|()| "it names a role that is not known")?;
        let team = tags("team").next().map(str::parse).transpose();
        let team: Option<TeamName> =
            team.map_err(|_| "its team has a name that no team can have")?;
        let members: Result<Vec<MemberName>, _> = tags("member").map(str::parse).collect();
        let members = members.map_err(|_| "a member has a name that no member can have")?;
        if role != Role::Admin && (team.is_none() || members.is_empty()) {
            return Err("it does not say for whom it speaks");
        }
        let number = |key, otherwise| match tags(key).next().map(str::parse::<u64>) {
            None => Ok(otherwise),
            Some(number) => number.map_err(|_| "a number in it is none"),
        };
        let usual = Settings::default();
        let small = |number: u64| u16::try_from(number).map_err(|_| "a number in it is too large");
        let settings = Settings {
            shards: small(number("shards", usual.shards.into())?)?,
            replicas: match number("replicas", 0)? {
                0 => None,
                replicas => Some(small(replicas)?.into()),
            },
            retention: Duration::from_secs(number("retention", usual.retention.as_secs())?),
        };
        let answers = role == Role::Admin || tags("answers").any(|word| word == "yes");
        let inbox_prefix = inbox_prefix(role, &claims.sub);
        let api_prefix = if role == Role::Admin { API } else { SEATS_API };
        Ok(Self { role, team, members, answers, settings, inbox_prefix, api_prefix })
    }

    /// Where its team lies; `None` for those who have no team of their own.
    pub fn place(&self) -> Option<Place> {
        self.team.as_ref().map(|team| Place::of(team, self.settings.shards))
    }
}

/// Where the server's answers to the owner of a key are heard.
pub(crate) fn inbox_prefix(role: Role, public_key: &str) -> String {
    match role {
        Role::Admin => "_INBOX".to_owned(),
        Role::Member | Role::Lead => format!("_INBOX.{public_key}"),
    }
}

/// The value of a tag with this key. Some tools write keys in lower case, whatever was said.
fn value<'t>(tag: &'t str, key: &str) -> Option<&'t str> {
    let (its, value) = tag.split_once(':')?;
    its.eq_ignore_ascii_case(key).then_some(value)
}

fn claims(creds: &str) -> Result<Claims, &'static str> {
    let after = creds.split_once("BEGIN NATS USER JWT-----").ok_or("there is no user JWT in it")?.1;
    let (jwt, _) = after.split_once("-----").ok_or("its user JWT has no end")?;
    let body = jwt.trim().split('.').nth(1).ok_or("its user JWT is none")?;
    let body = BASE64URL_NOPAD.decode(body.as_bytes()).map_err(|_| "its user JWT is none")?;
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
    fn who_a_seat_is() {
        let seat = tagged(
            r#""team:demo","member:Alice","member:bob","role:member","shards:16","retention:60""#,
        )
        .unwrap();
        assert_eq!(seat.role, Role::Member);
        assert_eq!(
            seat.members.iter().map(MemberName::as_str).collect::<Vec<_>>(),
            ["Alice", "bob"]
        );
        assert_eq!(seat.inbox_prefix, "_INBOX.UKEY");
        assert_eq!(seat.api_prefix, "js");
        assert!(!seat.answers);
        assert_eq!(
            seat.settings,
            Settings { shards: 16, replicas: None, retention: Duration::from_secs(60) }
        );
        assert_eq!(seat.place(), Some(Place::of(&"demo".parse().unwrap(), 16)));
    }

    #[test]
    fn credentials_made_elsewhere_are_left_to_the_server() {
        assert_eq!(tagged("").unwrap(), Identity::trusted());
    }

    #[test]
    fn what_is_no_credentials_file() {
        for text in ["", "-----BEGIN NATS USER JWT-----\nabc", "{}"] {
            assert!(Identity::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(tagged(r#""role:king""#), Err("it names a role that is not known"));
        assert_eq!(tagged(r#""role:lead","team:demo""#), Err("it does not say for whom it speaks"));
        let wrong = tagged(r#""role:lead","team:a.b","member:x""#);
        assert_eq!(wrong, Err("its team has a name that no team can have"));
    }
}

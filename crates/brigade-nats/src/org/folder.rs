//! The operator's folder: keys, organisations, credentials and server configuration.
//!
//! ```text
//! operator.nk system.nk          keys of the operator and the system account
//! operator.json                  the operator's record: JWTs, servers, route password
//! server-1.conf …                configuration of each server
//! orgs/NAME/account.nk seats.nk  keys of the organisation's two accounts
//! orgs/NAME/org.json             settings and issued credentials
//! orgs/NAME/admin.creds          credentials of the administrator
//! orgs/NAME/creds/               credentials of the seats
//! data/                          data of servers started with this configuration
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use brigade_wire::name::{MemberName, TeamName};
use data_encoding::BASE32_NOPAD;
use jiff::{SignedDuration, Timestamp};
use nkeys::{KeyPair, KeyPairType};
use serde::{Deserialize, Serialize};

use super::OrgError;
use super::claims;
use super::config::{Cluster, ServerConfig};
use super::files::{failed, lock, make_dir, read_json, remove, replace, replace_json, write_new};
use super::jwt::{self, JwtSubject};
use super::record::{IssuedSeat, Organisation};
use super::rights::rights;
use crate::identity::{CredentialRole, inbox_prefix};
use crate::layout::{self, Subjects};
use crate::options::StreamSettings;

/// How long credentials for the system account are valid. Brigade creates new credentials for each login.
const SYSTEM_LOGIN_VALIDITY: SignedDuration = SignedDuration::from_mins(5);

/// An operator's folder, locked while this value exists.
#[derive(Debug)]
pub struct Folder {
    dir: PathBuf,
    operator: OperatorRecord,
    /// The lock on the folder, released on drop.
    _lock: File,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperatorRecord {
    jwt: String,
    system_account: String,
    system_jwt: String,
    /// The password with which servers connect to each other.
    route_password: String,
    cluster: Cluster,
}

/// A description of credentials to issue.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The team.
    pub team: TeamName,
    /// The members as which the owner of the credentials may act; at least one.
    pub members: Vec<MemberName>,
    /// The role.
    pub role: CredentialRole,
    /// Whether the credentials allow their owner to answer requests and to give orders.
    pub answers: bool,
    /// When the credentials expire; `None` if never.
    pub until: Option<Timestamp>,
    /// The new credentials file; `None` for a file in the operator's folder.
    pub out: Option<PathBuf>,
    /// The team's shard, according to the servers; `None` if no shards were added to the organisation.
    pub shard: Option<u16>,
}

impl Folder {
    /// Creates an operator in a folder. If the folder already has an operator, opens the folder instead. In that
    /// case, `cluster` must be `None` or equal to the operator's cluster.
    pub fn init(dir: &Path, cluster: Option<Cluster>, now: Timestamp) -> Result<Self, OrgError> {
        if dir.join("operator.json").exists() {
            let folder = Self::open(dir)?;
            return match cluster {
                Some(cluster) if cluster != folder.operator.cluster => {
                    Err(OrgError::OtherServers { dir: dir.to_owned() })
                }
                _ => Ok(folder),
            };
        }
        make_dir(dir)?;
        let dir = dir.canonicalize().map_err(|source| failed("find", dir, source))?;
        let lock = lock(&dir)?;
        let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
        let system_account = system.public_key();
        let sign = |name, key: &KeyPair, nats| {
            let subject = JwtSubject { name, key: &key.public_key(), from: now, until: None };
            jwt::sign(&operator, &subject, &nats)
        };
        let record = OperatorRecord {
            jwt: sign("brigade", &operator, claims::operator(&system_account))?,
            system_jwt: sign("system", &system, claims::system())?,
            system_account,
            route_password: BASE32_NOPAD
                .encode(&KeyPair::new(KeyPairType::Server).seed()?.into_bytes()),
            cluster: cluster.unwrap_or_else(Cluster::here),
        };
        write_new(&dir.join("operator.nk"), operator.seed()?.as_bytes())?;
        write_new(&dir.join("system.nk"), system.seed()?.as_bytes())?;
        replace_json(&dir.join("operator.json"), &record)?;
        let folder = Self { dir, operator: record, _lock: lock };
        folder.configure()?;
        Ok(folder)
    }

    /// Opens an operator's folder.
    pub fn open(dir: &Path) -> Result<Self, OrgError> {
        if !dir.join("operator.json").exists() {
            return Err(OrgError::NoFolder { dir: dir.to_owned() });
        }
        let dir = dir.canonicalize().map_err(|source| failed("find", dir, source))?;
        let lock = lock(&dir)?;
        let operator = read_json(&dir.join("operator.json"))?;
        Ok(Self { dir, operator, _lock: lock })
    }

    /// Returns the folder's path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the operator's servers.
    pub fn cluster(&self) -> &Cluster {
        &self.operator.cluster
    }

    /// Returns the path of the configuration file of the server with this number, counted from 1.
    pub fn server(&self, number: usize) -> PathBuf {
        self.dir.join(format!("server-{number}.conf"))
    }

    /// Returns the path of the credentials file for an organisation's administrator.
    pub fn admin(&self, name: &TeamName) -> PathBuf {
        self.org(name).join("admin.creds")
    }

    fn org(&self, name: &TeamName) -> PathBuf {
        self.dir.join("orgs").join(name.as_str())
    }

    /// Creates an organisation.
    pub fn add(
        &self,
        name: &TeamName,
        settings: &StreamSettings,
        now: Timestamp,
    ) -> Result<Organisation, OrgError> {
        let StreamSettings { shards, replicas, retention } = settings.clone();
        if !layout::SHARDS.contains(&shards) {
            return Err(OrgError::Shards { shards });
        }
        let servers = self.cluster().nodes.len();
        if let Some(replicas) = replicas.filter(|copies| !(1..=servers).contains(copies)) {
            return Err(OrgError::Replicas { replicas, servers });
        }
        let dir = self.org(name);
        if dir.join("org.json").exists() {
            return Err(OrgError::Exists { name: name.clone() });
        }
        make_dir(&dir.join("creds"))?;
        // `org.json` is missing, so existing keys are left over from an attempt that crashed. Overwrite them.
        let (account, seats) = (KeyPair::new_account(), KeyPair::new_account());
        replace(&dir.join("account.nk"), account.seed()?.as_bytes())?;
        replace(&dir.join("seats.nk"), seats.seed()?.as_bytes())?;
        let mut tags = vec!["role:admin".to_owned()];
        tags.extend(settings_tags(settings));
        let nats = claims::user(None, &tags);
        let (creds, _) = user(&account, "admin", None, now, |_| nats.clone())?;
        replace(&dir.join("admin.creds"), creds.as_bytes())?;
        let organisation = Organisation {
            name: name.clone(),
            account: account.public_key(),
            seats_account: seats.public_key(),
            shards,
            shards_added: false,
            replicas,
            retention_seconds: retention.as_secs(),
            changed: now.as_second(),
            seats: Vec::new(),
        };
        replace_json(&dir.join("org.json"), &organisation)?;
        self.configure()?;
        Ok(organisation)
    }

    /// Returns all organisations, sorted by name.
    pub fn organisations(&self) -> Result<Vec<Organisation>, OrgError> {
        let dir = self.dir.join("orgs");
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed("read", &dir, source)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| failed("read", &dir, source))?.path();
            let path = path.join("org.json");
            if path.exists() {
                all.push(read_json::<Organisation>(&path)?);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Returns the organisation with this name. Without a name, returns the only organisation.
    pub fn organisation(&self, name: Option<&TeamName>) -> Result<Organisation, OrgError> {
        let mut all = self.organisations()?;
        let names = || all.iter().map(|org| org.name.clone()).collect();
        match name {
            Some(name) => match all.iter().position(|org| org.name == *name) {
                Some(at) => Ok(all.swap_remove(at)),
                None => Err(OrgError::NoOrganisation { name: name.clone(), there: names() }),
            },
            None if all.len() > 1 => Err(OrgError::Several { there: names() }),
            None => all.pop().ok_or_else(|| OrgError::NoFolder { dir: self.dir.clone() }),
        }
    }

    /// Issues credentials, and adds them to the organisation's record.
    pub fn grant(
        &self,
        organisation: &mut Organisation,
        granted: Granted,
        now: Timestamp,
    ) -> Result<IssuedSeat, OrgError> {
        let dir = self.org(&organisation.name);
        let Granted { team, members, role, answers, until, out, shard } = granted;
        let subjects = match shard {
            Some(shard) => Subjects { shard, team: team.clone() },
            None if organisation.shards_added => {
                return Err(OrgError::UnknownShard { team });
            }
            None => Subjects::new(&team, organisation.shards),
        };
        let names: Vec<&str> = members.iter().map(MemberName::as_str).collect();
        let name = format!("{team}.{}", names.join("+"));
        let file = out.unwrap_or_else(|| dir.join("creds").join(format!("{name}.creds")));
        // A file may be replaced if all credentials that were ever written to it are revoked.
        let mut same_file = organisation.seats.iter().filter(|seat| seat.file == file).peekable();
        if same_file.peek().is_some() && same_file.all(|seat| seat.revoked.is_some()) {
            remove(&file)?;
        }
        let account = self.key(&dir.join("seats.nk"))?;
        let mut tags = vec![format!("team:{team}"), format!("role:{}", role.as_str())];
        tags.extend(members.iter().map(|member| format!("member:{member}")));
        tags.push(format!("answers:{}", if answers { "yes" } else { "no" }));
        tags.push(format!("shard:{}", subjects.shard));
        tags.extend(settings_tags(&organisation.settings()));
        let (creds, key) = user(&account, &name, until, now, |key| {
            let permissions = rights(role, answers, &subjects, &members, &inbox_prefix(role, key));
            claims::user(Some(&permissions), &tags)
        })?;
        write_new(&file, creds.as_bytes())?;
        let file = file.canonicalize().map_err(|source| failed("find", &file, source))?;
        let seat =
            IssuedSeat { team, members, role, answers, key, made: now, until, revoked: None, file };
        organisation.seats.push(seat.clone());
        replace_json(&dir.join("org.json"), &organisation)?;
        Ok(seat)
    }

    /// Records that shards are being added to an organisation. Must be called before a shard is added: from then on,
    /// only the servers know the shard of a team.
    pub fn record_added_shards(&self, organisation: &mut Organisation) -> Result<(), OrgError> {
        organisation.shards_added = true;
        replace_json(&self.org(&organisation.name).join("org.json"), &organisation)
    }

    /// Revokes all credentials that allow acting as this member, and returns them. The servers apply the
    /// revocation when they receive the updated accounts, or when they restart.
    pub fn revoke(
        &self,
        organisation: &mut Organisation,
        team: &TeamName,
        name: &MemberName,
        now: Timestamp,
    ) -> Result<Vec<IssuedSeat>, OrgError> {
        let mut revoked = Vec::new();
        for seat in &mut organisation.seats {
            if seat.revoked.is_none() && seat.team == *team && seat.members.contains(name) {
                seat.revoked = Some(now);
                revoked.push(seat.clone());
            }
        }
        if revoked.is_empty() {
            return Err(OrgError::NoCredentials { team: team.clone(), name: name.clone() });
        }
        // The servers accept an updated account only if it is newer than their own, in whole seconds. The time of
        // a change must therefore be at least one second after the previous change.
        organisation.changed = now.as_second().max(organisation.changed + 1);
        replace_json(&self.org(&organisation.name).join("org.json"), &organisation)?;
        self.configure()?;
        Ok(revoked)
    }

    /// Returns the public key and the current JWT of every account.
    pub fn accounts(&self) -> Result<Vec<(String, String)>, OrgError> {
        let operator = self.key(&self.dir.join("operator.nk"))?;
        let mut accounts =
            vec![(self.operator.system_account.clone(), self.operator.system_jwt.clone())];
        for org in self.organisations()? {
            let from = Timestamp::from_second(org.changed).unwrap_or_default();
            let seats_name = format!("{}-seats", org.name);
            let accounts_of_org = [
                (&org.account, org.name.as_str(), claims::streams()),
                (&org.seats_account, &seats_name, claims::seats(&org.account, &org.revoked())),
            ];
            for (key, name, nats) in accounts_of_org {
                let subject = JwtSubject { name, key, from, until: None };
                accounts.push((key.clone(), jwt::sign(&operator, &subject, &nats)?));
            }
        }
        Ok(accounts)
    }

    /// Creates a user of the system account, who can send requests to the servers for a short time.
    pub(super) fn system_user(&self, now: Timestamp) -> Result<(String, KeyPair), OrgError> {
        let system = self.key(&self.dir.join("system.nk"))?;
        let key = KeyPair::new_user();
        let until = now.checked_add(SYSTEM_LOGIN_VALIDITY).ok();
        let subject = JwtSubject { name: "brigade-org", key: &key.public_key(), from: now, until };
        Ok((jwt::sign(&system, &subject, &claims::user(None, &[]))?, key))
    }

    /// Writes the servers' configuration files.
    fn configure(&self) -> Result<(), OrgError> {
        let data = self.dir.join("data");
        make_dir(&data)?;
        let accounts = self.accounts()?;
        let server = ServerConfig {
            cluster: self.cluster(),
            data: &data,
            password: &self.operator.route_password,
            operator: &self.operator.jwt,
            system_account: &self.operator.system_account,
            accounts: &accounts,
        };
        for (at, node) in self.cluster().nodes.iter().enumerate() {
            replace(&self.server(at + 1), server.render(at + 1, node).as_bytes())?;
        }
        Ok(())
    }

    fn key(&self, path: &Path) -> Result<KeyPair, OrgError> {
        let seed = fs::read_to_string(path).map_err(|source| failed("read", path, source))?;
        KeyPair::from_seed(seed.trim())
            .map_err(|source| OrgError::Damaged { path: path.to_owned(), source: source.into() })
    }
}

/// Creates a user with a new key. Returns the user's credentials and public key.
fn user(
    account: &KeyPair,
    name: &str,
    until: Option<Timestamp>,
    now: Timestamp,
    nats: impl FnOnce(&str) -> serde_json::Value,
) -> Result<(String, String), OrgError> {
    let pair = KeyPair::new_user();
    let key = pair.public_key();
    let subject = JwtSubject { name, key: &key, from: now, until };
    let jwt = jwt::sign(account, &subject, &nats(&key))?;
    Ok((jwt::creds(&jwt, &pair.seed()?), key))
}

fn settings_tags(settings: &StreamSettings) -> Vec<String> {
    let StreamSettings { shards, replicas, retention } = settings;
    let replicas = replicas.map(|replicas| format!("replicas:{replicas}"));
    let always = [format!("shards:{shards}"), format!("retention:{}", retention.as_secs())];
    always.into_iter().chain(replicas).collect()
}

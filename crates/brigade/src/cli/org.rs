//! `brigade org …`

use std::path::PathBuf;
use std::time::Duration;

use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, Subcommand};

use super::duration::time;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade org init acme --dir /etc/brigade
  brigade org apply --dir /etc/brigade
  brigade org add-member demo team-lead --lead --dir /etc/brigade
  brigade org add-member demo alice bob --out host-b.creds --dir /etc/brigade
  brigade org revoke demo alice --dir /etc/brigade";

#[derive(Debug, Subcommand)]
pub(crate) enum OrgCommand {
    /// Create an organisation and the configuration of its servers
    ///
    /// Writes keys, credentials and one configuration file per server into a folder. The servers need
    /// not be running. A second organisation in the same folder shares the servers but is isolated
    /// from the first. Keep the folder secret: its keys can impersonate every member.
    Init(OrgInitArgs),

    /// Send the configuration to the running servers and create missing streams
    ///
    /// Run this after the servers have started, and after adding an organisation.
    Apply(OrgFolderArgs),

    /// Create credentials for one member, or for several on one host
    ///
    /// The credentials allow sending as these members, reading their mail and using their team's
    /// board, and nothing else. The servers enforce this. The servers need not be running now, unless
    /// shards were added, and no `org apply` is needed afterwards.
    #[command(after_help = "\
Examples:
  brigade org add-member demo alice
  brigade org add-member demo team-lead --lead
  brigade org add-member demo alice bob --out host-b.creds --valid 90d")]
    AddMember(OrgAddMemberArgs),

    /// Revoke all credentials that can act as a member
    ///
    /// The servers disconnect clients that use revoked credentials. You can create new credentials
    /// afterwards.
    Revoke(OrgRevokeArgs),

    /// List the members that have credentials
    ///
    /// Exits with code 4 if there are none.
    List(OrgFolderArgs),

    /// List the shards, with the number of their teams and messages
    ///
    /// A shard is a set of streams. Each team is in one shard.
    Shards(OrgShardArgs),

    /// Add a shard while the servers run
    ///
    /// Existing teams stay in their shards. New teams are spread over all shards. Update brigade on
    /// all hosts before: earlier versions cannot use teams in the new shard.
    #[command(after_help = "\
Example:
  brigade org add-shard --dir /etc/brigade")]
    AddShard(OrgShardArgs),

    /// Assign a team to a shard before the team is created
    ///
    /// Fails if the team has data or credentials for another shard: a team cannot be moved.
    #[command(after_help = "\
Example:
  brigade org assign-shard demo 4 --dir /etc/brigade")]
    AssignShard(OrgAssignShardArgs),

    #[command(flatten)]
    Engine(EngineCommand),
}

impl OrgCommand {
    /// Whether the command uses the server given with --store, and not those of an organisation's folder.
    pub(crate) fn uses_store(&self) -> bool {
        match self {
            Self::Engine(_) => true,
            Self::Shards(servers) | Self::AddShard(servers) => servers.dir.is_none(),
            Self::AssignShard(asked) => asked.servers.dir.is_none(),
            _ => false,
        }
    }
}

/// Commands for the running NATS server given with --store. They need administrator credentials.
#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Back up everything on the NATS server to a folder
    ///
    /// The server may be in use: the backup contains every write acknowledged before the backup
    /// started. It contains the mail of all members, so only you can read the folder.
    #[command(after_help = "\
Example:
  brigade --store nats://server --creds admin.creds org backup backup-monday")]
    Backup {
        /// Destination: an empty or new folder
        dir: PathBuf,
    },

    /// Restore a backup to an empty NATS server
    ///
    /// Verifies the files before restoring, and the result afterwards. Refuses a server that already
    /// holds brigade data.
    #[command(after_help = "\
Example:
  brigade --store nats://new-server --creds admin.creds org restore backup-monday")]
    Restore {
        /// The backup folder
        dir: PathBuf,
        /// Number of copies of each stream [default: the number in the backup; 1 on a single
        /// server]
        #[arg(long, value_name = "NUMBER")]
        replicas: Option<usize>,
    },

    /// Change how long mail is kept
    ///
    /// Older mail is deleted immediately, read or not. Tasks, rosters and notes stay.
    #[command(after_help = "\
Example:
  brigade --store nats://server --creds admin.creds org retention 14d")]
    Retention {
        /// Retention time, such as 14d or 12h
        #[arg(value_parser = time)]
        time: Duration,
    },
}

/// The folder that holds the keys of organisations, and the organisation to use.
#[derive(Args, Debug)]
pub(crate) struct OrgFolderArgs {
    /// The folder created by `brigade org init`
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// The organisation [default: the only one in the folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<TeamName>,
}

/// The servers whose shards to use.
#[derive(Args, Debug)]
pub(crate) struct OrgShardArgs {
    /// The folder created by `brigade org init` [default: none; uses the server given with --store,
    /// which must accept clients without credentials]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The organisation [default: the only one in the folder]
    #[arg(long, value_name = "NAME", requires = "dir")]
    pub(crate) org: Option<TeamName>,
}

/// Arguments of `brigade org assign-shard`.
#[derive(Args, Debug)]
pub(crate) struct OrgAssignShardArgs {
    /// The team
    pub(crate) team: TeamName,
    /// Number of the shard, as in `brigade org shards`
    pub(crate) shard: u16,
    #[command(flatten)]
    pub(crate) servers: OrgShardArgs,
}

/// Arguments of `brigade org init`.
#[derive(Args, Debug)]
pub(crate) struct OrgInitArgs {
    /// Name of the organisation: a-z, 0-9 and hyphens
    pub(crate) name: TeamName,
    /// The folder to write to; if it already holds organisations, this one is added
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Number of shards for the organisation's teams: 1, 4 or 16; `org add-shard` adds more later
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) shards: u16,
    /// Client address of each server; servers reach each other on this port plus 2000 [default:
    /// 127.0.0.1:4222]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,
    /// Address the servers listen on [default: the address in --nodes]
    #[arg(long, value_name = "ADDRESS", requires = "nodes")]
    pub(crate) listen: Option<String>,
    /// TLS certificate file of the servers (path on their hosts)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key file of the TLS certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// CA certificate file for TLS, if the system does not trust the CA already
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// How long to keep mail, such as 30d or 12h
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = time)]
    pub(crate) retention: Duration,
    /// Number of copies of each stream [default: 3 in a cluster, otherwise 1]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) replicas: Option<usize>,
}

/// Arguments of `brigade org add-member`.
#[derive(Args, Debug)]
pub(crate) struct OrgAddMemberArgs {
    /// The team
    pub(crate) team: TeamName,
    /// The member; name several if they run on the same host
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<MemberName>,
    /// Grant the permissions of a lead: manage the roster, read all mail, answer requests
    #[arg(long)]
    pub(crate) lead: bool,
    /// Do not let the lead answer requests or give orders
    #[arg(long, requires = "lead")]
    pub(crate) no_answers: bool,
    /// Let the credentials expire after this time, such as 90d or 12h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) valid: Option<Duration>,
    /// Write the credentials to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Also use them on this host: name the store after the organisation and make it the default
    #[arg(long = "use")]
    pub(crate) uses: bool,
    #[command(flatten)]
    pub(crate) folder: OrgFolderArgs,
}

/// Arguments of `brigade org revoke`.
#[derive(Args, Debug)]
pub(crate) struct OrgRevokeArgs {
    /// The team
    pub(crate) team: TeamName,
    /// The member
    pub(crate) name: MemberName,
    /// Only record the revocation; it takes effect with `brigade org apply` or a server restart
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) folder: OrgFolderArgs,
}

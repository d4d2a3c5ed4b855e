//! `brigade org …`

use std::path::PathBuf;
use std::time::Duration;

use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade org init acme --dir /etc/brigade
  brigade org apply --dir /etc/brigade
  brigade org add-member demo team-lead --lead --dir /etc/brigade
  brigade org add-member demo alice bob --out host-b.creds --dir /etc/brigade
  brigade org revoke demo alice --dir /etc/brigade";

#[derive(Debug, Subcommand)]
pub(crate) enum OrgCommand {
    /// Make an organisation, and the configuration of its servers
    ///
    /// Writes keys, credentials and a configuration file for each server into a folder; it needs no
    /// server to do so. A second organisation in the same folder is on the same servers, and neither
    /// sees anything of the other. Keep the folder secret: whoever has it can be anybody.
    Init(OrgInit),

    /// Tell the running servers, and make the streams that are not there
    ///
    /// To be run once the servers run, and after an organisation was added.
    Apply(OrgFolder),

    /// Give credentials to a member, or to several on one host
    ///
    /// With them one can send as these members, read their mail and work on their team's board, and
    /// nothing else. It is the servers that see to it. They need not run, and need not be told.
    #[command(after_help = "\
Examples:
  brigade org add-member demo alice
  brigade org add-member demo team-lead --lead
  brigade org add-member demo alice bob --out host-b.creds --valid 90d")]
    AddMember(OrgAddMember),

    /// Take back all credentials with which one can speak as a member
    ///
    /// The servers are told, and cut off who is connected with them. New ones can be given afterwards.
    Revoke(OrgRevoke),

    /// List who was given credentials
    ///
    /// Exit code 4 says that nobody was.
    List(OrgFolder),

    #[command(flatten)]
    Engine(EngineCommand),
}

/// What is done to an engine that runs, the one of --store, by who may do everything there.
#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Save everything that is in the engine into a folder
    ///
    /// It may be in use: all that was acknowledged before is in the backup. The folder holds everybody's
    /// mail, and can only be read by you.
    #[command(after_help = "\
Example:
  brigade --store nats://engine --creds admin.creds org backup backup-monday")]
    Backup {
        /// Where to; a folder that is empty, or not there yet
        dir: PathBuf,
    },

    /// Put a backup into an empty engine
    ///
    /// The files are checked first, and afterwards that everything is there. An engine in which brigade
    /// has anything is left as it is.
    #[command(after_help = "\
Example:
  brigade --store nats://new-engine --creds admin.creds org restore backup-monday")]
    Restore {
        /// The folder of the backup
        dir: PathBuf,
        /// Keep everything on so many servers [default: as it was, or one where there is one]
        #[arg(long, value_name = "NUMBER")]
        replicas: Option<usize>,
    },

    /// Change how long mail is kept
    ///
    /// What is older goes at once, read or not. Tasks, rosters and notes stay.
    #[command(after_help = "\
Example:
  brigade --store nats://engine --creds admin.creds org retention 14d")]
    Retention {
        /// So long, as in 14d or 12h
        #[arg(value_parser = time)]
        time: Duration,
    },
}

/// Where the keys are.
#[derive(Args, Debug)]
pub(crate) struct OrgFolder {
    /// The folder of `brigade org init`
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Which organisation; the only one if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<TeamName>,
}

/// A new organisation.
#[derive(Args, Debug)]
pub(crate) struct OrgInit {
    /// Its name: a-z, 0-9 and hyphens
    pub(crate) name: TeamName,
    /// Where to write; one there already gets another organisation
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Spread its teams over so many shards, 1, 4 or 16; it cannot be changed later
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) shards: u16,
    /// Where each server is, for clients; 2000 more is the port for the other servers [default:
    /// 127.0.0.1:4222]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,
    /// Let the servers listen on this address, if not on the one they are known by
    #[arg(long, value_name = "ADDRESS", requires = "nodes")]
    pub(crate) listen: Option<String>,
    /// Encrypt: the certificate of the servers, where it is on their hosts
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "nodes")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Encrypt: its key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Encrypt: who vouches for it, if the system does not know
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Keep mail for so long, as in 30d or 12h
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = time)]
    pub(crate) retention: Duration,
    /// Keep everything on so many servers [default: 3, where there are as many]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) replicas: Option<usize>,
}

/// Who is to have credentials.
#[derive(Args, Debug)]
pub(crate) struct OrgAddMember {
    /// The team
    pub(crate) team: TeamName,
    /// The member; several for a host on which they all live
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<MemberName>,
    /// It leads: it keeps the roster, reads everybody's mail and answers requests
    #[arg(long)]
    pub(crate) lead: bool,
    /// It leads, but answers no requests and gives no orders
    #[arg(long, requires = "lead")]
    pub(crate) no_answers: bool,
    /// They end after this time, as in 90d or 12h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) valid: Option<Duration>,
    /// Write them to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) folder: OrgFolder,
}

/// Who is to have none any more.
#[derive(Args, Debug)]
pub(crate) struct OrgRevoke {
    /// The team
    pub(crate) team: TeamName,
    /// The member
    pub(crate) name: MemberName,
    /// Only write it down; `brigade org apply`, or starting the servers again, makes it true
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) folder: OrgFolder,
}

/// A time as people write it.
fn time(text: &str) -> Result<Duration, String> {
    let form = || "use a number and s, m, h or d, as in 30d".to_owned();
    let unit = text.chars().next_back().ok_or_else(form)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(form()),
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    let number: u64 = number.parse().map_err(|_| form())?;
    // Years beyond any use, and before anything overflows.
    if number == 0 || number > 36_500 * 24 * 60 * 60 / seconds {
        return Err("use a time from a second to a hundred years".to_owned());
    }
    Ok(Duration::from_secs(number * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, seconds) in [("30d", 2_592_000), ("12h", 43_200), ("90m", 5_400), ("2s", 2)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "3", "3w", "0d", "-1d", "1.5h", "99999999d", "3dd", "ä"] {
            assert!(time(text).is_err(), "{text:?}");
        }
    }
}

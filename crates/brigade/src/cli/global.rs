//! The options that every command accepts.

use std::path::PathBuf;
use std::time::Duration;

use brigade_files::Durability;
use brigade_host::location::{Location, ServerWait};
use brigade_host::store_choice::StoreChoice;
use brigade_wire::name::{MemberName, TeamName};
use clap::{Args, ValueEnum};

use super::duration::wait;

/// Options that every command accepts.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::doc_markdown, reason = "the help shows names of variables without backticks")]
pub(crate) struct GlobalArgs {
    /// Team to work on [env: BRIGADE_TEAM]
    ///
    /// Default: the team of this folder's brigade.toml or, without such a file, the team that you chose with
    /// `brigade use`, or the only team.
    #[arg(long, global = true, value_name = "TEAM")]
    pub(crate) team: Option<TeamName>,

    /// Act as this member [env: BRIGADE_AS]
    ///
    /// Default: `team-lead` in a team that brigade created. In a team that Claude Code leads,
    /// `team-lead` is Claude Code. There, only commands that read, `approve`, `deny`, `stop`, `down`,
    /// `spawn`, and `send` to a member that brigade runs need no name: they act for the person.
    #[arg(long = "as", global = true, value_name = "NAME")]
    pub(crate) me: Option<MemberName>,

    /// Claude Code folder that holds the teams [env: CLAUDE_CONFIG_DIR] [default: ~/.claude]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) claude_dir: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Do not show long output in a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,

    /// Durability of acknowledged messages [env: BRIGADE_DURABILITY] [default: process]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) durability: Option<DurabilityWord>,

    /// Where teams are stored: `files`, nats://HOST:PORT or a name [env: BRIGADE_STORE] [default: files]
    ///
    /// Use a NATS server for a team on several hosts. tls:// requires encryption. Separate several
    /// servers with commas. `brigade store add` names a server with its CA and your credentials, and
    /// `brigade store use` makes it the default. This option overrides `store` in brigade.toml.
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<StoreChoice>,

    /// Credentials file for the NATS server [env: BRIGADE_CREDS]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) creds: Option<PathBuf>,

    /// CA certificate file for TLS [env: BRIGADE_CA]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) ca: Option<PathBuf>,

    /// Client certificate file for TLS [env: BRIGADE_CERT]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) cert: Option<PathBuf>,

    /// Private key file of the client certificate [env: BRIGADE_KEY]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) key: Option<PathBuf>,

    /// How long to wait for a NATS server that does not answer [default: 20s; with --wait alone: 30s]
    ///
    /// `--wait=0` fails at once. `status`, `doctor`, `down --now` and `store check` do not wait by
    /// default. A server that refuses the certificate or the credentials is not waited for.
    #[arg(
        long,
        global = true,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "30s",
        value_parser = wait,
        hide_short_help = true
    )]
    pub(crate) wait: Option<Duration>,

    /// How long to wait for the first connection without --wait.
    #[arg(skip = ServerWait::DEFAULT)]
    pub(crate) default_wait: Duration,

    /// Whether the command does not say which team it works with.
    #[arg(skip)]
    pub(crate) is_silent: bool,

    /// Where the teams are stored, as resolved from the options, the environment and brigade.toml.
    #[arg(skip)]
    pub(crate) home: Location,
}

impl GlobalArgs {
    /// Returns the arguments of a command that waits for no server, unless the user asks for it.
    pub(crate) fn at_once(self) -> Self {
        Self { default_wait: Duration::ZERO, ..self }
    }

    /// Returns how long to wait for NATS servers that do not answer.
    pub(crate) fn server_wait(&self) -> ServerWait {
        ServerWait { connect: self.wait.unwrap_or(self.default_wait), retry: self.wait }
    }
}

/// The failures that an acknowledged message survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityWord {
    /// Survives kill -9 of any process at any moment
    Process,
    /// Also survives power loss: messages are synced to disk before they are acknowledged, which
    /// costs about one fsync each
    Power,
}

impl From<DurabilityWord> for Durability {
    fn from(word: DurabilityWord) -> Self {
        match word {
            DurabilityWord::Process => Self::Process,
            DurabilityWord::Power => Self::Power,
        }
    }
}

//! `brigade web …`

use std::net::IpAddr;
use std::path::PathBuf;

use brigade_web::access::TokenKind;
use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade web                          serve on 127.0.0.1 and print a login link
  brigade web token add phone --kind approve-only
  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:4760/api/v1/teams";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WebArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WebCommand>,

    #[command(flatten)]
    pub(crate) serve: WebServeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WebServeArgs {
    /// The port; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = 4760, conflicts_with = "unix")]
    pub(crate) port: u16,

    /// The address of this computer to listen on; only loopback addresses
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", conflicts_with = "unix")]
    pub(crate) address: IpAddr,

    /// Listen on this socket file, for a proxy on this computer
    #[arg(long, value_name = "FILE", requires = "host")]
    pub(crate) unix: Option<PathBuf>,

    /// A further host name in addresses of the page, as in the proxy: NAME or NAME:PORT
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// Browsers reach the proxy over https
    #[arg(long, requires = "unix")]
    pub(crate) https: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebCommand {
    /// Print a link that logs one browser in
    ///
    /// The link works once, for ten minutes. The browser stays logged in for 30 days, or until
    /// `brigade web token revoke NAME`.
    Link(WebLinkArgs),

    /// Add, list and revoke tokens for programs
    #[command(subcommand)]
    Token(WebTokenCommand),
}

#[derive(Debug, Args)]
pub(crate) struct WebLinkArgs {
    /// The name of the login, which is recorded with each change
    #[arg(default_value = "browser")]
    pub(crate) name: String,

    /// The rights of the browser: full, approve-only or read-only
    #[arg(long, value_name = "KIND", default_value = "full")]
    pub(crate) kind: TokenKind,

    /// The address of the page
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4760/")]
    pub(crate) page: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebTokenCommand {
    /// Add a token and print it
    ///
    /// The token is printed once and not stored. A program sends it as
    /// `Authorization: Bearer TOKEN`.
    Add {
        /// The name of the token, which is recorded with each change
        name: String,

        /// The rights of the program: full, approve-only or read-only
        #[arg(long, value_name = "KIND", default_value = "read-only")]
        kind: TokenKind,
    },

    /// List the tokens, and the browsers that are logged in
    List,

    /// Revoke a token, or log out the browsers of this name
    Revoke {
        /// The name of the token or of the login
        name: String,
    },
}

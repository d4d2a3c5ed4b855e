//! `brigade web …`

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use brigade_web::access::{AccessBook, AccessError, IssuedSecret, TokenRecord};
use brigade_web::{WebListener, WebSettings};
use serde_json::json;
use tokio::net::{TcpListener, UnixListener};

use crate::cli::{GlobalArgs, WebArgs, WebCommand, WebLinkArgs, WebServeArgs, WebTokenCommand};
use crate::context::{CliContext, trust};
use crate::error::{CliError, CliTrouble, failed};
use crate::exit;
use crate::output::{self, Cell, FAINT, STRONG, Table};

pub(crate) async fn run(global: GlobalArgs, args: WebArgs) -> Result<u8, CliError> {
    let context = CliContext::lasting(global).await?;
    context.require_person("use the web server")?;
    let book = AccessBook::of_state_dir(context.folders().1);
    match args.command {
        None => serve(context, &book, args.serve).await,
        Some(WebCommand::Link(args)) => link(&context, &book, &args),
        Some(WebCommand::Token(command)) => token(&context, &book, command),
    }
}

async fn serve(context: CliContext, book: &AccessBook, args: WebServeArgs) -> Result<u8, CliError> {
    let (listener, mut hosts, suffix) = match &args.unix {
        Some(path) => (WebListener::Unix(unix_listener(path)?), Vec::new(), "proxy".to_owned()),
        None => {
            if !args.address.is_loopback() {
                let error = CliError::usage(CliTrouble::NotLoopback { address: args.address });
                return Err(error.hint("use `--unix FILE` with a proxy that offers https"));
            }
            let listener = TcpListener::bind((args.address, args.port)).await;
            let listener = listener.map_err(|source| {
                let error = failed(format!("listen on port {}", args.port), source);
                error.hint("`--port 0` chooses a free port")
            })?;
            let address = listener.local_addr().map_err(|source| failed("listen", source))?;
            let (port, suffix) = (address.port(), address.port().to_string());
            let hosts = vec![address.to_string(), format!("localhost:{port}")];
            (WebListener::Tcp(listener), hosts, suffix)
        }
    };
    hosts.extend(args.host);
    let scheme = if args.https { "https" } else { "http" };
    let page = hosts.first().map(|host| format!("{scheme}://{host}/")).unwrap_or_default();
    let link = book.add_link("browser", brigade_web::access::TokenKind::Full, context.clock.now());
    let link = login_address(&page, &link.map_err(CliError::failed)?);
    if context.json {
        output::print_json(&json!({ "page": page, "login": link }))?;
    } else {
        output::print(&format!(
            "the page is at {STRONG}{page}{STRONG:#}\nlog in once, within 10 minutes: {STRONG}{link}{STRONG:#}\n"
        ))?;
        output::note("Ctrl-C ends the server; teams keep running");
    }
    let state_dir = context.folders().1.to_owned();
    let settings = WebSettings {
        state_dir: &state_dir,
        hosts,
        cookie_suffix: suffix,
        is_tls: args.https,
        trust: trust()?,
    };
    let served = brigade_web::serve(context.into_host(), listener, settings);
    tokio::select! {
        served = served => served.map_err(CliError::failed)?,
        _ = tokio::signal::ctrl_c() => {}
    }
    if let Some(path) = args.unix {
        let _removed_or_left = fs::remove_file(path);
    }
    Ok(exit::DONE)
}

/// Returns a listener on a socket file that only the person can use. Replaces the file of a server that has ended.
fn unix_listener(path: &Path) -> Result<UnixListener, CliError> {
    let broken = |source| failed(format!("listen on {}", path.display()), source);
    let is_old_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_old_socket
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        fs::remove_file(path).map_err(broken)?;
    }
    let listener = UnixListener::bind(path).map_err(broken)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(broken)?;
    Ok(listener)
}

fn link(context: &CliContext, book: &AccessBook, args: &WebLinkArgs) -> Result<u8, CliError> {
    let issued = book.add_link(&args.name, args.kind, context.clock.now());
    let link = login_address(&args.page, &issued.map_err(CliError::failed)?);
    if context.json {
        output::print_json(&json!({ "login": link }))?;
    } else {
        output::print(&format!("{link}\n"))?;
        output::note("the link works once, for 10 minutes");
    }
    Ok(exit::DONE)
}

/// Puts the secret behind `#`: browsers do not send this part of an address.
fn login_address(page: &str, issued: &IssuedSecret) -> String {
    format!("{page}#login={}", issued.secret.expose())
}

fn token(
    context: &CliContext,
    book: &AccessBook,
    command: WebTokenCommand,
) -> Result<u8, CliError> {
    let now = context.clock.now();
    match command {
        WebTokenCommand::Add { name, kind } => {
            let issued = book.add(&name, kind, now).map_err(CliError::failed)?;
            let token = issued.secret.expose();
            if context.json {
                output::print_json(&json!({ "name": name, "kind": kind, "token": token }))?;
            } else {
                output::print(&format!("{token}\n"))?;
                output::note(&format!("this is the {kind} token {name}; it is not shown again"));
            }
        }
        WebTokenCommand::List => {
            let tokens = book.list(now).map_err(CliError::failed)?;
            if context.json {
                let documents = tokens.iter().map(document);
                output::print_json(&documents.collect::<Vec<_>>())?;
            } else if !tokens.is_empty() {
                output::print(&table(&tokens).render("", output::width()))?;
            }
            if tokens.is_empty() {
                if !context.json {
                    output::note("there are no tokens, and no browser is logged in");
                }
                return Ok(exit::NOTHING);
            }
        }
        WebTokenCommand::Revoke { name } => {
            book.revoke(&name, now).map_err(|error| match error {
                AccessError::NoToken { .. } => {
                    CliError::failed(error).hint("`brigade web token list` shows them")
                }
                error => CliError::failed(error),
            })?;
            if context.json {
                output::print_json(&json!({ "name": name, "revoked": true }))?;
            } else {
                output::print(&format!("revoked {STRONG}{name}{STRONG:#}\n"))?;
            }
        }
    }
    Ok(exit::DONE)
}

fn document(token: &TokenRecord) -> serde_json::Value {
    json!({
        "name": token.name,
        "kind": token.kind,
        "created": token.created,
        "expires": token.expires,
    })
}

fn table(tokens: &[TokenRecord]) -> Table {
    let mut table = Table::new(&["name", "rights", "added", "for"]);
    for token in tokens {
        let added = output::local(token.created).strftime("%Y-%m-%d %H:%M").to_string();
        let used_by = if token.expires.is_some() { "a browser" } else { "programs" };
        table.row([
            Cell::new(STRONG, &token.name),
            Cell::new(anstyle::Style::new(), token.kind.as_str()),
            Cell::new(FAINT, &added),
            Cell::new(FAINT, used_by),
        ]);
    }
    table
}

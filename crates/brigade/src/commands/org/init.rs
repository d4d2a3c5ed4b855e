//! `brigade org init`

use std::fmt::Write as _;

use brigade_nats::options::StreamSettings;
use brigade_nats::org::{Cluster, Folder, ServerAddress, Tls};
use jiff::Timestamp;
use serde_json::json;

use super::next_step;
use crate::cli::OrgInitArgs;
use crate::error::{CliError, failed};
use crate::exit;
use crate::output::{self, STRONG};

pub(super) fn run(json: bool, asked: OrgInitArgs) -> Result<u8, CliError> {
    let now = Timestamp::now();
    let settings = StreamSettings {
        shards: asked.shards,
        replicas: asked.replicas,
        retention: asked.retention,
    };
    let name = asked.name.clone();
    let dir = asked.dir.clone();
    let folder = Folder::init(&dir, cluster(asked)?, now)?;
    let organisation = folder.add(&name, &settings, now)?;
    let servers: Vec<_> = (1..=folder.cluster().nodes.len()).map(|n| folder.server(n)).collect();
    let admin = folder.admin(&name);
    let urls = folder.cluster().urls();
    if json {
        output::print_json(&json!({
            "organisation": name,
            "dir": folder.dir(),
            "servers": servers,
            "urls": urls,
            "admin": admin,
            "account": organisation.account,
            "seatsAccount": organisation.seats_account,
        }))?;
        return Ok(exit::DONE);
    }
    let dir = folder.dir().display();
    let mut text = format!("created organisation {STRONG}{name}{STRONG:#} in {dir}\n\nnext:\n");
    for (conf, node) in servers.iter().zip(&folder.cluster().nodes) {
        let start = next_step::start_server(conf);
        let _infallible = writeln!(text, "  {start}    # on {}", node.host);
    }
    let _infallible = write!(
        text,
        "  {}\n\n\
         Keep the folder secret and back it up: its keys can impersonate every member, and without them\n\
         you cannot add or revoke members.\n",
        next_step::apply(&folder, &name)
    );
    output::print(&text)?;
    Ok(exit::DONE)
}

/// Returns the servers given with `--nodes`, or the server on this machine if only TLS is configured; `None` without
/// any of these options.
fn cluster(asked: OrgInitArgs) -> Result<Option<Cluster>, CliError> {
    if asked.nodes.is_empty() && asked.tls_cert.is_none() {
        return Ok(None);
    }
    let nodes: Result<Vec<ServerAddress>, String> =
        asked.nodes.iter().map(|node| node.parse()).collect();
    let mut nodes = nodes.map_err(CliError::usage)?;
    if nodes.is_empty() {
        nodes = Cluster::here().nodes;
    }
    let absolute = |path: std::path::PathBuf| {
        std::path::absolute(&path)
            .map_err(|source| failed(format!("find {}", path.display()), source))
    };
    let tls = match (asked.tls_cert, asked.tls_key) {
        (Some(cert), Some(key)) => Some(Tls {
            cert: absolute(cert)?,
            key: absolute(key)?,
            ca: asked.tls_ca.map(absolute).transpose()?,
        }),
        _ => None,
    };
    Ok(Some(Cluster { nodes, listen: asked.listen, tls }))
}

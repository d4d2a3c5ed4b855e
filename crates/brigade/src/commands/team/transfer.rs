//! `brigade team export` and `brigade team import`

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Cursor, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use brigade_core::export::{self, ExportCounts, Imported};
use brigade_core::text;
use brigade_wire::name::TeamName;
use serde_json::json;

use crate::context::CliContext;
use crate::error::{CliError, CliTrouble};
use crate::exit;
use crate::output::{self, STRONG};
use brigade_host::error::file_failed;

pub(super) async fn export(
    context: &CliContext,
    team: &TeamName,
    file: &Path,
) -> Result<u8, CliError> {
    let (store, now) = (&*context.store, context.clock.now());
    if file == Path::new("-") {
        let mut out = BufWriter::new(io::stdout());
        export::export(store, team, now, &mut out).await?;
        return Ok(exit::DONE);
    }
    // Only the owner may read the file, because it contains all mail. Never overwrite an existing file: it may
    // be the only copy of an earlier export.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let made = made.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => {
            let error = CliError::failed(CliTrouble::FileExists { path: file.to_owned() });
            error.hint("choose another file name")
        }
        _ => file_failed("create", file, source),
    })?;
    let mut out = BufWriter::new(made);
    let exported = export::export(store, team, now, &mut out).await;
    let exported = match exported {
        Ok(exported) => exported,
        Err(error) => {
            // Remove the incomplete export.
            let _ignored = std::fs::remove_file(file);
            return Err(error.into());
        }
    };
    out.flush()
        .and_then(|()| out.get_ref().sync_all())
        .map_err(|source| file_failed("write", file, source))?;
    if context.json {
        output::print_json(&json!({ "team": team, "file": file, "exported": exported }))?;
    } else {
        let (file, summary) = (file.display(), summary(&exported));
        output::print(&format!("exported team {STRONG}{team}{STRONG:#} to {file}: {summary}\n"))?;
    }
    Ok(exit::DONE)
}

pub(super) async fn import(
    context: &CliContext,
    file: &Path,
    name: Option<&TeamName>,
) -> Result<u8, CliError> {
    let store = &*context.store;
    let imported = if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map_err(|source| file_failed("read", file, source))?;
        export::import(store, &mut Cursor::new(bytes), name).await?
    } else {
        let opened = File::open(file).map_err(|source| file_failed("open", file, source))?;
        export::import(store, &mut BufReader::new(opened), name).await?
    };
    let Imported { team, exported } = imported;
    if context.json {
        output::print_json(&json!({ "team": team, "imported": exported }))?;
    } else {
        let summary = summary(&exported);
        output::print(&format!("imported team {STRONG}{team}{STRONG:#}: {summary}\n"))?;
    }
    Ok(exit::DONE)
}

fn summary(exported: &ExportCounts) -> String {
    let ExportCounts { tasks, messages, unread } = exported;
    let (tasks, messages) = (text::count(*tasks, "task"), text::count(*messages, "message"));
    format!("{tasks}, {messages}, {unread} unread")
}

//! `brigade org backup`, `restore` and `retention`: commands for a running NATS server.

use std::path::Path;
use std::time::Duration;

use brigade_nats::backup;
use brigade_nats::{NatsOptions, NatsStore};
use jiff::Timestamp;
use serde_json::json;

use crate::cli::{EngineCommand, GlobalArgs};
use crate::error::{CliError, CliTrouble};
use crate::output::{self, Table};
use crate::{env, exit};

pub(super) async fn run(global: &GlobalArgs, command: EngineCommand) -> Result<u8, CliError> {
    let Some(engine) = global.home.nats() else {
        let error = CliError::usage(CliTrouble::NoNatsServer);
        return Err(error.hint(format!("add `--store nats://HOST:PORT` or set {}", env::STORE)));
    };
    let options =
        NatsOptions { connect_wait: global.server_wait().connect, ..engine.store_options() };
    match command {
        EngineCommand::Backup { dir } => save(global.json, &options, &dir).await,
        EngineCommand::Restore { dir, replicas } => {
            restore(global.json, options, &dir, replicas).await
        }
        EngineCommand::Retention { time } => retention(global.json, options, time).await,
    }
}

async fn save(json: bool, options: &NatsOptions, dir: &Path) -> Result<u8, CliError> {
    let manifest = backup::backup(options, dir, Timestamp::now()).await?;
    if json {
        output::print_json(&manifest)?;
        return Ok(exit::DONE);
    }
    let mut table = Table::new(&["STREAM", "MESSAGES", "UP TO", "BYTES"]);
    for saved in &manifest.streams {
        let bytes = saved.file.as_ref().map_or_else(String::new, |file| file.bytes.to_string());
        table.row([
            saved.name.as_str().into(),
            saved.state.messages.to_string().into(),
            saved.state.last_seq.to_string().into(),
            bytes.into(),
        ]);
    }
    let text = format!("saved to {}\n{}", dir.display(), table.render("  ", output::width()));
    output::print(&text)?;
    Ok(exit::DONE)
}

async fn restore(
    json: bool,
    mut options: NatsOptions,
    dir: &Path,
    replicas: Option<usize>,
) -> Result<u8, CliError> {
    options.settings.replicas = replicas;
    let restored = backup::restore(&options, dir).await?;
    if json {
        output::print_json(&restored)?;
        return Ok(exit::DONE);
    }
    let mut table = Table::new(&["STREAM", "MESSAGES", "UP TO"]);
    for stream in &restored {
        table.row([
            stream.name.as_str().into(),
            stream.messages.to_string().into(),
            stream.last_seq.to_string().into(),
        ]);
    }
    output::print(&format!(
        "restored from {} and verified\n{}",
        dir.display(),
        table.render("  ", output::width())
    ))?;
    let too_old: u64 = restored.iter().map(|stream| stream.too_old).sum();
    if too_old > 0 {
        output::note(&format!("dropped {too_old} messages older than the retention time"));
    }
    Ok(exit::DONE)
}

async fn retention(json: bool, options: NatsOptions, time: Duration) -> Result<u8, CliError> {
    let store = NatsStore::connect(options).await?;
    let before = store.set_retention(time).await?;
    if json {
        let document = json!({ "retention_secs": time.as_secs(), "before_secs": before.as_secs() });
        output::print_json(&document)?;
    } else {
        let (now, before) = (short_duration(time), short_duration(before));
        output::print(&format!("mail is now kept for {now} (before: {before})\n"))?;
    }
    Ok(exit::DONE)
}

/// Formats a duration as the command line accepts it, such as `30d`.
fn short_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => "ever".to_owned(),
        s if s % 86_400 == 0 => format!("{}d", s / 86_400),
        s if s % 3_600 == 0 => format!("{}h", s / 3_600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

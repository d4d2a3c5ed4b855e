//! `brigade store`

use std::fmt::Write as _;

use brigade_host::context::which_member_hint;
use brigade_host::location::{Location, NatsServers};
use brigade_host::profile::{StoreName, StoreProfile};
use brigade_host::store_check::{PAYLOAD_ADVICE, StoreCheck, payload_problem};
use brigade_nats::Identity;
use brigade_wire::name::MemberName;
use jiff::Timestamp;
use serde_json::json;

use crate::cli::{GlobalArgs, StoreAddArgs, StoreCommand};
use crate::error::{CliError, CliTrouble};
use crate::location::{absolute, profiles};
use crate::output::{self, Cell, ERROR, FAINT, READY, STRONG, Table};
use crate::slow_notice::with_notice;
use crate::{context, exit};

pub(crate) async fn run(global: GlobalArgs, command: StoreCommand) -> Result<u8, CliError> {
    match command {
        StoreCommand::Add(asked) => add(&global, asked),
        StoreCommand::List => list(global.json),
        StoreCommand::Use { name, .. } => choose(global.json, name.as_ref()),
        StoreCommand::Remove { name } => remove(global.json, &name),
        StoreCommand::Check { name } => check(&global.at_once(), name).await,
    }
}

fn add(global: &GlobalArgs, asked: StoreAddArgs) -> Result<u8, CliError> {
    let mut profiles = profiles()?;
    let ca = global.ca.clone().map(absolute).transpose()?;
    let creds = global.creds.clone().map(absolute).transpose()?;
    if let Some(path) = [&ca, &creds].into_iter().flatten().find(|path| !path.is_file()) {
        return Err(CliError::usage(CliTrouble::NoFile { path: path.clone() }));
    }
    let identity = creds.as_deref().map(Identity::from_creds).transpose();
    let identity = identity.map_err(CliError::failed)?;
    let StoreAddArgs { name, url, is_default } = asked;
    let profile = StoreProfile { url, ca, creds };
    let replaced = profiles.add(name.clone(), profile.clone())?;
    let was_default = profiles.default_name() == Some(&name);
    if is_default {
        profiles.set_default(Some(&name))?;
    }
    if global.json {
        let is_default = is_default || was_default;
        let replaced = replaced.is_some();
        let document = json!({ "name": name, "replaced": replaced, "default": is_default });
        output::print_json(&document)?;
        return Ok(exit::DONE);
    }
    let done = if replaced.is_some() { "replaced" } else { "added" };
    let next = match (was_default, is_default) {
        (true, _) => "it is still the default".to_owned(),
        (false, true) => "it is the default from now on".to_owned(),
        (false, false) => format!("`brigade store use {name}` makes it the default"),
    };
    output::print(&format!("{done} store {STRONG}{name}{STRONG:#}; {next}\n"))?;
    if let Some(before) = replaced.filter(|before| *before != profile) {
        output::note(&format!(
            "{name} was {}; add it under another name if you still need it",
            settings(&before)
        ));
        if before.creds.is_some() && profile.creds.is_some() {
            output::hint(
                "if the server no longer accepts the earlier credentials, `brigade resume` restarts the members of this host \
                 with the new ones",
            );
        }
    }
    output::hint(&format!("`brigade store check {name}` shows whether it works"));
    if let Some(hint) = identity.and_then(|identity| which_member_hint(&identity.members)) {
        output::hint(&format!("the credentials are for several members: {hint}"));
    }
    Ok(exit::DONE)
}

/// Describes a store in one line.
fn settings(profile: &StoreProfile) -> String {
    let mut text = profile.url.clone();
    for (option, path) in [("--ca", &profile.ca), ("--creds", &profile.creds)] {
        if let Some(path) = path {
            let _infallible = write!(text, " {option} {}", path.display());
        }
    }
    text
}

fn remove(json: bool, name: &StoreName) -> Result<u8, CliError> {
    let was_default = profiles()?.remove(name)?;
    if json {
        output::print_json(&json!({ "name": name, "was_default": was_default }))?;
        return Ok(exit::DONE);
    }
    let default = if was_default { "; the default store is the files of this host" } else { "" };
    output::print(&format!("removed store {STRONG}{name}{STRONG:#}{default}\n"))?;
    Ok(exit::DONE)
}

fn list(json: bool) -> Result<u8, CliError> {
    let profiles = profiles()?;
    let default = profiles.default_name();
    if json {
        let document: Vec<_> = profiles
            .stores()
            .map(|(name, profile)| {
                json!({
                    "name": name,
                    "url": profile.url,
                    "ca": profile.ca,
                    "creds": profile.creds,
                    "default": Some(name) == default,
                })
            })
            .collect();
        output::print_json(&document)?;
        return Ok(if document.is_empty() { exit::NOTHING } else { exit::DONE });
    }
    let mut table = Table::new(&["NAME", "SERVERS", "CA", "CREDENTIALS", ""]);
    for (name, profile) in profiles.stores() {
        let path = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
        };
        table.row([
            Cell::new(STRONG, name.as_str()),
            profile.url.as_str().into(),
            path(&profile.ca).into(),
            path(&profile.creds).into(),
            if Some(name) == default { "default".into() } else { "".into() },
        ]);
    }
    if profiles.stores().next().is_none() {
        output::print("no store has a name\n")?;
        output::hint("`brigade store add NAME nats://HOST:PORT` names one");
        return Ok(exit::NOTHING);
    }
    output::print(&table.render("", output::width()))?;
    Ok(exit::DONE)
}

fn choose(json: bool, name: Option<&StoreName>) -> Result<u8, CliError> {
    let mut profiles = profiles()?;
    profiles.set_default(name)?;
    if json {
        output::print_json(&json!({ "default": name }))?;
        return Ok(exit::DONE);
    }
    let text = match name {
        Some(name) => format!("the default store is {STRONG}{name}{STRONG:#}\n"),
        None => "the default store is the files of this host\n".to_owned(),
    };
    output::print(&text)?;
    if let Some(store) = crate::env::read(crate::env::STORE) {
        let store = store.to_string_lossy().into_owned();
        output::note(&format!(
            "{} is set to {}, which comes before the default",
            crate::env::STORE,
            brigade_core::text::one_line(&store)
        ));
    }
    Ok(exit::DONE)
}

async fn check(global: &GlobalArgs, name: Option<StoreName>) -> Result<u8, CliError> {
    let name = name.map(|name| name.to_string());
    match &global.home {
        Location::Files => check_files(global),
        Location::Nats(servers) => {
            let addresses = servers.servers.join(", ");
            let notice = format!("waiting for {addresses} to answer");
            let checking = StoreCheck::run(servers, global.server_wait());
            let checked = with_notice(&notice, checking).await?;
            if global.json {
                output::print_json(&document(name.as_deref(), servers, &checked))?;
            } else {
                output::print(&render(name.as_deref(), servers, &checked))?;
            }
            Ok(if checked.is_good() { exit::DONE } else { exit::FAILED })
        }
    }
}

fn check_files(global: &GlobalArgs) -> Result<u8, CliError> {
    let (dir, _) = context::dirs(global)?;
    if global.json {
        output::print_json(&json!({ "store": "files", "dir": dir }))?;
    } else {
        output::print(&format!("store        files in {}\n", dir.display()))?;
        output::hint("`brigade doctor` checks the files");
    }
    Ok(exit::DONE)
}

fn document(name: Option<&str>, servers: &NatsServers, checked: &StoreCheck) -> serde_json::Value {
    let StoreCheck { health, credentials, team } = checked;
    let credentials = credentials.as_ref().map(|(file, identity)| {
        json!({
            "file": file,
            "role": identity.role,
            "team": identity.team,
            "members": identity.members,
            "answers": identity.answers,
            "until": identity.until,
        })
    });
    let streams = health.streams.as_ref().map(|streams| {
        let stream = |stream: &brigade_nats::health::StreamHealth| {
            json!({ "name": stream.name, "ok": stream.problems.is_empty() })
        };
        streams.iter().map(stream).collect::<Vec<_>>()
    });
    json!({
        "store": name,
        "servers": servers.servers,
        "version": health.version,
        "tls": health.is_tls,
        "cluster": health.is_cluster,
        "max_payload": health.max_payload,
        "credentials": credentials,
        "rights": checked.rights(),
        "team": team.as_ref().map(|(name, exists)| json!({ "name": name, "exists": exists })),
        "streams": streams,
    })
}

fn render(name: Option<&str>, servers: &NatsServers, checked: &StoreCheck) -> String {
    let mut text = String::new();
    let mut line = |what: &str, said: &str| {
        let _infallible = writeln!(text, "{FAINT}{what:<11}{FAINT:#}  {said}");
    };
    let name = name.map(|name| format!("{STRONG}{name}{STRONG:#}: ")).unwrap_or_default();
    line("store", &format!("{name}{}", servers.servers.join(", ")));
    let health = &checked.health;
    let tls = if health.is_tls { "TLS" } else { "no TLS" };
    let cluster = if health.is_cluster { ", in a cluster" } else { "" };
    line("server", &format!("nats-server {}, {tls}{cluster}", health.version));
    if let Some(problem) = payload_problem(health) {
        line("payload", &format!("{ERROR}{problem}{ERROR:#}; {PAYLOAD_ADVICE}"));
    }
    match &checked.credentials {
        None => line("credentials", "none; the server accepts every client"),
        Some((file, identity)) => {
            let file = file.display();
            line("credentials", &format!("{}: {file}", describe(identity)));
        }
    }
    line("rights", &checked.rights().join(", "));
    if let Some((team, exists)) = &checked.team {
        let said = match exists {
            true => format!("{team} exists"),
            false => {
                format!("{team} does not exist yet; its lead runs `brigade team create {team}`")
            }
        };
        line("team", &said);
    }
    let streams = match (&health.streams, checked.bad_streams().as_slice()) {
        (None, _) => "only an admin can check them".to_owned(),
        _ if checked.is_new() => "none yet; the first command creates them".to_owned(),
        (Some(all), []) => format!("{}, {READY}no problems{READY:#}", all.len()),
        (Some(_), bad) => format!("problems with {}; run `brigade doctor`", bad.join(", ")),
    };
    line("streams", &streams);
    text
}

/// Says whose credentials these are, and until when they are valid.
fn describe(identity: &Identity) -> String {
    let until = match identity.until {
        None => "without expiry".to_owned(),
        Some(until) if until <= Timestamp::now() => format!("expired on {}", date(until)),
        Some(until) => format!("valid until {}", date(until)),
    };
    let names: Vec<&str> = identity.members.iter().map(MemberName::as_str).collect();
    match &identity.team {
        Some(team) => {
            let role = identity.role.as_str();
            format!("{} in team {team} ({role}), {until}", names.join(", "))
        }
        None => format!("{}, {until}", identity.role.as_str()),
    }
}

fn date(at: Timestamp) -> String {
    output::local(at).strftime("%Y-%m-%d %H:%M").to_string()
}

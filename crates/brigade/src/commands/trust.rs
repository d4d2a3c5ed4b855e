//! `brigade trust`: shows what a team file would do, and records that the user trusts it.

use std::path::Path;

use brigade_core::policy::{Rule, RuleDecision};
use brigade_core::text::{count, exact, one_line};
use brigade_host::spec::{AccessLevel, ApprovalAuthority, MemberPlace, MemberSpec};
use brigade_host::team_file::{self, OutsidePaths, TeamFile};
use brigade_host::trust::{Trust, TrustState};
use brigade_wire::name::MemberName;
use serde_json::json;

use super::check::found;
use crate::cli::TrustArgs;
use crate::context::trust;
use crate::error::{CliError, CliTrouble, Kind};
use crate::output::{self, BUSY, Cell, STRONG, Table};
use crate::{confirm, exit};

pub(crate) fn run(json: bool, args: &TrustArgs) -> Result<u8, CliError> {
    let trust = trust()?;
    if args.list {
        return list(&trust, json);
    }
    let path = args.file.clone().map_or_else(found, Ok)?;
    if args.remove {
        return remove(&trust, &path, json);
    }
    let file = team_file::read(&path, OutsidePaths::Skip)?;
    let state = trust.state(&file)?;
    if !json {
        output::print(&review(&path, &file, state))?;
    }
    let agreed = match state {
        TrustState::Trusted => Ok(()),
        _ if args.yes => trust.add(&file, args.outside),
        _ if !confirm::can_ask(json) => {
            let error = CliError::usage(CliTrouble::NobodyToAsk);
            Err(error.hint("`brigade trust --yes` trusts the file without asking"))
        }
        _ => ask(&trust, &file),
    };
    if json {
        output::print_json(&document(&file, trust.state(&file)?))?;
    }
    agreed?;
    if !json && state != TrustState::Trusted {
        output::print("trusted\n")?;
    }
    Ok(exit::DONE)
}

/// Makes sure that the user trusts a team file. On a terminal, shows what the file would do and asks.
pub(crate) fn require(json: bool, path: &Path) -> Result<(), CliError> {
    let trust = trust()?;
    let file = team_file::read(path, OutsidePaths::Skip)?;
    let state = trust.state(&file)?;
    if state == TrustState::Trusted {
        return Ok(());
    }
    if !confirm::can_ask(json) {
        // This fails, with the reason and the command to run.
        return trust.read(path).map(|_| ());
    }
    output::print(&review(path, &file, state))?;
    ask(&trust, &file)
}

fn ask(trust: &Trust, file: &TeamFile) -> Result<(), CliError> {
    let outside = match file.outside.len() {
        0 => true,
        paths => {
            let paths = count(paths, "path");
            confirm::ask(&format!("may it use the {paths} outside this folder?"))?
        }
    };
    if outside && confirm::ask("trust this file?")? {
        return trust.add(file, true);
    }
    Err(CliError::failed(CliTrouble::NotTrusted))
}

fn list(trust: &Trust, json: bool) -> Result<u8, CliError> {
    let entries = trust.list()?;
    let state = |path: &Path| match team_file::read(path, OutsidePaths::Skip) {
        Ok(file) => match trust.state(&file) {
            Ok(TrustState::Trusted) => "trusted",
            _ => "changed since",
        },
        Err(_) if path.exists() => "changed since",
        Err(_) => "gone",
    };
    if json {
        let entries = entries.iter().map(
            |entry| json!({ "file": entry.file, "team": entry.team, "state": state(&entry.file) }),
        );
        output::print_json(&entries.collect::<Vec<_>>())?;
    } else {
        let mut table = Table::new(&["STATE", "TEAM", "FILE"]);
        for entry in &entries {
            let file = entry.file.to_string_lossy();
            let cells = [state(&entry.file).into(), entry.team.as_str().into()];
            table.row(cells.into_iter().chain([Cell::new(STRONG, &file)]));
        }
        if !entries.is_empty() {
            output::print(&table.render("", None))?;
        }
    }
    Ok(if entries.is_empty() { exit::NOTHING } else { exit::DONE })
}

fn remove(trust: &Trust, path: &Path, json: bool) -> Result<u8, CliError> {
    let shown = one_line(&path.to_string_lossy());
    let was_trusted = trust.remove(path)?;
    if json {
        output::print_json(&json!({ "file": team_file::identity(path), "removed": was_trusted }))?;
    }
    if !was_trusted {
        let error = CliTrouble::WasNotTrusted { path: shown };
        return Err(CliError::new(Kind::Nothing, error));
    }
    if !json {
        output::print(&format!("{shown} is not trusted any more\n"))?;
    }
    Ok(exit::DONE)
}

fn document(file: &TeamFile, state: TrustState) -> serde_json::Value {
    json!({
        "file": file.path,
        "trust": state,
        "store": file.store.as_ref().map(ToString::to_string),
        "creds": file.creds,
        "prompt_files": file.prompt_files,
        "outside": file.outside,
        "team": file.spec,
    })
}

/// Describes what a team file would do. Nothing is shortened, so that the file cannot hide a part of it.
fn review(path: &Path, file: &TeamFile, state: TrustState) -> String {
    let (path, team) = (one_line(&path.to_string_lossy()), &file.spec.team);
    let state = match state {
        TrustState::Trusted => "You trust this file",
        TrustState::Changed => "This file has changed since you trusted it",
        TrustState::Unknown => "You have not trusted this file yet",
    };
    let mut text = format!("{STRONG}{path}{STRONG:#} describes team {team}. {state}.\n");
    if let Some(store) = &file.store {
        let creds = file.creds.as_ref().map(|creds| {
            format!(" with the credentials in {}", one_line(&creds.to_string_lossy()))
        });
        let creds = creds.unwrap_or_default();
        text += &format!("\nIt connects to:\n  {store}{creds}\n");
    }
    text += "\nIt starts:\n";
    for member in file.spec.lead.iter().chain(&file.spec.members) {
        text += &format!("  {STRONG}{}{STRONG:#}\n", member.name);
        for line in member_lines(member, file) {
            text += &format!("    {}\n", one_line(&line));
        }
        let prompt = member.prompt.as_ref().filter(|_| file.inline_prompts.contains(&member.name));
        if let Some(prompt) = prompt {
            text += &format!("    gets the prompt:\n{}", block("      ", prompt));
        }
    }
    if file.spec.lead.is_none() && file.spec.members.is_empty() {
        text += "  nothing\n";
    }
    if !file.spec.description.is_empty() {
        text += &format!(
            "\nIt gives them this description of the team:\n{}",
            block("  ", &file.spec.description)
        );
    }
    if !file.spec.tasks.is_empty() {
        text += "\nIt gives them these tasks:\n";
        for task in &file.spec.tasks {
            let owner = task.owner.as_ref().map(|owner| format!(" (for {owner})"));
            text += &format!("  {}{}\n", exact(&task.subject), owner.unwrap_or_default());
            text += &block("    ", &task.description);
        }
    }
    if !file.prompt_files.is_empty() {
        text += "\nIt sends these files to its agents:\n";
        for path in &file.prompt_files {
            text += &format!("  {}\n", one_line(&path.to_string_lossy()));
        }
    }
    if !file.outside.is_empty() {
        text += &format!("\n{BUSY}Outside this folder:{BUSY:#}\n");
        for outside in &file.outside {
            let members: Vec<&str> = outside.members.iter().map(MemberName::as_str).collect();
            let of = if members.is_empty() { "" } else { " of " };
            let path = one_line(&outside.path.to_string_lossy());
            text += &format!("  {path} ({}{of}{})\n", outside.key, members.join(", "));
        }
    }
    text + "\n"
}

/// Writes a text of several lines so that it cannot be taken for another part of the review, or change the terminal.
fn block(indent: &str, text: &str) -> String {
    text.lines().map(|line| format!("{indent}| {}\n", exact(line))).collect()
}

fn member_lines(member: &MemberSpec, file: &TeamFile) -> Vec<String> {
    let window = match member.place {
        MemberPlace::Headless | MemberPlace::Pane => "",
        MemberPlace::Tmux | MemberPlace::Native => " in a tmux window",
    };
    let mut lines = vec![match &member.program {
        Some(program) => {
            let shown = match program.strip_prefix(&file.spec.root) {
                Ok(inside) => Path::new(".").join(inside),
                Err(_) => program.clone(),
            };
            format!("runs {} as {}{window}", shown.display(), member.agent)
        }
        None => format!("runs {}{window}", member.agent),
    }];
    lines.extend(member.model.as_ref().map(|model| format!("uses the model {}", exact(model))));
    lines.push(match (member.access, member.plan) {
        (AccessLevel::Full, false) => "may do everything without asking".to_owned(),
        (AccessLevel::Full, true) => {
            "may do everything without asking after its plan is approved".to_owned()
        }
        (AccessLevel::Ask, _) => "asks for permission".to_owned(),
    });
    if member.name == MemberName::lead() && file.spec.answers == ApprovalAuthority::Lead {
        lines.push("approves the plans and permission requests of the others".to_owned());
    }
    for (ruling, what) in [
        (RuleDecision::Allow, "may run without asking"),
        (RuleDecision::Ask, "must ask before"),
        (RuleDecision::Deny, "must not run"),
    ] {
        let rules = member.rules.iter().filter(|rule| rule.ruling == ruling);
        let rules: Vec<String> = rules.map(rule_text).collect();
        if !rules.is_empty() {
            lines.push(format!("{what}: {}", rules.join(", ")));
        }
    }
    let dir = member.cwd.strip_prefix(&file.spec.root).unwrap_or(&member.cwd);
    if !dir.as_os_str().is_empty() {
        lines.push(format!("works in {}", dir.display()));
    }
    if let Some(names) = &member.env {
        lines.push(match names.as_slice() {
            [] => "inherits only the basic environment variables".to_owned(),
            names => format!("inherits the environment variables {}", names.join(", ")),
        });
    }
    lines
}

fn rule_text(rule: &Rule) -> String {
    match (&rule.tool, &rule.command) {
        (None, None) => "everything".to_owned(),
        (None, Some(command)) => command.clone(),
        (Some(tool), None) => format!("tool {tool}"),
        (Some(tool), Some(command)) => format!("tool {tool} with {command}"),
    }
}

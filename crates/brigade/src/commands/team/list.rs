//! `brigade team list`

use brigade_host::origin;
use brigade_wire::name::MemberName;
use brigade_wire::team::Team;
use serde_json::json;

use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, Cell, STRONG, Table};

pub(crate) async fn run(context: &CliContext) -> Result<u8, CliError> {
    let mut table = Table::new(&["TEAM", "MEMBERS", "DESCRIPTION"]);
    let mut list = Vec::new();
    for name in context.teams().await? {
        // Continue after an unreadable team, so that the other teams are still listed.
        let config = match context.seat_of(name.clone(), MemberName::lead()).find_config().await {
            Ok(Some(config)) => config,
            Ok(None) => continue,
            Err(error) => {
                output::note(&error.to_string());
                continue;
            }
        };
        let team = match Team::read(&config.bytes) {
            Ok(team) => team,
            Err(damage) => {
                output::note(&format!("team {name} cannot be read: {damage}"));
                continue;
            }
        };
        let description = team.description().unwrap_or_default();
        let members = team.members().len();
        list.push(json!({ "name": name, "description": description, "members": members }));
        table.row([
            Cell::new(STRONG, name.as_str()),
            members.to_string().into(),
            description.as_ref().into(),
        ]);
    }
    if context.json {
        output::print_json(&list)?;
    } else if list.is_empty() {
        match origin::folder_team(&context.cwd) {
            Ok(Some(folder)) => output::note(&folder.not_up_text()),
            _ => output::note("there is no team yet; create one with `brigade team create NAME`"),
        }
    } else {
        output::print(&table.render("", output::width()))?;
    }
    Ok(if list.is_empty() { exit::NOTHING } else { exit::DONE })
}

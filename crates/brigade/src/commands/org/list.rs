//! `brigade org list`

use brigade_nats::org::{Folder, IssuedSeat, Organisation};
use jiff::Timestamp;
use serde_json::json;

use crate::cli::OrgFolderArgs;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, Cell, FAINT, STRONG, Table};

pub(super) fn run(json: bool, asked: &OrgFolderArgs) -> Result<u8, CliError> {
    let folder = Folder::open(&asked.dir)?;
    let all = match &asked.org {
        Some(name) => vec![folder.organisation(Some(name))?],
        None => folder.organisations()?,
    };
    let now = Timestamp::now();
    let is_empty = all.iter().all(|organisation| organisation.seats.is_empty());
    if json {
        output::print_json(&json!({
            "dir": folder.dir(),
            "urls": folder.cluster().urls(),
            "organisations": all,
        }))?;
    } else {
        output::print(&table(&all, now).render("", output::width()))?;
        if is_empty {
            output::note("there are no credentials yet; create some with `brigade org add-member`");
        }
    }
    Ok(if is_empty { exit::NOTHING } else { exit::DONE })
}

fn table(all: &[Organisation], now: Timestamp) -> Table {
    let mut table = Table::new(&["ORGANISATION", "TEAM", "MEMBERS", "ROLE", "STATE", "FILE"]);
    for organisation in all {
        for seat in &organisation.seats {
            let names: Vec<String> = seat.members.iter().map(ToString::to_string).collect();
            let role = match (seat.role.as_str(), seat.answers) {
                ("lead", false) => "lead, cannot answer",
                (role, _) => role,
            };
            table.row([
                organisation.name.as_str().into(),
                seat.team.as_str().into(),
                Cell::new(STRONG, &names.join(", ")),
                role.into(),
                state(seat, now).as_str().into(),
                Cell::new(FAINT, &seat.file.display().to_string()),
            ]);
        }
    }
    table
}

/// Describes whether the credentials are valid, expired or revoked.
fn state(seat: &IssuedSeat, now: Timestamp) -> String {
    match (seat.revoked, seat.until) {
        (Some(at), _) => format!("revoked {}", output::when(&at.to_string())),
        (None, Some(until)) if until <= now => {
            format!("expired {}", output::when(&until.to_string()))
        }
        (None, Some(until)) => format!("valid until {}", output::when(&until.to_string())),
        (None, None) => "valid".to_owned(),
    }
}

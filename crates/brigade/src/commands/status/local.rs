//! The output of `brigade status` while the NATS server is unreachable: the processes of this host.

use std::fmt::Write as _;

use brigade_core::text::one_line;
use brigade_host::local_state::{self, LocalTeam};

use crate::cli::GlobalArgs;
use crate::context::{host_alone, named_team};
use crate::error::CliError;
use crate::output::{self, Cell, ERROR, FAINT, READY, STRONG, Table};

/// Prints the members of this host, and returns the error of the connection with a hint about what was shown.
pub(crate) fn run(global: &GlobalArgs, unreachable: CliError) -> Result<u8, CliError> {
    let host = host_alone(global)?;
    let teams = local_state::teams(&host, named_team(global)?.as_ref())?;
    if global.json {
        output::print_json(&teams)?;
    } else {
        output::print(&render(&teams, &unreachable))?;
    }
    let reconnect = match unreachable.is_temporary() {
        true => "members keep running and reconnect by themselves",
        false => "members keep running, but cannot use the server until the cause is fixed",
    };
    Err(match teams.as_slice() {
        [] => unreachable,
        _ => unreachable.hint(format!("only the processes of this host are shown; {reconnect}")),
    })
}

/// Returns the members of this host as text. `unreachable` is the error of the connection.
pub(crate) fn render(teams: &[LocalTeam], unreachable: &CliError) -> String {
    let server = match unreachable.is_temporary() {
        true => "server unreachable",
        false => "server cannot be used",
    };
    let mut text = String::new();
    for LocalTeam { team, supervisor, members } in teams {
        let supervisor = match supervisor {
            Some(pid) => format!("supervisor: process {pid}"),
            None => "no supervisor".to_owned(),
        };
        let _infallible = writeln!(
            text,
            "{STRONG}{team}{STRONG:#}  {FAINT}on this host; {server}; {supervisor}{FAINT:#}"
        );
        let mut table = Table::new(&["NAME", "AGENT", "PROCESS", "DETAILS"]);
        for member in members {
            let process = match member.pid {
                Some(pid) => Cell::new(READY, &pid.to_string()),
                None => Cell::new(ERROR, "not running"),
            };
            let problem = member.problem.as_deref().map(one_line).unwrap_or_default();
            let name = Cell::new(STRONG, member.name.as_str());
            table.row([name, member.agent.as_str().into(), process, problem.into()]);
        }
        text.push_str(&table.render("  ", output::width()));
    }
    text
}

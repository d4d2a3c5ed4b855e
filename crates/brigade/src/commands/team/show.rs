//! `brigade team show`

use std::fmt::Write as _;

use brigade_agents::driver;
use brigade_core::text;
use brigade_wire::generation::Generation;
use brigade_wire::member::Member;
use brigade_wire::team::Team;

use crate::context::CliContext;
use crate::error::CliError;
use crate::exit;
use crate::output::{self, BUSY, Cell, FAINT, STRONG, Table};

pub(crate) async fn run(context: &CliContext) -> Result<u8, CliError> {
    let seat = context.reader().await?;
    let config = seat.config().await?;
    if context.json {
        output::print_raw(&config.bytes)?;
        output::print_raw(b"\n")?;
        return Ok(exit::DONE);
    }
    let team = seat.read(&config)?;
    let mut text = format!("{STRONG}{}{STRONG:#}", seat.team);
    if let Some(description) = team.description().filter(|text| !text.is_empty()) {
        let _infallible = write!(text, "  {}", text::one_line(&description));
    }
    let made = match team.generation() {
        Generation::Old => "a named team",
        Generation::New => "the team of a Claude Code session",
    };
    let since = team.created_at().and_then(output::when_ms);
    let since = since.map_or_else(String::new, |since| format!(", created {since}"));
    let _infallible = writeln!(text, "\n{FAINT}{made}{since}{FAINT:#}\n");
    let mut table = Table::new(&["MEMBER", "TYPE", "STATE", "MODEL", "FOLDER"]);
    for member in team.members() {
        let text_of =
            |text: Option<std::borrow::Cow<'_, str>>| text.unwrap_or_default().into_owned();
        table.row([
            Cell::new(STRONG, &text_of(member.name())),
            text_of(member.agent_type()).into(),
            state(&team, &member),
            text_of(driver::known_model(&member)).into(),
            text_of(member.cwd()).into(),
        ]);
    }
    text.push_str(&table.render("", output::width()));
    output::print(&text)?;
    Ok(exit::DONE)
}

/// Returns whether a member is active or idle according to the roster, which does not record this for the lead.
pub(crate) fn state(team: &Team<'_>, member: &Member<'_>) -> Cell {
    let lead = team.lead().is_some_and(|lead| lead.name() == member.name());
    match member.is_active() {
        Some(false) => Cell::new(FAINT, "idle"),
        None if lead => Cell::new(FAINT, "-"),
        // Like Claude Code, treat a member without the `isActive` field as active.
        Some(true) | None => Cell::new(BUSY, "active"),
    }
}

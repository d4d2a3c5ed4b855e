//! `brigade up`, `brigade new`

use std::path::PathBuf;

use brigade_agents::driver::AGENTS;
use brigade_host::team_file::templates::TEMPLATES;
use brigade_wire::name::{MemberName, TeamName};
use clap::Args;
use clap::builder::PossibleValuesParser;

/// The name of the file that explains every setting, among the names of the templates.
pub(crate) const STARTER: &str = "starter";

fn template_names() -> PossibleValuesParser {
    let names = TEMPLATES.iter().map(|template| template.name);
    PossibleValuesParser::new([STARTER].into_iter().chain(names))
}

fn agent_names() -> PossibleValuesParser {
    PossibleValuesParser::new(AGENTS.iter().map(|agent| agent.name))
}

/// Arguments of `brigade up`.
#[derive(Args, Clone, Debug)]
pub(crate) struct UpArgs {
    /// Only check the file and preview the team
    ///
    /// Reports every mistake with its line. Starts and changes nothing.
    #[arg(long, conflicts_with = "until_done")]
    pub(crate) check: bool,
    /// Team file [default: brigade.toml in this folder or the nearest parent folder]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Continue a team of the same name that another file or folder started
    ///
    /// Use this after you have moved a brigade.toml whose team is up.
    #[arg(long, conflicts_with = "check")]
    pub(crate) adopt: bool,
    /// Restart members whose settings differ from the file, with the new settings
    ///
    /// Without names, all such members. A member continues its session, unless its agent, folder or worktree
    /// changes: then it begins a new session, with a briefing.
    #[arg(long, value_name = "MEMBER", num_args = 0.., conflicts_with = "check")]
    pub(crate) recreate: Option<Vec<MemberName>>,
    /// Stop and remove members that are not in the file, as `brigade stop` does
    #[arg(long, conflicts_with = "check")]
    pub(crate) remove_orphans: bool,
    /// Wait until every task is done, then stop and delete the team (`brigade wait --tasks` keeps it)
    ///
    /// Prints events as they happen; as JSON lines with --json. Exits with code 0 only if every task
    /// is done.
    #[arg(long)]
    pub(crate) until_done: bool,
    /// With --until-done: stop the team after this many seconds, and delete its unfinished tasks
    #[arg(long, value_name = "SECONDS", requires = "until_done")]
    pub(crate) limit: Option<u64>,
}

/// Arguments of `brigade new`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NewArgs {
    /// The kind of team: starter, review, feature, bugfix, research or port
    #[arg(long, short, value_name = "NAME", value_parser = template_names())]
    pub(crate) template: Option<String>,
    /// Agent of a member; can be repeated [default: the installed agents]
    #[arg(long = "agent", value_name = "AGENT", value_delimiter = ',', value_parser = agent_names())]
    pub(crate) agents: Vec<String>,
    /// Team name [default: the name of the folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<TeamName>,
    /// List the templates
    #[arg(long, exclusive = true)]
    pub(crate) list: bool,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Also write brigade.schema.json, for completion and checks in editors
    #[arg(long)]
    pub(crate) schema: bool,
}

//! Asks agents whether a person has logged in, with the environment that members would get.

use brigade_agents::driver::{Agent, LoginState};
use brigade_host::installed::Programs;
use brigade_host::login::{self, LoginSettings, MemberLogin};
use brigade_host::spec::MemberSpec;
use brigade_wire::name::MemberName;

use crate::context::current_dir;
use crate::{env, output};

/// Asks the installed programs of these agents. `None` if an agent is not installed.
pub(crate) async fn check_agents(agents: &[Agent]) -> Vec<Option<LoginState>> {
    let programs = env::programs();
    login::check_agents(&settings(&programs), agents, &current_dir()).await
}

/// Asks the programs of these members' agents.
pub(crate) async fn check_members(
    members: impl IntoIterator<Item = &MemberSpec>,
) -> Vec<MemberLogin> {
    let programs = env::programs();
    login::check_members(&settings(&programs), members).await
}

/// Prints a warning for each agent that is logged out.
pub(crate) fn warn_logged_out(logins: &[MemberLogin]) {
    for login in logins.iter().filter(|login| login.state == LoginState::LoggedOut) {
        output::warning(&logged_out_text(login));
    }
}

/// Says that an agent is logged out, which members it concerns, and how to log in.
pub(crate) fn logged_out_text(login: &MemberLogin) -> String {
    let members: Vec<&str> = login.members.iter().map(MemberName::as_str).collect();
    let (title, members) = (login.agent.title, members.join(", "));
    format!("{title} is logged out, so {members} cannot work; {}", login.agent.login)
}

fn settings(programs: &Programs) -> LoginSettings<'_> {
    LoginSettings {
        programs,
        inherited: env::inherited,
        arguments: env::agent_arguments,
        temp_dir: std::env::temp_dir(),
    }
}

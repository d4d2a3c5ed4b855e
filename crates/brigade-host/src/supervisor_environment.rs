//! Compares the environment of a command with that of the running supervisor, whose variables new members inherit.

use std::collections::BTreeSet;
use std::ffi::OsString;

use crate::error::HostError;
use crate::host::Host;
use crate::process;

/// The variables with which an agent's program finds its account and its server.
const VENDOR_VARIABLES: &[(&str, &[&str])] = &[
    (
        "claude",
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ],
    ),
    ("codex", &["CODEX_API_KEY", "CODEX_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"]),
    (
        "gemini",
        &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GEMINI_BASE_URL",
        ],
    ),
    ("copilot", &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"]),
    ("qwen", &["DASHSCOPE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"]),
];

/// Returns the names of the variables that these agents use and that have another value in the running supervisor.
/// `read` returns the caller's value of a variable. Returns nothing if no supervisor is running, because the next one
/// inherits the caller's variables, or if the system does not show the supervisor's variables.
pub fn differences<'a>(
    host: &Host,
    agents: impl IntoIterator<Item = &'a str>,
    read: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<&'static str>, HostError> {
    let Some(supervisor) = host.supervisor()? else { return Ok(Vec::new()) };
    let Some(theirs) = process::environment(&supervisor) else { return Ok(Vec::new()) };
    let names: BTreeSet<&'static str> = agents.into_iter().flat_map(vendor_variables).collect();
    let differs = |name: &&str| {
        let value = theirs.iter().find(|(other, _)| other == *name).map(|(_, value)| value);
        value.filter(|value| !value.is_empty()) != read(name).as_ref()
    };
    Ok(names.into_iter().filter(differs).collect())
}

/// Returns the variables of an agent. An agent that is not in the table may use those of any vendor.
fn vendor_variables(agent: &str) -> Vec<&'static str> {
    let known = VENDOR_VARIABLES.iter().find(|(name, _)| *name == agent);
    match known {
        Some((_, variables)) => variables.to_vec(),
        None => {
            VENDOR_VARIABLES.iter().flat_map(|(_, variables)| variables.iter().copied()).collect()
        }
    }
}

//! The environment variables that an agent inherits. Only listed variables are passed on, because the environment of a
//! person often contains secrets that have nothing to do with the agent.
//!
//! An agent inherits the variables that every program needs, those that configure languages and build tools, and those
//! that its own vendor reads. A team file can list more. In these lists, `*` at the end of a name matches any rest.

use std::ffi::OsString;

use brigade_agents::driver::Agent;

use crate::variables::ALWAYS;

/// Variables that configure languages, build tools and the network. They are inherited unless the team file has its own
/// list.
const TOOLS: &[&str] = &[
    "ALL_PROXY",
    "ANDROID_*",
    "AR",
    "BUNDLE_*",
    "BUN_*",
    "CARGO_*",
    "CC",
    "CFLAGS",
    "CI",
    "CMAKE_*",
    "COMPOSER_*",
    "CONDA_*",
    "CPATH",
    "CURL_CA_BUNDLE",
    "CXX",
    "CXXFLAGS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DENO_*",
    "DEVELOPER_DIR",
    "DISPLAY",
    "DOCKER_*",
    "DOTNET_*",
    "DYLD_*",
    "EDITOR",
    "FORCE_COLOR",
    "GEM_*",
    "GIT_*",
    "GO*",
    "GRADLE_*",
    "HOMEBREW_*",
    "INFOPATH",
    "JAVA_*",
    "JDK_*",
    "KUBECONFIG",
    "LANGUAGE",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "MAKEFLAGS",
    "MANPATH",
    "MAVEN_*",
    "MISE_*",
    "NIX_*",
    "NODE_*",
    "NPM_CONFIG_*",
    "NVM_*",
    "PAGER",
    "PHP*",
    "PIP_*",
    "PKG_CONFIG_*",
    "PNPM_*",
    "PWD",
    "PYENV_*",
    "PYTHON*",
    "RBENV_*",
    "REQUESTS_CA_BUNDLE",
    "RUBY*",
    "RUST*",
    "SDKROOT",
    "SSH_AUTH_SOCK",
    "SWIFT*",
    "TEMP",
    "TERMINFO",
    "TERM_PROGRAM",
    "TMP",
    "TMUX_TMPDIR",
    "UV_*",
    "VIRTUAL_ENV",
    "VISUAL",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_*",
    "YARN_*",
    "ZDOTDIR",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "npm_config_*",
];
/// A variable whose name contains one of these words is a secret of some tool. It is inherited only if the agent's vendor
/// reads it or the team file lists it.
const SECRETS: &[&str] =
    &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "API_KEY", "ASKPASS"];

/// Returns the variables of `all` that an agent inherits. `listed` is the list of the team file, if it has one; it replaces
/// the variables of tools and of the vendor. `more` are names that the person gives to all agents.
pub fn inherited(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    agent: &Agent,
    listed: Option<&[String]>,
    more: &[&str],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &str| {
        let always = ALWAYS.contains(&name) || name.starts_with("LC_");
        let its = match listed {
            Some(listed) => listed.iter().any(|pattern| matches(pattern, name)),
            None => {
                let is_secret = SECRETS.iter().any(|word| name.to_ascii_uppercase().contains(word));
                let tool = !is_secret && TOOLS.iter().any(|pattern| matches(pattern, name));
                tool || is_vendors(agent, name)
            }
        };
        always || its || more.iter().any(|pattern| matches(pattern, name))
    };
    all.into_iter().filter(|(name, _)| name.to_str().is_some_and(passes)).collect()
}

/// Returns whether the program of this agent reads the variable, for example to find its account or its server.
pub(crate) fn is_vendors(agent: &Agent, name: &str) -> bool {
    agent.variables.iter().any(|pattern| matches(pattern, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use brigade_agents::driver;

    use super::inherited;

    /// Finding 23: agents inherited every variable.
    #[test]
    fn an_agent_inherits_only_listed_variables() {
        let check = |agent: &str, listed: Option<&[&str]>, name: &str, expected: bool| {
            let agent = driver::agent(agent).unwrap().agent;
            let listed: Option<Vec<String>> =
                listed.map(|listed| listed.iter().map(|name| (*name).to_owned()).collect());
            let all = [(name.into(), "value".into())];
            let passed = !inherited(all, &agent, listed.as_deref(), &["GIVEN_*"]).is_empty();
            assert_eq!(passed, expected, "{}: {name}", agent.name);
        };
        for name in
            ["PATH", "HOME", "LC_ALL", "CARGO_HOME", "NODE_OPTIONS", "https_proxy", "SSH_AUTH_SOCK"]
        {
            check("codex", None, name, true);
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "CARGO_REGISTRY_TOKEN",
            "NODE_AUTH_TOKEN",
            "BRIGADE_CREDS",
            "MY_DATABASE",
        ] {
            check("codex", None, name, false);
        }
        check("codex", None, "OPENAI_API_KEY", true);
        check("codex", None, "GEMINI_API_KEY", false);
        check("gemini", None, "GEMINI_API_KEY", true);
        check("claude", None, "ANTHROPIC_BASE_URL", true);
        check("acp:my-agent", None, "OPENAI_API_KEY", false);
        check("acp:my-agent", Some(&["OPENAI_API_KEY"]), "OPENAI_API_KEY", true);
        check("codex", Some(&["MY_*"]), "MY_DATABASE", true);
        check("codex", Some(&["MY_*"]), "OPENAI_API_KEY", false);
        check("codex", Some(&["*"]), "AWS_SECRET_ACCESS_KEY", true);
        check("codex", Some(&[]), "PATH", true);
        check("codex", Some(&[]), "GIVEN_TOKEN", true);
        check("codex", None, "GIVEN_TOKEN", true);
    }
}

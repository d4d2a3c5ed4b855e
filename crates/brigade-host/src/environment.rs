//! The environment variables that an agent inherits. Only listed variables are passed on, because the environment of a
//! person often contains secrets that have nothing to do with the agent.
//!
//! An agent inherits the variables that every program needs, those that configure languages and build tools, and those
//! that its own vendor reads. A team file can list more. In these lists, `*` at the end of a name matches any rest.

mod tools;

use std::ffi::{OsStr, OsString};

use brigade_agents::driver::Agent;

use self::tools::TOOLS;
use crate::variables::ALWAYS;

/// If only a pattern with `*` matches a name, and the name contains one of these words, the variable is a secret of some
/// tool. It is inherited only if the agent's vendor reads it or the team file lists it.
const SECRETS: &[&str] =
    &["AUTH", "CREDENTIAL", "IDENT", "KEY", "PASS", "PRIVATE", "SECRET", "TOKEN"];

/// Returns the variables of `all` that an agent inherits. `listed` is the list of the team file, if it has one; it replaces
/// the variables of tools and of the vendor. `more` are names that the person gives to all agents.
pub fn inherited(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    agent: &Agent,
    listed: Option<&[String]>,
    more: &[&str],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &str, value: &OsStr| {
        let always = ALWAYS.contains(&name) || name.starts_with("LC_");
        let its = match listed {
            Some(listed) => listed.iter().any(|pattern| matches(pattern, name)),
            None => is_of_tool(name, value) || is_vendors(agent, name),
        };
        always || its || more.iter().any(|pattern| matches(pattern, name))
    };
    let passes = |(name, value): &(OsString, OsString)| {
        name.to_str().is_some_and(|name| passes(name, value.as_os_str()))
    };
    all.into_iter().filter(passes).collect()
}

/// Returns whether a variable configures a tool and contains no secret.
fn is_of_tool(name: &str, value: &OsStr) -> bool {
    let is_secret = SECRETS.iter().any(|word| name.to_ascii_uppercase().contains(word));
    let is_listed =
        TOOLS.contains(&name) || (!is_secret && TOOLS.iter().any(|pattern| matches(pattern, name)));
    // Without the password of the proxy, the agent would not reach its vendor.
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
    is_listed && (is_proxy || !contains_login(&value.to_string_lossy()))
}

/// Returns whether a text contains an address with a password, `https://user:password@host`, or with a token as the
/// user, `https://token@host`. The user of another address, `ssh://git@host`, is not a secret.
fn contains_login(text: &str) -> bool {
    text.match_indices("://").any(|(at, separator)| {
        let (scheme, rest) = text.split_at(at);
        let rest = rest.strip_prefix(separator).unwrap_or(rest);
        let end = rest.find(|c: char| c.is_whitespace() || "/?#,".contains(c));
        let authority = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let is_web = scheme.ends_with("http") || scheme.ends_with("https");
        user.is_some_and(|user| user.contains(':') || (is_web && !user.is_empty()))
    })
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
        for name in ["GIT_AUTHOR_NAME", "GOPRIVATE", "XAUTHORITY", "NIX_PATH", "BUNDLE_GEMFILE"] {
            check("codex", None, name, true);
        }
        // Secrets in the variables of tools.
        for name in [
            "ANDROID_KEYSTORE_PASS",
            "BUNDLE_GEMS__EXAMPLE__COM",
            "COMPOSER_AUTH",
            "DOCKER_AUTH_CONFIG",
            "GIT_CONFIG_VALUE_0",
            "GOOGLE_CLOUD_KEYFILE_JSON",
            "GRADLE_ENCRYPTION_KEY",
            "MAVEN_GPG_PASSPHRASE",
            "NIX_CONFIG",
            "NPM_CONFIG__AUTH",
            "YARN_NPM_AUTH_IDENT",
            "npm_config__auth",
        ] {
            check("codex", None, name, false);
            check("codex", Some(&[name]), name, true);
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
    #[test]
    fn an_address_with_a_password_is_not_inherited() {
        let agent = driver::agent("codex").unwrap().agent;
        let passed = |name: &str, value: &str| {
            !inherited([(name.into(), value.into())], &agent, None, &[]).is_empty()
        };
        for value in [
            "https://user:password@pypi.example/simple",
            "https://token@pypi.example",
            "https://pypi.org/simple https://u:p@pypi.example/simple",
            "https://proxy.golang.org,https://u:p@go.example",
            "redis://:password@host",
        ] {
            assert!(!passed("PIP_INDEX_URL", value), "{value}");
        }
        for value in ["https://pypi.org/simple", "ssh://git@host/x", "https://host/a:b@c", "a@b"] {
            assert!(passed("PIP_INDEX_URL", value), "{value}");
        }
        assert!(passed("https_proxy", "http://user:password@proxy:8080"));
    }
}

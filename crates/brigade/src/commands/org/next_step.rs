//! The commands that `brigade org` prints for the next step. Each works as it is printed.

use std::path::Path;

use brigade_core::policy::shell;
use brigade_host::profile::StoreName;
use brigade_nats::org::Folder;
use brigade_wire::name::{MemberName, TeamName};

/// The team and the members in printed examples.
const EXAMPLE_TEAM: &str = "demo";
const EXAMPLE_MEMBERS: &str = "alice bob";
const EXAMPLE_FILE: &str = "host-b.creds";

/// Returns the command line for `words`.
fn line(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| shell::quote(word)).collect();
    words.join(" ")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn folder_options(folder: &Folder, org: &TeamName) -> String {
    line(&["--org", org.as_str(), "--dir", &text(folder.dir())])
}

/// Returns the command that starts a server in the background.
pub(super) fn start_server(config: &Path) -> String {
    format!("{} > nats.log 2>&1 &", line(&["nats-server", "-c", &text(config)]))
}

/// Returns the command that informs the servers and creates the streams.
pub(super) fn apply(folder: &Folder, org: &TeamName) -> String {
    format!("brigade org apply {}", folder_options(folder, org))
}

/// Returns the command that issues a lead's credentials and makes this host use them.
pub(super) fn add_lead(folder: &Folder, org: &TeamName) -> String {
    let lead = MemberName::lead();
    format!(
        "brigade org add-member {EXAMPLE_TEAM} {lead} --lead --use {}",
        folder_options(folder, org)
    )
}

/// Returns the command that issues credentials for members on another host.
pub(super) fn add_members(folder: &Folder, org: &TeamName, team: &TeamName) -> String {
    format!(
        "brigade org add-member {team} {EXAMPLE_MEMBERS} --out {EXAMPLE_FILE} {}",
        folder_options(folder, org)
    )
}

/// Returns the command that makes a host use the servers with these credentials.
pub(super) fn add_store(folder: &Folder, store: &StoreName, creds: &Path) -> String {
    let urls = folder.cluster().urls().join(",");
    let mut words = vec!["brigade", "store", "add", store.as_str(), &urls];
    let ca = folder.cluster().tls.as_ref().and_then(|tls| tls.ca.as_deref()).map(text);
    if let Some(ca) = &ca {
        words.extend(["--ca", ca]);
    }
    let creds = text(creds);
    words.extend(["--creds", &creds, "--use"]);
    line(&words)
}

/// Returns the command with which the lead adds a member to the roster.
pub(super) fn join(team: &TeamName, name: &MemberName) -> String {
    line(&["brigade", "--team", team.as_str(), "team", "join", name.as_str()])
}

/// Returns the command with which a member sends a message to the lead. With the credentials of several members, it has to
/// name itself.
pub(super) fn first_message(name: &MemberName, members: usize) -> String {
    let lead = MemberName::lead();
    let mut words = vec!["brigade"];
    if members > 1 {
        words.extend(["--as", name.as_str()]);
    }
    words.extend(["send", lead.as_str(), "hello"]);
    line(&words)
}

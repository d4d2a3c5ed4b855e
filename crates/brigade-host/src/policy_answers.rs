//! Answers permission requests on behalf of the lead, by the rules in the team file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade_core::approvals::{self, MemberRules};
use brigade_core::policy::RuleDecision;
use brigade_core::seat::Seat;
use brigade_wire::name::{MemberName, TeamName};

use crate::Host;
use crate::error::HostError;
use crate::progress::Log;
use crate::spec::MemberSpec;

/// How long to wait before checking a request a second time. If a process decided on an answer but died before
/// sending the answer, the second check sends it.
const RECHECK_AFTER: Duration = Duration::from_secs(30);

/// Whether requests wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    /// At least one request waits for an answer.
    Wait,
    /// No request waits for an answer.
    None,
}

/// Decides when to check for requests. A check reads whole journals, so only mail that contains a request causes
/// a check.
#[derive(Debug, Default)]
pub(crate) struct RequestSchedule {
    next: Option<Duration>,
}

impl RequestSchedule {
    /// Returns whether a check is due. `asked` means that a request has arrived since the last check.
    pub(crate) fn is_due(&mut self, asked: bool, now: Duration) -> bool {
        let recheck = self.next.is_some_and(|next| now >= next);
        if recheck {
            self.next = None;
        }
        if asked {
            self.renew(now);
        }
        asked || recheck
    }

    /// Schedules another check, because a request still waits for an answer.
    pub(crate) fn renew(&mut self, now: Duration) {
        self.next = Some(now + RECHECK_AFTER);
    }
}

/// Answers the requests that match a rule. Returns whether any requests still wait for an answer. If brigade does
/// not lead the team, does nothing and returns [`Requests::None`].
pub(crate) async fn answer_by_rule(
    host: &Host,
    seat: &Seat,
    log: Log<'_>,
) -> Result<Requests, HostError> {
    if !host.leads(seat).await? {
        return Ok(Requests::None);
    }
    let rules_of = |name: &MemberName| {
        let spec = host.registry.member(&seat.team, name).ok().flatten();
        spec.map(|spec| rules_of(host, &seat.team, spec)).unwrap_or_default()
    };
    let ruled = approvals::apply_rules(seat, rules_of, real_path).await;
    for ruled in ruled.map_err(HostError::failed)? {
        let ruling = if ruled.decision == RuleDecision::Allow { "allowed" } else { "denied" };
        log(&format!(
            "{} of team {}: {} {ruling} by rule {}",
            ruled.approval.from, seat.team, ruled.approval.request_id, ruled.rule
        ));
    }
    let waiting = approvals::waiting(seat).await.map_err(HostError::failed)?;
    Ok(if waiting.is_empty() { Requests::None } else { Requests::Wait })
}

/// Returns the member's rules and the folder that it works in: its worktree, if it has one.
fn rules_of(host: &Host, team: &TeamName, spec: MemberSpec) -> MemberRules {
    let worktree = host.worktree(team, &spec).map(|worktree| worktree.dir);
    let recorded = || host.registry.recorded_folder(team, &spec.name).ok().flatten();
    MemberRules { folder: worktree.or_else(recorded).unwrap_or(spec.cwd), rules: spec.rules }
}

/// The length of the longest path that is resolved, in bytes. The system accepts no longer ones.
const MAX_PATH: usize = 4096;

/// Resolves symbolic links and `..` in a path. If the path does not exist, resolves the folder in which it would be
/// created. Returns an empty path for a link to a file that does not exist, and for a `..` after a missing folder:
/// nothing is known about the place to which they lead.
fn real_path(path: &Path) -> PathBuf {
    if path.as_os_str().len() > MAX_PATH {
        return PathBuf::new();
    }
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = fs::canonicalize(ancestor) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        let is_link = fs::symlink_metadata(ancestor).is_ok_and(|metadata| metadata.is_symlink());
        match ancestor.file_name() {
            Some(name) if !is_link => missing.push(name),
            _ => break,
        }
    }
    PathBuf::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked_when_asked_and_once_more_later() {
        let mut schedule = RequestSchedule::default();
        let mut check = |second, asked, due| {
            let now = Duration::from_secs(second);
            assert_eq!(schedule.is_due(asked, now), due, "at {second} s");
        };
        check(0, false, false);
        check(10, true, true);
        check(11, false, false);
        // The second check sends an answer that was decided but not sent.
        check(40, false, true);
        check(41, false, false);
    }

    #[test]
    fn waiting_requests_are_checked_again() {
        let mut schedule = RequestSchedule::default();
        let at = Duration::from_secs;
        schedule.renew(at(30));
        assert!(!schedule.is_due(false, at(59)));
        assert!(schedule.is_due(false, at(60)));
        assert!(!schedule.is_due(false, at(90)));
    }

    /// Finding 14: a symbolic link in the member's folder must not hide that a command runs elsewhere.
    #[test]
    fn finding_14_symbolic_links_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let (outside, inside) = (root.join("outside"), root.join("inside"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        assert_eq!(real_path(&inside.join("link")), outside);
        assert_eq!(real_path(&inside.join("link/..")), root);
        assert_eq!(real_path(&inside.join("missing")), inside.join("missing"));
        assert_eq!(real_path(&inside.join("a/b")), inside.join("a/b"));
        // A file that is created through a link is where the link leads.
        assert_eq!(real_path(&inside.join("link/new")), outside.join("new"));
        std::os::unix::fs::symlink(outside.join("new"), inside.join("dangling")).unwrap();
        for unknown in ["dangling", "dangling/x", "missing/../x", "missing/.."] {
            assert_eq!(real_path(&inside.join(unknown)), Path::new(""), "{unknown}");
        }
        assert_eq!(real_path(Path::new("")), Path::new(""));
        assert_eq!(real_path(Path::new("~/x")), Path::new(""));
        assert_eq!(real_path(&inside.join("a/".repeat(100_000))), Path::new(""));
    }
}

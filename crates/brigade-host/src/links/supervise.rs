//! The supervisor's part: it starts links in the background, and starts a link again whose process died.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use tokio::process::Child;

use crate::context::Context;
use crate::error::{HostError, failed};
use crate::link_registry::{LinkFiles, LinkSpec, all_files};
use crate::progress::Log;
use crate::restarts::{RestartStep, Restarts};
use crate::spec::Restart;
use crate::start;

/// The links that a supervisor keeps running.
#[derive(Debug, Default)]
pub(crate) struct SupervisedLinks {
    links: HashMap<LinkFiles, SupervisedLink>,
}

#[derive(Debug, Default)]
struct SupervisedLink {
    restarts: Restarts,
    child: Option<Child>,
    /// The last logged error. A repeated error is not logged again.
    logged_error: String,
}

impl SupervisedLinks {
    pub(crate) fn has_any(&self) -> bool {
        !self.links.is_empty()
    }

    /// Checks every link of this file store. Returns whether any link should run.
    pub(crate) fn check(
        &mut self,
        context: &Context,
        log: Log<'_>,
        now: Duration,
    ) -> Result<bool, HostError> {
        // The supervisor of a NATS store has no links: each belongs to the files.
        if context.location().nats().is_some() {
            return Ok(false);
        }
        let registry = context.host()?.registry;
        let key = registry.key();
        let mut specs = HashMap::new();
        for files in all_files(&registry)? {
            if let Some(spec) = files.spec()?.filter(|spec| spec.files == key) {
                specs.insert(files, spec);
            }
        }
        self.links.retain(|files, _| specs.contains_key(files));
        let mut should_run = false;
        for (files, spec) in specs {
            should_run |= files.failure().is_none();
            let link = self.links.entry(files.clone()).or_default();
            let error = match link.check(context, &files, &spec, log, now) {
                Ok(()) => String::new(),
                Err(error) => error.to_one_line(),
            };
            if !error.is_empty() && error != link.logged_error {
                log(&format!("link of team {}: {error}", spec.team));
            }
            link.logged_error = error;
        }
        Ok(should_run)
    }
}

impl SupervisedLink {
    fn check(
        &mut self,
        context: &Context,
        files: &LinkFiles,
        spec: &LinkSpec,
        log: Log<'_>,
        now: Duration,
    ) -> Result<(), HostError> {
        // If shortening the log fails, the next check tries again.
        let _shortened = start::shorten(&files.log());
        let process = files.process()?;
        if let Some(child) = &mut self.child
            && let Ok(Some(_)) = child.try_wait()
        {
            self.child = None;
            self.restarts.ended(now);
        }
        let is_marked_failed = files.failure().is_some();
        if is_marked_failed && process.is_none() {
            self.restarts = Restarts::failed();
            return Ok(());
        }
        if !is_marked_failed && self.restarts.is_failed() {
            // A person started the link again.
            self.restarts = Restarts::default();
        }
        match self.restarts.step(process.is_some(), Restart::Always, now) {
            RestartStep::Wait => Ok(()),
            RestartStep::Start => {
                log(&format!("link of team {}: started", spec.team));
                let command = context.host_at(&spec.location())?.self_command;
                let started = start::link(&command, &spec.team, &spec.host, &files.log());
                self.child = Some(started.map_err(|source| failed("start it", source))?);
                Ok(())
            }
            RestartStep::Fail => {
                log(&format!("link of team {}: marked failed", spec.team));
                files.set_failure(Some(&failure_reason(files)))
            }
        }
    }
}

/// Returns the reason for marking a link as failed, including the last line of its log.
fn failure_reason(files: &LinkFiles) -> String {
    let log = fs::read_to_string(files.log()).unwrap_or_default();
    match log.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("its process keeps ending; last log line: {line}"),
        None => "its process keeps ending".to_owned(),
    }
}

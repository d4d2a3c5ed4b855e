//! Everything `brigade init` would change, and the changing of it.

use std::path::{Path, PathBuf};

use brigade_agents::driver::{AGENTS, Agent, ToolServer};

use super::edit::{self, Advice, Edit};
use super::file::Found;
use super::record::{Book, Record, Touched};
use super::{GuestError, claude, codex, gemini};
use crate::env;

/// What there is on this machine, as far as it matters here.
#[derive(Debug)]
pub(crate) struct Machine {
    /// This program.
    pub(crate) brigade: PathBuf,
    /// The real Claude Code.
    pub(crate) claude: Option<PathBuf>,
    /// The agents that are installed.
    pub(crate) agents: Vec<Agent>,
    /// Claude Code's folder.
    pub(crate) claude_dir: PathBuf,
    /// Codex's folder, if Codex is installed.
    pub(crate) codex_dir: Option<PathBuf>,
    /// Gemini CLI's folder, if Gemini CLI is installed.
    pub(crate) gemini_dir: Option<PathBuf>,
    /// What a server of ours has to be told of this environment.
    pub(crate) variables: Vec<(String, String)>,
}

/// What would be done.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// What is left alone, and why.
    pub(crate) left: Vec<(PathBuf, String)>,
}

/// One file that would be changed.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) found: Found,
    /// What it would say.
    pub(crate) text: String,
    touched: Touched,
}

impl Plan {
    /// Looks at every file, and at what was done to it before.
    pub(crate) fn make(machine: &Machine, record: &Record) -> Result<Self, GuestError> {
        let mut plan = Self::default();
        let settings = claude::settings(&machine.brigade, machine.claude.as_deref());
        plan.want(Found::at(&machine.claude_dir.join("settings.json"))?, &settings, record)?;
        for agent in machine.agents.iter().filter(|agent| !agent.native) {
            let path = machine.claude_dir.join("agents").join(format!("{}.md", agent.name));
            plan.want_whole(Found::at(&path)?, claude::agent_type(agent), record)?;
        }
        let server = ToolServer {
            command: machine.brigade.to_string_lossy().into_owned(),
            args: vec!["mcp".to_owned()],
            env: machine.variables.clone(),
        };
        if let Some(dir) = &machine.codex_dir {
            plan.consider(&dir.join("config.toml"), codex::advise, &server, record)?;
        }
        if let Some(dir) = &machine.gemini_dir {
            plan.consider(&dir.join("settings.json"), gemini::advise, &server, record)?;
        }
        Ok(plan)
    }

    /// Asks what is to become of a file without which Claude Code is none the worse.
    fn consider(
        &mut self,
        path: &Path,
        advise: fn(Option<&str>, Option<&Touched>, &ToolServer) -> Advice,
        server: &ToolServer,
        record: &Record,
    ) -> Result<(), GuestError> {
        let found = match Found::at(path) {
            Ok(found) => found,
            Err(error) => {
                self.left.push((path.to_owned(), error.to_string()));
                return Ok(());
            }
        };
        let advice = advise(found.text.as_deref(), record.file(path), server);
        self.left.extend(advice.left.map(|why| (path.to_owned(), why)));
        match advice.edit {
            Some(edit) => self.want(found, &edit, record),
            None => Ok(()),
        }
    }

    /// Wants a file that is ours as a whole, unless somebody else's is there.
    fn want_whole(
        &mut self,
        found: Found,
        text: String,
        record: &Record,
    ) -> Result<(), GuestError> {
        let known = record.file(&found.path);
        if let Some(now) = found.text.as_ref().filter(|now| **now != text)
            && !known.is_some_and(|known| known.is_as_left(now))
        {
            let why = match known {
                Some(_) => "it was changed since brigade wrote it",
                None => "it is not brigade's",
            };
            self.left.push((found.path, why.to_owned()));
            return Ok(());
        }
        self.want(found, &Edit::Whole(text), record)
    }

    fn want(&mut self, found: Found, edit: &Edit, record: &Record) -> Result<(), GuestError> {
        let known = record.file(&found.path);
        let damaged = |source| GuestError::Damaged { path: found.path.clone(), source };
        let edited = edit::make(edit, found.text.as_deref(), known).map_err(damaged)?;
        let Some(edited) = edited else { return Ok(()) };
        // What we replace now was ours, in part or whole, if we know the file.
        let earlier = found.text.clone().filter(|_| known.is_some());
        let touched = Touched {
            path: found.path.clone(),
            before: edited.before,
            left: earlier.into_iter().chain([edited.text.clone()]).collect(),
            put: edited.put,
        };
        self.steps.push(Step { found, text: edited.text, touched });
        Ok(())
    }

    /// Does it. The record says what will be done before anything is.
    pub(crate) fn carry_out(&self, book: &Book, mut record: Record) -> Result<(), GuestError> {
        for step in &self.steps {
            for folder in step.found.missing_folders() {
                if !record.folders.contains(&folder) {
                    record.folders.push(folder);
                }
            }
            record.files.retain(|file| file.path != step.touched.path);
            record.files.push(step.touched.clone());
        }
        book.write(&record)?;
        self.steps.iter().try_for_each(|step| step.found.replace(&step.text))
    }
}

/// The agents of the table that are installed.
pub(crate) fn installed() -> Vec<Agent> {
    let programs = env::programs();
    AGENTS.iter().copied().filter(|agent| programs.program(agent).is_some()).collect()
}

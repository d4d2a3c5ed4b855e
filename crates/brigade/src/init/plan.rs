//! Plans all changes of `brigade init`, and applies them.

use std::path::{Path, PathBuf};

use brigade_agents::driver::{AGENTS, Agent, ToolServer};

use super::edit::{self, EditDecision, FileEdit};
use super::file::UserFile;
use super::record::{ChangedFile, InitRecord, RecordFolder};
use super::{InitError, claude, codex, gemini};
use crate::env;

/// The state of this machine that the plan depends on.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The path of the brigade program.
    pub(crate) brigade: PathBuf,
    /// The path of the real Claude Code, if it is installed.
    pub(crate) claude: Option<PathBuf>,
    /// The agents that are installed.
    pub(crate) agents: Vec<Agent>,
    /// Claude Code's folder.
    pub(crate) claude_dir: PathBuf,
    /// Codex's folder, if Codex is installed.
    pub(crate) codex_dir: Option<PathBuf>,
    /// Gemini CLI's folder, if Gemini CLI is installed.
    pub(crate) gemini_dir: Option<PathBuf>,
    /// Environment variables to pass to brigade's MCP server.
    pub(crate) variables: Vec<(String, String)>,
}

/// The planned changes.
#[derive(Debug, Default)]
pub(crate) struct InitPlan {
    claude_dir: PathBuf,
    pub(crate) steps: Vec<PlannedEdit>,
    /// The files that are left unchanged, each with the reason.
    pub(crate) left: Vec<(PathBuf, String)>,
}

/// The planned change to one file.
#[derive(Debug)]
pub(crate) struct PlannedEdit {
    pub(crate) found: UserFile,
    /// The new content.
    pub(crate) text: String,
    touched: ChangedFile,
}

impl InitPlan {
    /// Reads every file, and uses the record of brigade's earlier changes to plan the new ones.
    pub(crate) fn make(machine: &Machine, record: &InitRecord) -> Result<Self, InitError> {
        let mut plan = Self { claude_dir: machine.claude_dir.clone(), ..Self::default() };
        let settings = claude::settings(&machine.brigade, machine.claude.as_deref());
        plan.plan_edit(
            UserFile::read(&machine.claude_dir.join("settings.json"))?,
            &settings,
            record,
        )?;
        for agent in machine.agents.iter().filter(|agent| !agent.native) {
            let path = machine.claude_dir.join("agents").join(format!("{}.md", agent.name));
            plan.plan_whole_file(UserFile::read(&path)?, claude::agent_type(agent), record)?;
        }
        let server = ToolServer {
            command: machine.brigade.to_string_lossy().into_owned(),
            args: vec!["mcp".to_owned()],
            env: machine.variables.clone(),
        };
        if let Some(dir) = &machine.codex_dir {
            plan.plan_optional(&dir.join("config.toml"), codex::decide, &server, record)?;
        }
        if let Some(dir) = &machine.gemini_dir {
            plan.plan_optional(&dir.join("settings.json"), gemini::decide, &server, record)?;
        }
        Ok(plan)
    }

    /// Plans the change to a settings file of an agent other than Claude Code. A problem with this file does not
    /// fail the whole plan.
    fn plan_optional(
        &mut self,
        path: &Path,
        decide: fn(Option<&str>, Option<&ChangedFile>, &ToolServer) -> EditDecision,
        server: &ToolServer,
        record: &InitRecord,
    ) -> Result<(), InitError> {
        let found = match UserFile::read(path) {
            Ok(found) => found,
            Err(error) => {
                self.left.push((path.to_owned(), error.to_string()));
                return Ok(());
            }
        };
        let advice = decide(found.text.as_deref(), record.file(path), server);
        self.left.extend(advice.left.map(|why| (path.to_owned(), why)));
        match advice.edit {
            Some(edit) => self.plan_edit(found, &edit, record),
            None => Ok(()),
        }
    }

    /// Plans to write a whole file. Keeps an existing file that brigade did not write or that was edited since.
    fn plan_whole_file(
        &mut self,
        found: UserFile,
        text: String,
        record: &InitRecord,
    ) -> Result<(), InitError> {
        let known = record.file(&found.path);
        if let Some(now) = found.text.as_ref().filter(|now| **now != text)
            && !known.is_some_and(|known| known.is_as_left(now))
        {
            let why = match known {
                Some(_) => "it was edited since brigade wrote it",
                None => "brigade did not write it",
            };
            self.left.push((found.path, why.to_owned()));
            return Ok(());
        }
        self.plan_edit(found, &FileEdit::Whole(text), record)
    }

    fn plan_edit(
        &mut self,
        found: UserFile,
        edit: &FileEdit,
        record: &InitRecord,
    ) -> Result<(), InitError> {
        let known = record.file(&found.path);
        let damaged = |source| InitError::Damaged { path: found.path.clone(), source };
        let edited = edit::make(edit, found.text.as_deref(), known).map_err(damaged)?;
        let Some(edited) = edited else { return Ok(()) };
        // If the record lists the file, the file's current text contains brigade's earlier edit.
        let earlier = found.text.clone().filter(|_| known.is_some());
        let touched = ChangedFile {
            path: found.path.clone(),
            before: edited.before,
            left: earlier.into_iter().chain([edited.text.clone()]).collect(),
            put: edited.put,
            claude_dir: Some(self.claude_dir.clone()),
        };
        self.steps.push(PlannedEdit { found, text: edited.text, touched });
        Ok(())
    }

    /// Applies the plan. Writes the record before changing any file.
    pub(crate) fn apply(
        &self,
        folder: &RecordFolder,
        mut record: InitRecord,
    ) -> Result<(), InitError> {
        for step in &self.steps {
            for folder in step.found.missing_folders() {
                if !record.folders.contains(&folder) {
                    record.folders.push(folder);
                }
            }
            record.files.retain(|file| file.path != step.touched.path);
            record.files.push(step.touched.clone());
        }
        folder.write(&record)?;
        self.steps.iter().try_for_each(|step| step.found.replace(&step.text))
    }
}

/// Returns the supported agents that are installed.
pub(crate) fn installed() -> Vec<Agent> {
    let programs = env::programs();
    AGENTS.iter().copied().filter(|agent| programs.program(agent).is_some()).collect()
}

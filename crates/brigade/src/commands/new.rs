//! `brigade new`: a first `brigade.toml`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use brigade_core::text;
use serde_json::json;
use thiserror::Error;

use crate::cli::New;
use crate::error::{CliError, Trouble};
use crate::{env, exit, output};
use brigade_host::team_file::starter::{self, Surroundings};
use brigade_host::team_file::{self, NAME};

/// The schema's name beside the file.
const SCHEMA: &str = "brigade.schema.json";

#[derive(Debug, Error)]
#[error("{path} is there already")]
struct Exists {
    path: PathBuf,
}

/// A worktree and a submodule have a file of that name. An empty folder is nobody's repository: Codex leaves such
/// ones where its sandbox kept them from being made, in `/tmp` for one.
fn is_repository(dir: &Path) -> bool {
    let git = dir.join(".git");
    git.is_file() || git.join("HEAD").exists()
}

pub(crate) fn run(json: bool, new: New) -> Result<u8, CliError> {
    let here = std::env::current_dir().map_err(|source| io("tell which folder this is", source))?;
    let repository = here.ancestors().find(|dir| is_repository(dir));
    let dir = repository.unwrap_or(&here);
    let path = dir.join(NAME);
    let surroundings = Surroundings::of(&env::programs(), dir);
    let schema = new.schema.then(|| dir.join(SCHEMA));
    let text = starter::text(&surroundings, new.schema.then_some(SCHEMA));
    write(&path, &text, new.force)?;
    if let Some(path) = &schema {
        // It is made from this program and from nothing else, so there is nothing of anybody's to keep.
        let text = serde_json::to_string_pretty(&team_file::schema())
            .map_err(|source| io("write the schema", source.into()))?;
        write(path, &(text + "\n"), true)?;
    }
    let Surroundings { team, agents, .. } = &surroundings;
    if json {
        let schema = schema.as_deref();
        output::print_json(
            &json!({ "path": path, "team": team, "agents": agents, "schema": schema }),
        )?;
        return Ok(exit::DONE);
    }
    let shown = |path: &Path| {
        let short = path.strip_prefix(&here).unwrap_or(path);
        text::one_line(&short.to_string_lossy())
    };
    let also = schema.map_or(String::new(), |schema| format!(" and {}", shown(&schema)));
    output::print(&format!(
        "wrote {}{also}: team {team}, with {}\nread it, change it, and look at the outcome with \
         `brigade up --check`\n",
        shown(&path),
        agents.join(" and ")
    ))?;
    if !surroundings.is_staffed {
        output::note(&format!(
            "{} is not installed, and no other agent is; `brigade agents` says how to get one",
            agents.join(" and ")
        ));
    }
    Ok(exit::DONE)
}

fn write(path: &Path, text: &str, over: bool) -> Result<(), CliError> {
    let mut options = OpenOptions::new();
    options.write(true);
    let options = if over { options.create(true).truncate(true) } else { options.create_new(true) };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => CliError::failed(Exists { path: path.to_owned() })
            .hint("change it as you like, or begin anew with --force"),
        _ => io(&format!("write {}", path.display()), source),
    })
}

fn io(doing: &str, source: io::Error) -> CliError {
    CliError::failed(Trouble::Io { doing: doing.to_owned(), source })
}

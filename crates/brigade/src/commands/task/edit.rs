//! `brigade task edit`

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use brigade_core::board::{self, Update};
use brigade_wire::change::Change;
use brigade_wire::name::TaskId;
use brigade_wire::task::Task;

use super::{answer, each};
use crate::cli::TaskEditArgs;
use crate::confirm::can_ask;
use crate::context::CliContext;
use crate::error::{CliError, CliTrouble, failed};
use crate::output::STRONG;
use crate::slow_notice::with_lock_notice;
use crate::{env, exit, output};

/// The line below which the text of the editor is ignored. `git commit` uses the same line.
const SCISSORS: &str = "# ------------------------ >8 ------------------------";

pub(super) async fn run(context: &CliContext, args: TaskEditArgs) -> Result<u8, CliError> {
    let ids = args.tasks.ids;
    let owner = match args.owner {
        Some(name) => Change::Set(name),
        None if args.no_owner => Change::Clear,
        None => Change::Keep,
    };
    let nothing = owner == Change::Keep
        && args.subject.is_none()
        && args.description.is_none()
        && args.active_form.is_none()
        && args.status.is_none()
        && args.priority.is_none()
        && args.label.is_empty()
        && args.remove_label.is_empty()
        && args.blocks.is_empty()
        && args.blocked_by.is_empty()
        && args.unblock.is_empty();
    let update = Update {
        subject: args.subject,
        description: args.description,
        active_form: args.active_form.map_or(Change::Keep, Change::Set),
        owner,
        status: args.status.map(Into::into),
        add_blocks: args.blocks,
        add_blocked_by: args.blocked_by,
        metadata: Vec::new(),
        remove_blocked_by: args.unblock,
        add_labels: args.label,
        remove_labels: args.remove_label,
        priority: args.priority.map(Into::into),
    };
    match ids.as_slice() {
        &[id] if nothing && can_ask(context.json) => in_editor(context, id).await,
        _ if nothing => {
            let error = CliError::usage(CliTrouble::NoChange);
            Err(error.hint("`brigade task edit --help` shows what can be changed"))
        }
        ids => {
            each(context, ids, async |seat, id| {
                board::update(seat, id, &update).await?;
                Ok(format!("changed task {STRONG}{id}{STRONG:#}"))
            })
            .await
        }
    }
}

/// Lets the person edit the subject and the description of a task.
async fn in_editor(context: &CliContext, id: TaskId) -> Result<u8, CliError> {
    let seat = context.seat().await?;
    let document = board::show(&seat, id).await?;
    let task = Task::read(&document.bytes).map_err(CliError::failed)?;
    let subject = task.subject().unwrap_or_default().into_owned();
    let description = task.description().unwrap_or_default().into_owned();
    let name = format!("brigade-task-{id}-{}.md", std::process::id());
    let path = std::env::temp_dir().join(name);
    let text = format!(
        "{subject}\n\n{description}\n{SCISSORS}\n# Task {id}. The first line is the subject, the rest the \
         description.\n# This line, the one above and everything below are ignored.\n# An empty file changes \
         nothing.\n"
    );
    let (new_subject, new_description) = parse(&edit_text(&path, &text)?);
    let update = Update {
        subject: Some(new_subject.clone()).filter(|new| *new != subject && !new.is_empty()),
        description: Some(new_description).filter(|new| *new != description.trim()),
        ..Update::default()
    };
    if new_subject.is_empty() || (update.subject.is_none() && update.description.is_none()) {
        let _removed = fs::remove_file(&path);
        output::note("nothing was changed");
        return Ok(exit::DONE);
    }
    let updated = with_lock_notice(board::update(&seat, id, &update)).await;
    updated.map_err(|error| {
        CliError::from(error).hint(format!("your text is still in {}", path.display()))
    })?;
    let _removed = fs::remove_file(&path);
    answer(context, id, &format!("changed task {STRONG}{id}{STRONG:#}"))
}

/// Writes a text to a new file, opens it in the person's editor, and returns the edited text.
fn edit_text(path: &Path, text: &str) -> Result<String, CliError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| failed(format!("write {}", path.display()), source))?;
    let editor = env::read(env::VISUAL).or_else(|| env::read(env::EDITOR));
    let editor = editor.unwrap_or_else(|| "vi".into());
    let shown = editor.to_string_lossy().into_owned();
    // The variable may contain arguments, as in `code --wait`, so a shell splits it.
    let mut run = Command::new("sh");
    run.arg("-c").arg(format!("{shown} \"$@\"")).arg(&shown).arg(path);
    let status = run.status().map_err(|source| failed(format!("start {shown}"), source))?;
    if !status.success() {
        let error = CliError::failed(CliTrouble::EditorFailed { editor: shown });
        return Err(error.hint("set VISUAL or EDITOR, or use options: `brigade task edit --help`"));
    }
    fs::read_to_string(path).map_err(|source| failed(format!("read {}", path.display()), source))
}

/// Splits the edited text into the subject and the description.
fn parse(text: &str) -> (String, String) {
    let (text, _) = text.split_once(SCISSORS).unwrap_or((text, ""));
    let text = text.trim();
    let (subject, description) = text.split_once('\n').unwrap_or((text, ""));
    (subject.trim().to_owned(), description.trim().to_owned())
}

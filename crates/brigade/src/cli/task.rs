//! `brigade task …`

use std::path::PathBuf;

use brigade_core::task_details::{Priority, parse_label};
use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Status;
use clap::{Args, Subcommand, ValueEnum};

/// The exit codes of commands that take several tasks.
const SEVERAL: &str = "\
Exit codes: 0 if all tasks were changed, 1 if none was, 3 if only some were";

#[derive(Args, Debug)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    pub(crate) command: Option<TaskCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Add a task to the board, or the tasks of a Markdown checklist
    ///
    /// Members see the task when they read the board. Only the owner is notified.
    ///
    /// With --from, each `- [ ] subject` of the file becomes a task. A nested item must be done before
    /// the item above it, and an item of a numbered list after the item before it. Checked items are
    /// skipped. The text below an item is its description. `@NAME`, `#LABEL` and `!high` at the end of
    /// the line set owner, label and priority. If the file has a mistake, no task is added. An item
    /// that is already on the board as an unfinished task is not added again.
    #[command(
        alias = "create",
        after_help = "\
Examples:
  brigade task add \"Write the docs\" --owner bob --label docs
  brigade task add \"Print them\" --blocked-by 1 --blocked-by 2
  brigade task add --from plan.md"
    )]
    Add(Box<TaskAddArgs>),

    /// List the tasks
    #[command(
        alias = "ls",
        after_help = "\
Examples:
  brigade task list --owner bob --status in_progress
  brigade task list --label docs --status open"
    )]
    List(TaskListArgs),

    /// Show the whole story of a task
    ///
    /// Shows the description, the changes with their times, the mail that mentions the task (`#3` or
    /// `task 3`), the turns of its owner while it was in progress, and the changes in the owner's worktree.
    /// The turns count from the claim to the completion, whatever they were about. With --json, prints the
    /// task's file with the added key `story`.
    Show {
        /// Task id
        id: TaskId,
        /// Show only the task itself, without reading the history of the team
        #[arg(long)]
        brief: bool,
    },

    /// Change a task, in your editor or with options
    ///
    /// Without options, opens the subject and the description in $VISUAL or $EDITOR. With options, several
    /// tasks can be changed at once. A new owner is notified by a message, as in Claude Code.
    #[command(
        alias = "update",
        after_help = "\
Examples:
  brigade task edit 3
  brigade task edit 3 4 --priority high --label docs
  brigade task edit 5 --blocked-by 3 --unblock 4"
    )]
    Edit(Box<TaskEditArgs>),

    /// Claim tasks: become the owner and set them to in progress
    ///
    /// If several members claim a task at the same time, exactly one succeeds. Fails if the task is
    /// blocked, has an owner, or is completed.
    #[command(after_help = SEVERAL)]
    Claim(TaskIdArgs),

    /// Assign tasks to a member, who is notified
    #[command(after_help = format!("Example:\n  brigade task assign 3 4 bob\n\n{SEVERAL}"))]
    Assign {
        /// Task ids
        #[arg(required = true, num_args = 1.., value_name = "ID")]
        ids: Vec<TaskId>,
        /// The new owner
        name: MemberName,
    },

    /// Remove the owner of tasks, which become pending
    ///
    /// The owner gets a message. `task release NAME` does this for all unfinished tasks of a member.
    #[command(after_help = SEVERAL)]
    Unassign(TaskIdArgs),

    /// Mark tasks as completed (owner or lead only)
    #[command(after_help = SEVERAL)]
    Done(TaskIdArgs),

    /// Make completed or cancelled tasks pending again
    ///
    /// A task keeps its owner, who is notified.
    #[command(after_help = SEVERAL)]
    Reopen(TaskIdArgs),

    /// Cancel tasks that will not be done
    ///
    /// Claude Code's board knows no such status. The task stays on the board as completed, its metadata
    /// says that it was cancelled, and tasks that wait for it can start. The owner gets a message. Use
    /// `task delete` to remove a task, and `task reopen` to undo this.
    #[command(after_help = SEVERAL)]
    Cancel {
        #[command(flatten)]
        tasks: TaskIdArgs,
        /// Why; shown to the owner and in `task show`
        #[arg(long, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
        reason: String,
    },

    /// Delete tasks and unblock the tasks that wait for them
    #[command(alias = "rm", after_help = SEVERAL)]
    Delete(TaskIdArgs),

    /// Return a member's unfinished tasks to pending, without an owner
    Release {
        /// The member that owns the tasks
        name: MemberName,
    },

    /// Print all tasks as JSON or CSV
    #[command(after_help = "\
Examples:
  brigade task export > tasks.json
  brigade task export --format csv > tasks.csv")]
    Export {
        /// Output format
        #[arg(long, default_value = "json")]
        format: TaskFileFormat,
    },

    /// Add the tasks of a JSON or CSV file to the board
    ///
    /// Reads what `task export` and `task list --json` print, and CSV with a line of column names, of which
    /// only `subject` is required. Tasks get new ids, and dependencies follow them. Tasks in progress
    /// become pending. If the file has a mistake, no task is added. A task that was imported before is not
    /// added again: its metadata says where it comes from.
    #[command(after_help = "\
Examples:
  brigade task import tasks.csv
  brigade --team old task export | brigade --team new task import - --no-owners")]
    Import {
        /// The file; `-` reads standard input
        file: PathBuf,
        /// Import the tasks without their owners
        #[arg(long)]
        no_owners: bool,
    },

    /// Draw the dependencies between tasks
    #[command(after_help = "\
Examples:
  brigade task graph
  brigade task graph --format svg > board.svg")]
    Graph {
        /// Output format
        #[arg(long, default_value = "text")]
        format: GraphFormat,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TaskIdArgs {
    /// Task ids
    #[arg(required = true, num_args = 1.., value_name = "ID")]
    pub(crate) ids: Vec<TaskId>,
}

#[derive(Args, Debug)]
pub(crate) struct TaskAddArgs {
    /// One-line subject
    #[arg(required_unless_present = "from")]
    pub(crate) subject: Option<String>,
    /// Add the tasks of this Markdown checklist; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "subject", "description", "blocked_by", "owner", "label", "priority", "active_form",
    ])]
    pub(crate) from: Option<PathBuf>,
    /// Full description
    #[arg(long, short, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub(crate) description: String,
    /// Task that must be completed first; can be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<TaskId>,
    /// Assign the task to this member, who is notified
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<MemberName>,
    /// Label; can be repeated
    #[arg(long, value_name = "WORD", value_delimiter = ',', value_parser = parse_label)]
    pub(crate) label: Vec<String>,
    /// Priority
    #[arg(long)]
    pub(crate) priority: Option<PriorityWord>,
    /// Text to show while the task is in progress: "Writing the docs"
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) active_form: Option<String>,
}

#[derive(Args, Debug, Default)]
pub(crate) struct TaskListArgs {
    /// Show only tasks that are ready to be claimed
    #[arg(long)]
    pub(crate) ready: bool,
    /// Show only tasks of this member
    #[arg(long, value_name = "NAME", conflicts_with = "no_owner")]
    pub(crate) owner: Option<MemberName>,
    /// Show only tasks without an owner
    #[arg(long)]
    pub(crate) no_owner: bool,
    /// Show only tasks in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) status: Option<StateWord>,
    /// Show only tasks with this label; can be repeated
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub(crate) label: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct TaskEditArgs {
    #[command(flatten)]
    pub(crate) tasks: TaskIdArgs,
    /// New subject
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) subject: Option<String>,
    /// New description
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Text to show while the task is in progress
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) active_form: Option<String>,
    /// New status
    #[arg(long)]
    pub(crate) status: Option<StatusWord>,
    /// Assign the task to this member
    #[arg(long, value_name = "NAME", conflicts_with = "no_owner")]
    pub(crate) owner: Option<MemberName>,
    /// Remove the task's owner
    #[arg(long)]
    pub(crate) no_owner: bool,
    /// Add a label; can be repeated
    #[arg(long, value_name = "WORD", value_delimiter = ',', value_parser = parse_label)]
    pub(crate) label: Vec<String>,
    /// Remove a label; can be repeated
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    pub(crate) remove_label: Vec<String>,
    /// New priority
    #[arg(long)]
    pub(crate) priority: Option<PriorityWord>,
    /// Task that must wait for this one; can be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocks: Vec<TaskId>,
    /// Task that must be completed first; can be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<TaskId>,
    /// Task for which this one no longer waits; can be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) unblock: Vec<TaskId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorityWord {
    /// Before the others
    High,
    /// The default
    Normal,
    /// After the others
    Low,
}

impl From<PriorityWord> for Priority {
    fn from(word: PriorityWord) -> Self {
        match word {
            PriorityWord::High => Self::High,
            PriorityWord::Normal => Self::Normal,
            PriorityWord::Low => Self::Low,
        }
    }
}

/// A state by which tasks are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StateWord {
    /// Not completed and not cancelled
    Open,
    /// Not started
    Pending,
    /// Can be claimed
    Ready,
    /// Has an owner, not started
    Assigned,
    /// Waits for other tasks
    Blocked,
    /// The owner is working on it
    InProgress,
    /// Completed and not cancelled
    #[value(alias = "done")]
    Completed,
    /// Will not be done
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskFileFormat {
    /// One JSON document with the task files
    Json,
    /// A table with a line of column names
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StatusWord {
    /// Not started
    Pending,
    /// The owner is working on it
    InProgress,
    /// Done
    Completed,
}

impl From<StatusWord> for Status {
    fn from(word: StatusWord) -> Self {
        match word {
            StatusWord::Pending => Self::Pending,
            StatusWord::InProgress => Self::InProgress,
            StatusWord::Completed => Self::Completed,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Tree for the terminal
    Text,
    /// Graphviz
    Dot,
    /// Mermaid, for Markdown
    Mermaid,
    /// Picture for a browser
    Svg,
}

//! `brigade task …`

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Status;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Add a task to the board
    ///
    /// Members see the task when they read the board. Only the owner is notified.
    #[command(after_help = "\
Examples:
  brigade task add \"Write the docs\" --owner bob
  brigade task add \"Print them\" --blocked-by 1 --blocked-by 2")]
    Add(TaskAddArgs),

    /// List the tasks
    List(TaskListArgs),

    /// Show a task in full
    Show {
        /// Task id
        id: TaskId,
    },

    /// Change a task
    ///
    /// A new owner is notified by a message, as in Claude Code.
    Update(Box<TaskUpdateArgs>),

    /// Claim a task: become its owner and set it to in progress
    ///
    /// If several members claim a task at the same time, exactly one succeeds. Fails if the task is
    /// blocked, has an owner, or is completed.
    Claim {
        /// Task id
        id: TaskId,
    },

    /// Mark a task as completed (owner or lead only)
    Done {
        /// Task id
        id: TaskId,
    },

    /// Delete a task and unblock the tasks that wait for it
    Delete {
        /// Task id
        id: TaskId,
    },

    /// Return a member's unfinished tasks to pending, without an owner
    Release {
        /// The member that owns the tasks
        name: MemberName,
    },

    /// Draw the dependencies between tasks
    #[command(after_help = "\
Examples:
  brigade task graph
  brigade task graph --format dot | dot -Tsvg > board.svg")]
    Graph {
        /// Output format
        #[arg(long, default_value = "text")]
        format: GraphFormat,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TaskAddArgs {
    /// One-line subject
    #[arg(allow_hyphen_values = true)]
    pub(crate) subject: String,
    /// Full description
    #[arg(long, short, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub(crate) description: String,
    /// Task that must be completed first; can be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<TaskId>,
    /// Assign the task to this member, who is notified
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<MemberName>,
    /// Text to show while the task is in progress: "Writing the docs"
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) active_form: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct TaskListArgs {
    /// Show only tasks that are ready to be claimed
    #[arg(long)]
    pub(crate) ready: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TaskUpdateArgs {
    /// Task id
    pub(crate) id: TaskId,
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
    /// Task that must wait for this one; can be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocks: Vec<TaskId>,
    /// Task that must be completed first; can be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<TaskId>,
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
}

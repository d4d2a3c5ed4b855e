//! `brigade task …`

use brigade_wire::name::{MemberName, TaskId};
use brigade_wire::task::Status;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Add a task to the board
    ///
    /// Members see it when they look at the board. Only the owner is told of it.
    #[command(after_help = "\
Examples:
  brigade task add \"Write the docs\" --owner bob
  brigade task add \"Print them\" --blocked-by 1 --blocked-by 2")]
    Add(TaskAdd),

    /// List the tasks
    List(TaskList),

    /// Show a task in full
    Show {
        /// Which task
        id: TaskId,
    },

    /// Change a task
    ///
    /// A new owner is told by a message, as Claude Code does it.
    Update(Box<TaskUpdate>),

    /// Take a task: it is then yours and in progress, or somebody was first
    ///
    /// Of any number who claim a task at once exactly one gets it. A task that waits for another,
    /// belongs to somebody or is done is refused.
    Claim {
        /// Which task
        id: TaskId,
    },

    /// Mark a task completed; only its owner and the lead may
    Done {
        /// Which task
        id: TaskId,
    },

    /// Delete a task, and what others wait for in it
    Delete {
        /// Which task
        id: TaskId,
    },

    /// Give back the open tasks of a member that is gone: pending, with no owner
    Release {
        /// Whose tasks
        name: MemberName,
    },

    /// Draw which task waits for which
    #[command(after_help = "\
Examples:
  brigade task graph
  brigade task graph --format dot | dot -Tsvg > board.svg")]
    Graph {
        /// Choose what to draw it in
        #[arg(long, default_value = "text")]
        format: GraphFormat,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TaskAdd {
    /// What is to be done, in a line
    #[arg(allow_hyphen_values = true)]
    pub(crate) subject: String,
    /// Say in full what is to be done
    #[arg(long, short, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub(crate) description: String,
    /// Let it wait for this task; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<TaskId>,
    /// Give it to this member, who is told
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<MemberName>,
    /// Say what to show while it is being done: "Writing the docs"
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) active_form: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct TaskList {
    /// Show only those that could be claimed now
    #[arg(long)]
    pub(crate) ready: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TaskUpdate {
    /// Which task
    pub(crate) id: TaskId,
    /// Give it this subject
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) subject: Option<String>,
    /// Give it this description
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Say what to show while it is being done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) active_form: Option<String>,
    /// Set how far it is
    #[arg(long)]
    pub(crate) status: Option<StatusWord>,
    /// Give it to this member
    #[arg(long, value_name = "NAME", conflicts_with = "no_owner")]
    pub(crate) owner: Option<MemberName>,
    /// Take it from its owner
    #[arg(long)]
    pub(crate) no_owner: bool,
    /// Let this task wait for it; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocks: Vec<TaskId>,
    /// Let it wait for this task; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<TaskId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StatusWord {
    /// Nobody has begun
    Pending,
    /// Its owner works on it
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
    /// A tree for the terminal
    Text,
    /// For Graphviz
    Dot,
    /// For Markdown that draws Mermaid
    Mermaid,
}

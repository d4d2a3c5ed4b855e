//! The script of the demo: its members, tasks and steps.

/// The members.
pub(super) const MEMBERS: [&str; 3] = ["ada", "ben", "cleo"];

/// A task with the steps of its owner.
pub(super) struct ScriptedTask {
    pub(super) subject: &'static str,
    pub(super) description: &'static str,
    pub(super) owner: &'static str,
    /// The positions of the tasks that this one waits for.
    pub(super) after: &'static [usize],
    /// Each step with the seconds that precede it, at normal speed.
    pub(super) steps: &'static [(f64, Step)],
    /// The text that the owner says at the end.
    pub(super) closing: &'static str,
}

/// A step of a scripted agent.
pub(super) enum Step {
    /// Write text.
    Say(&'static str),
    /// Use a tool: its name and one line about the call.
    Tool(&'static str, &'static str),
    /// Change a file: the path, the lines added and the lines removed.
    Change(&'static str, usize, usize),
    /// Send a message to a member.
    Mail(&'static str, &'static str),
    /// Ask for permission to run a command, and run it if the viewer allows it.
    Ask(&'static str, &'static str),
}

/// The tasks, in the order of their numbers.
pub(super) const TASKS: &[ScriptedTask] = &[
    ScriptedTask {
        subject: "Find out why quoted fields break the CSV parser",
        description: "A field such as \"a, b\" is split at the comma. (Scripted: no file is read.)",
        owner: "ada",
        after: &[],
        steps: &[
            (2.0, Step::Say("I read the parser first.")),
            (3.0, Step::Tool("read", "src/parser.rs")),
            (3.0, Step::Tool("shell", "cargo test quoted")),
            (3.0, Step::Say("The reader splits a line at each comma before it looks at quotes.")),
            (2.0, Step::Mail("ben", "Found it: src/parser.rs splits before it unquotes (task 1).")),
        ],
        closing: "The cause is in `split_line`: quotes are handled too late.",
    },
    ScriptedTask {
        subject: "Fix the parser",
        description: "Read a line character by character.",
        owner: "ada",
        after: &[0],
        steps: &[
            (3.0, Step::Say("I replace the split by a small state machine.")),
            (4.0, Step::Change("src/parser.rs", 38, 12)),
            (4.0, Step::Tool("shell", "cargo test")),
            (3.0, Step::Mail("ben", "The fix for task 2 is in. Does your test pass?")),
        ],
        closing: "Quoted fields work; all tests pass.",
    },
    ScriptedTask {
        subject: "Write tests for quoted fields",
        description: "Commas, quotes and line breaks inside quotes.",
        owner: "ben",
        after: &[0],
        steps: &[
            (4.0, Step::Change("tests/quoted.rs", 61, 0)),
            (4.0, Step::Ask("git fetch origin", "Compare with the tests on the main branch")),
            (4.0, Step::Tool("shell", "cargo test --test quoted")),
            (2.0, Step::Mail("cleo", "Eleven new tests for task 3, one of them failed before.")),
        ],
        closing: "Eleven tests for quoted fields.",
    },
    ScriptedTask {
        subject: "Review the fix and its tests",
        description: "Read the whole change; run everything once.",
        owner: "cleo",
        after: &[1, 2],
        steps: &[
            (3.0, Step::Tool("shell", "git diff main --stat")),
            (4.0, Step::Say("One case is missing: a quote at the end of the file.")),
            (3.0, Step::Mail("ada", "Task 4: please handle an unclosed quote at the end.")),
            (4.0, Step::Tool("shell", "cargo clippy")),
        ],
        closing: "Good to publish.",
    },
    ScriptedTask {
        subject: "Publish version 0.4.1",
        description: "Ask the lead before publishing. (Scripted: nothing is published.)",
        owner: "ada",
        after: &[3],
        steps: &[
            (3.0, Step::Change("src/parser.rs", 4, 1)),
            (3.0, Step::Tool("shell", "cargo publish --dry-run")),
            (2.0, Step::Ask("cargo publish", "Publish version 0.4.1 of the parser")),
            (2.0, Step::Mail("team-lead", "Done. This was a demo: the agents were scripted.")),
        ],
        closing: "Version 0.4.1 is published (in this demo only).",
    },
];

//! Templates of `brigade.toml` for common kinds of work.

use std::fmt::Write as _;

/// A team for one kind of work.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// The name, as in `brigade new --template NAME`.
    pub name: &'static str,
    /// One line that describes the team.
    pub about: &'static str,
    members: &'static [TemplateMember],
    tasks: &'static [TemplateTask],
}

#[derive(Debug, PartialEq, Eq)]
struct TemplateMember {
    name: &'static str,
    prompt: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
struct TemplateTask {
    name: &'static str,
    subject: &'static str,
    description: &'static str,
    owner: &'static str,
    after: &'static [&'static str],
}

/// All templates.
pub const TEMPLATES: &[Template] = &[REVIEW, FEATURE, BUGFIX, RESEARCH, PORT];

const REVIEW: Template = Template {
    name: "review",
    about: "Two agents review the current branch, and one summarizes their findings",
    members: &[
        TemplateMember {
            name: "correctness",
            prompt: "You review code for mistakes: wrong results, missing error handling, races, security \
                     problems. Read the code around a change before you judge it. Run the tests if you can. \
                     Report each finding with file, line, the reason, and how sure you are. Do not change files.",
        },
        TemplateMember {
            name: "design",
            prompt: "You review code for design: names, structure, duplicated code, missing tests, wrong \
                     documentation. Propose the smallest change that helps. Report each finding with file and \
                     line. Do not change files.",
        },
    ],
    tasks: &[
        TemplateTask {
            name: "mistakes",
            subject: "Review the change for mistakes",
            description: "The change is the difference between this branch and the main branch. If there is \
                          none, it is the last commit. Send your findings to design, most serious first.",
            owner: "correctness",
            after: &[],
        },
        TemplateTask {
            name: "structure",
            subject: "Review the change for design and tests",
            description: "The change is the difference between this branch and the main branch. If there is \
                          none, it is the last commit.",
            owner: "design",
            after: &[],
        },
        TemplateTask {
            name: "summary",
            subject: "Summarize the review",
            description: "Merge the findings of both reviews, drop those that you can refute, and send the \
                          rest to team-lead: what must change before the merge, and what may change later.",
            owner: "design",
            after: &["mistakes", "structure"],
        },
    ],
};

const FEATURE: Template = Template {
    name: "feature",
    about: "Plan a feature, build it with tests, and review it",
    members: &[
        TemplateMember {
            name: "builder",
            prompt: "You build features. Follow the conventions of this repository. Keep changes small, add \
                     tests, run them, and update the documentation that the change makes wrong. If a task does \
                     not say what to build, ask team-lead before you start.",
        },
        TemplateMember {
            name: "reviewer",
            prompt: "You review what builder did. Read the whole difference, run the tests, and look for \
                     missing cases. Send problems to builder, and your conclusion to team-lead. Do not change \
                     files.",
        },
    ],
    tasks: &[
        TemplateTask {
            name: "plan",
            subject: "Plan the feature",
            description: "Describe the feature here, or send it to builder. Find the code that the feature \
                          concerns, and send team-lead a plan of at most ten lines: which files change, which \
                          tests show that it works, what is left out.",
            owner: "builder",
            after: &[],
        },
        TemplateTask {
            name: "build",
            subject: "Build the feature with tests",
            description: "Carry out the plan. A test must fail without the change and pass with it.",
            owner: "builder",
            after: &["plan"],
        },
        TemplateTask {
            name: "check",
            subject: "Review the feature",
            description: "Review the change of builder. Repeat until you have no serious finding.",
            owner: "reviewer",
            after: &["build"],
        },
    ],
};

const BUGFIX: Template = Template {
    name: "bugfix",
    about: "Reproduce a bug with a test, fix it, and verify the fix",
    members: &[
        TemplateMember {
            name: "fixer",
            prompt: "You fix bugs. Reproduce the bug with a failing test before you change anything, find the \
                     cause and not only the symptom, and make the smallest change that removes it. If a task \
                     does not say which bug, ask team-lead before you start.",
        },
        TemplateMember {
            name: "verifier",
            prompt: "You verify fixes. Check that the new test fails without the fix and passes with it, look \
                     for the same mistake elsewhere, and run all tests. Send what you find to fixer and your \
                     conclusion to team-lead. Leave the files as you found them.",
        },
    ],
    tasks: &[
        TemplateTask {
            name: "reproduce",
            subject: "Reproduce the bug with a failing test",
            description: "Describe the bug here, or send it to fixer: what happens, what should happen, and \
                          how to see it.",
            owner: "fixer",
            after: &[],
        },
        TemplateTask {
            name: "fix",
            subject: "Fix the bug",
            description: "Send team-lead the cause in one sentence, then fix it.",
            owner: "fixer",
            after: &["reproduce"],
        },
        TemplateTask {
            name: "verify",
            subject: "Verify the fix",
            description: "Verify the fix, and look for the same mistake in other places.",
            owner: "verifier",
            after: &["fix"],
        },
    ],
};

const RESEARCH: Template = Template {
    name: "research",
    about: "Two agents answer a question independently, then agree on one answer",
    members: &[
        TemplateMember {
            name: "first",
            prompt: "You answer questions about this repository from its code and its history. Name the file \
                     and line for each claim, and say what you did not check. Do not change files other than \
                     the one that a task names. If a task does not say what the question is, ask team-lead.",
        },
        TemplateMember {
            name: "second",
            prompt: "You answer questions about this repository by trying: small experiments, tests, \
                     measurements. Give the command and the result for each claim, and say what you did not \
                     check. Keep experiments outside the repository. If a task does not say what the question \
                     is, ask team-lead.",
        },
    ],
    tasks: &[
        TemplateTask {
            name: "reading",
            subject: "Answer the question from the code",
            description: "Write the question here, or send it to first. Do not talk to second before you \
                          have an answer. Send the answer to second.",
            owner: "first",
            after: &[],
        },
        TemplateTask {
            name: "trying",
            subject: "Answer the question by experiments",
            description: "Write the question here, or send it to second. Do not talk to first before you \
                          have an answer. Send the answer to first.",
            owner: "second",
            after: &[],
        },
        TemplateTask {
            name: "answer",
            subject: "Write one answer",
            description: "Compare both answers, settle where they differ, and write the result to \
                          RESEARCH.md: the answer first, then the evidence, then what is uncertain.",
            owner: "first",
            after: &["reading", "trying"],
        },
    ],
};

const PORT: Template = Template {
    name: "port",
    about: "Port code to another language, library or version, step by step",
    members: &[
        TemplateMember {
            name: "porter",
            prompt: "You port code. Work in small steps after each of which everything builds and the tests \
                     pass. Keep the behaviour, including its errors, and list every difference that you cannot \
                     avoid. If a task does not say what to port and to what, ask team-lead before you start.",
        },
        TemplateMember {
            name: "checker",
            prompt: "You compare a port with the original. Run both where you can, with usual, empty and \
                     broken input, and report each difference to porter with the command that shows it. Do not \
                     change the code.",
        },
    ],
    tasks: &[
        TemplateTask {
            name: "inventory",
            subject: "List what has to be ported",
            description: "Say here what is ported to what, or send it to porter. List the parts in the order \
                          in which they can be ported, with their tests, and send the list to team-lead.",
            owner: "porter",
            after: &[],
        },
        TemplateTask {
            name: "cases",
            subject: "Collect cases that show the present behaviour",
            description: "Write down inputs and results of the original, also for errors, so that the port \
                          can be compared with them.",
            owner: "checker",
            after: &[],
        },
        TemplateTask {
            name: "port",
            subject: "Port the parts one after the other",
            description: "Port the parts in the order of the list, and tell checker after each part.",
            owner: "porter",
            after: &["inventory"],
        },
        TemplateTask {
            name: "compare",
            subject: "Compare the port with the original",
            description: "Run the cases against the port. Send team-lead the remaining differences.",
            owner: "checker",
            after: &["cases", "port"],
        },
    ],
};

impl Template {
    /// Returns the tables of the members and the tasks. The members use the agents in turn.
    pub(super) fn text(&self, agents: &[&str]) -> String {
        let mut text = String::new();
        let mut agents = agents.iter().copied().cycle();
        for member in self.members {
            let agent = agents.next().unwrap_or("claude");
            let TemplateMember { name, prompt } = member;
            let prompt = wrapped(prompt);
            let _infallible = write!(
                text,
                "\n[members.{name}]\nagent = \"{agent}\"\nprompt = \"\"\"\n{prompt}\"\"\"\n"
            );
        }
        text.push_str("\n# The board at the start. `brigade task add` adds more tasks later.\n");
        for task in self.tasks {
            let TemplateTask { name, subject, description, owner, after } = task;
            let after: Vec<String> = after.iter().map(|task| format!("\"{task}\"")).collect();
            let after = match after.is_empty() {
                true => String::new(),
                false => format!("after = [{}]\n", after.join(", ")),
            };
            let description = wrapped(description);
            let _infallible = write!(
                text,
                "[tasks.{name}]\nsubject = \"{subject}\"\ndescription = \"\"\"\n{description}\"\"\"\n\
                 owner = \"{owner}\"\n{after}\n"
            );
        }
        text.trim_end().to_owned() + "\n"
    }
}

/// Breaks a text into lines that fit an editor. A backslash joins a line with the next one.
fn wrapped(text: &str) -> String {
    /// The width of a line.
    const WIDTH: usize = 100;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.len() + word.len() < WIDTH) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join(" \\\n")
}

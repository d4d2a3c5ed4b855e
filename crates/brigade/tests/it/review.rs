//! Runs the library example with a scripted agent.

use std::path::{Path, PathBuf};

use crate::env::{CliEnv, FAKE_AGENT};

/// The example program that cargo built.
fn example() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_brigade")).with_file_name("examples/review");
    assert!(built.exists(), "no example at {}", built.display());
    built
}

#[test]
fn two_agents_review_a_draft() {
    let cli = CliEnv::new();
    let bin = Path::new(env!("CARGO_BIN_EXE_brigade")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let agent = format!("acp:{FAKE_AGENT}");
    let mut example = cli.command_of(&example(), &[&agent, &agent, "REPLY with a draft."]);
    let example =
        example.env("PATH", path).env_remove("XDG_STATE_HOME").env_remove("CLAUDE_CONFIG_DIR");
    let output = example.output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let expected =
        "writer: REPLY of writer\nreviewer: REPLY of reviewer\nwriter: REPLY of writer\n";
    assert_eq!((&*stdout, &*stderr, output.status.code()), (expected, "", Some(0)));
    let heard = std::fs::read_to_string(cli.path("work/heard")).unwrap();
    assert!(heard.contains("What should be better? REPLY of writer"), "{heard}");
    assert!(
        !cli.path("home/.claude/teams").read_dir().unwrap().any(|_| true),
        "the team was not deleted"
    );
}

//! Commands that only read, on a read-only file system.

use std::fs;
use std::process::Command;

use crate::doctor::healthy_team;
use crate::env::{CliEnv, Outcome};

/// Runs a command while the environment's files are mounted read-only.
fn read_only(cli: &CliEnv, args: &[&str]) -> Outcome {
    let brigade = cli.command(args);
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && cd \"$0/work\" && exec \"$@\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-c", script]).arg(&cli.root);
    unshare.arg(brigade.get_program()).args(brigade.get_args()).env_clear();
    for (name, value) in brigade.get_envs() {
        unshare.env(name, value.unwrap_or_default());
    }
    cli.outcome(&unshare.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap())
}

/// Finding 36: whoever may read the files can read the team.
#[test]
fn finding_36_reading_works_on_a_read_only_file_system() {
    brigade_testkit::needs!(MountNamespace);
    let cli = healthy_team();
    let exported = format!("{}-exported", cli.root.display());
    // A message that another program wrote.
    cli.write_inbox("alice", "bob", "from outside");
    for args in [
        &["team", "list"][..],
        &["team", "show"],
        &["task", "list"],
        &["task", "show", "1"],
        &["inbox", "bob"],
        &["inbox", "alice"],
        &["log"],
        &["log", "--json"],
        &["approvals"],
        &["status"],
        &["team", "export", "demo", &exported],
        &[],
    ] {
        let there = read_only(&cli, args);
        assert!(matches!(there.code, Some(0 | 4)), "{args:?}: {there}");
        if args.contains(&"export") {
            fs::remove_file(&exported).unwrap();
        }
        let here = cli.run(args);
        // The log shows the message from outside once it is recorded.
        assert!(args.contains(&"log") || there.stdout == here.stdout, "{args:?}: {there}{here}");
    }
    fs::remove_file(&exported).unwrap();
    assert!(read_only(&cli, &["inbox", "alice"]).stdout.contains("from outside"));
    assert!(read_only(&cli, &["log"]).stdout.contains("task 2 added"));
    // A change fails with the reason, and changes nothing.
    for args in [&["task", "add", "three"][..], &["send", "bob", "hello"], &["team", "join", "zoe"]]
    {
        let refused = read_only(&cli, args);
        assert_eq!(refused.code, Some(1), "{args:?}: {refused}");
        assert!(refused.stderr.contains("Read-only file system"), "{args:?}: {refused}");
    }
    assert_eq!(cli.json(&["task", "list"]).as_array().unwrap().len(), 2);
}

/// Finding 36: a team that brigade has never seen has no state folder yet, and none can be created.
#[test]
fn finding_36_a_native_team_is_read_without_a_state_folder() {
    brigade_testkit::needs!(MountNamespace);
    let cli = CliEnv::with_native_team();
    assert!(!cli.path("state").exists());
    for args in [
        &["team", "list"][..],
        &["team", "show"],
        &["--as", "bob", "inbox"],
        &["task", "list"],
        &["log"],
        &["status"],
    ] {
        let there = read_only(&cli, args);
        assert!(matches!(there.code, Some(0 | 4)), "{args:?}: {there}");
    }
    assert!(!cli.path("state").exists());
    assert!(fs::read_dir(cli.path("claude/teams/theirs")).unwrap().count() == 1);
}

#[test]
fn finding_36_the_doctor_reports_a_read_only_file_system() {
    brigade_testkit::needs!(MountNamespace);
    let cli = healthy_team();
    let report = read_only(&cli, &["doctor"]);
    assert_eq!(report.code, Some(1), "{report}");
    for folder in ["claude/teams", "claude/tasks", "state/brigade"] {
        let place = format!("<root>/{folder}\n");
        assert!(report.stdout.contains(&place), "{report}");
    }
    assert!(report.stdout.contains("read-only  its file system is mounted read-only"), "{report}");
}

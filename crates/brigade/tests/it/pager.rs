//! Long output on a terminal goes through a pager.

use std::os::unix::fs::PermissionsExt as _;

use crate::env::CliEnv;
use crate::init::run_on_terminal_of;

/// A team with 40 tasks, and a pager that keeps what it gets.
fn with_tasks() -> CliEnv {
    let mut cli = CliEnv::with_team();
    let list: String = (1..=40).map(|number| format!("- [ ] task {number}\n")).collect();
    cli.write("work/tasks.md", &list);
    cli.run_ok(&["task", "add", "--from", "tasks.md"]);
    cli.variables.push(("PATH", "/usr/bin:/bin".to_owned()));
    cli.variables.push(("BRIGADE_PAGER", "cat > paged".to_owned()));
    cli
}

/// Runs a command on a terminal with 80 columns and 24 lines. Returns what the terminal and the pager got.
fn run(cli: &CliEnv, args: &[&str]) -> (String, Option<String>) {
    let (screen, code) = run_on_terminal_of(cli.command(args), "", 80, 24);
    assert_eq!(code, Some(0), "{screen}");
    let paged = cli.path("work/paged");
    let text = std::fs::read_to_string(&paged).ok();
    let _missing = std::fs::remove_file(paged);
    (screen, text)
}

#[test]
fn output_that_does_not_fit_the_terminal_goes_to_the_pager_with_colours() {
    let cli = with_tasks();
    for args in [&["task", "list"][..], &["task"], &["logs"], &["task", "graph"], &["--help"]] {
        let (screen, paged) = run(&cli, args);
        assert_eq!(screen, "", "{args:?}");
        let paged = paged.unwrap();
        assert!(paged.lines().count() > 24 && paged.contains("\u{1b}["), "{args:?}: {paged}");
    }
    let (screen, paged) = run(&cli, &["task", "list", "--json"]);
    assert!(paged.is_none() && screen.contains("task 40"), "{screen}");
}

#[test]
fn output_that_fits_the_terminal_needs_no_pager() {
    let cli = with_tasks();
    for args in [&["task", "show", "1"][..], &["logs", "-n", "3"], &["completions", "bash"]] {
        let (screen, paged) = run(&cli, args);
        assert!(paged.is_none() && !screen.is_empty(), "{args:?}");
    }
}

#[test]
fn the_user_can_do_without_a_pager() {
    let mut cli = with_tasks();
    for args in [&["task", "list", "--no-pager"][..], &["--no-pager", "logs"], &["logs", "--json"]]
    {
        let (screen, paged) = run(&cli, args);
        assert!(paged.is_none() && screen.contains("40"), "{args:?}");
    }
    // No terminal.
    assert!(cli.run_ok(&["task", "list"]).contains("40"));
    assert!(!cli.path("work/paged").exists());
    for pager in ["", "cat", "no-such-pager -x"] {
        cli.variables.push(("BRIGADE_PAGER", pager.to_owned()));
        let (screen, _) = run(&cli, &["task", "list"]);
        assert!(screen.contains("task 40"), "{pager:?}: {screen}");
    }
}

#[test]
fn leaving_the_pager_early_is_no_error() {
    let mut cli = with_tasks();
    cli.variables.push(("BRIGADE_PAGER", "head -n 1".to_owned()));
    for args in [&["task", "list"][..], &["logs"], &["help", "task", "add"]] {
        let (screen, _) = run(&cli, args);
        assert_eq!(screen.lines().count(), 1, "{args:?}: {screen}");
    }
}

#[test]
fn pager_without_colours() {
    let mut cli = with_tasks();
    cli.variables.push(("NO_COLOR", "1".to_owned()));
    let (_, paged) = run(&cli, &["task", "list"]);
    assert!(!paged.unwrap().contains('\u{1b}'));
}

/// On a terminal, the source of the manual page is of no use.
#[test]
fn the_manual_page_is_formatted_on_a_terminal() {
    let mut cli = CliEnv::new();
    cli.variables.push(("PATH", format!("{}:/usr/bin:/bin", cli.path("bin").display())));
    cli.write("bin/man", "#!/bin/sh\necho \"$1 $2 of $MANWIDTH columns\"; head -1\n");
    let program = cli.path("bin/man");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (screen, paged) = run(&cli, &["man"]);
    assert!(screen.starts_with("-l - of 80 columns\r\n.") && paged.is_none(), "{screen}");
    assert!(cli.run_ok(&["man"]).contains(".TH brigade 1"));
    std::fs::write(&program, "#!/bin/sh\nexit 3\n").unwrap();
    let (screen, code) = run_on_terminal_of(cli.command(&["man"]), "", 80, 24);
    assert_eq!(code, Some(1));
    assert!(screen.contains("`man -l -` failed (exit status: 3)"), "{screen}");
    assert!(screen.contains("`brigade man > brigade.1` writes it"), "{screen}");
}

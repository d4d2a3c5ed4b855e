//! `brigade guard`: a member's process and its agent end together.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::env::CliEnv;
use crate::process::{assert_all_gone, is_alive, terminate, wait_until};

/// A shell script that starts two processes, one of them in a new session, and prints their ids and its own id.
const PROCESS_TREE: &str =
    "setsid sleep 300 & echo $!; sleep 300 & echo $!; trap '' TERM; echo $$; wait";

/// Starts a process tree under a guard whose parent is a shell that the test can kill.
fn start_process_tree(cli: &CliEnv) -> (std::process::Child, Vec<u64>) {
    let guard = env!("CARGO_BIN_EXE_brigade");
    let script = format!("'{guard}' guard sh -c \"$PROCESS_TREE\"; true");
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .env("PROCESS_TREE", PROCESS_TREE)
        .current_dir(cli.path("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let pids = (0..3).map(|_| lines.next().unwrap().unwrap().parse().unwrap()).collect();
    (shell, pids)
}

#[cfg(target_os = "linux")]
#[test]
fn all_processes_end_when_the_parent_is_killed() {
    let cli = CliEnv::new();
    let (mut shell, pids) = start_process_tree(&cli);
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_all_gone(&pids);
}

#[cfg(target_os = "linux")]
#[test]
fn all_processes_end_when_the_program_exits() {
    let cli = CliEnv::new();
    let script = "setsid sleep 300 & echo $!";
    let output = cli.command(&["guard", "sh", "-c", script]).output().unwrap();
    let pid = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert_all_gone(&[pid]);
    let code = cli.command(&["guard", "sh", "-c", "exit 7"]).status().unwrap().code();
    assert_eq!(code, Some(7));
}

/// If orphans were not reaped, a long-running agent would fill the process table.
#[cfg(target_os = "linux")]
#[test]
fn orphans_are_reaped_by_the_guard() {
    let cli = CliEnv::new();
    let script = "(sleep 0.2 & echo $!); sleep 300";
    let mut guard = cli.command(&["guard", "sh", "-c", script]);
    let mut guard = guard.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
    let pid: u64 = lines.next().unwrap().unwrap().parse().unwrap();
    wait_until("the orphan to be reaped", || !Path::new(&format!("/proc/{pid}")).exists());
    terminate(&guard);
    guard.wait().unwrap();
}

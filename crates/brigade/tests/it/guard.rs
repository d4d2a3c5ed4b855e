//! Neither a teammate nor its agent leaves the other behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::env::House;

/// A program that starts others, one of them in a session of its own, and tells who they are.
const BROOD: &str = "setsid sleep 300 & echo $!; sleep 300 & echo $!; trap '' TERM; echo $$; wait";

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub(crate) fn all_gone(pids: &[u32]) {
    let began = Instant::now();
    while pids.iter().any(|&pid| is_alive(pid)) {
        assert!(began.elapsed() < Duration::from_secs(10), "still there: {pids:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a brood behind a guard whose parent is a shell that we can kill.
fn brood(house: &House) -> (std::process::Child, Vec<u32>) {
    let guard = env!("CARGO_BIN_EXE_brigade");
    let script = format!("'{guard}' guard sh -c \"$BROOD\"; true");
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .env("BROOD", BROOD)
        .current_dir(house.path("work"))
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
fn when_the_parent_is_killed_all_of_it_goes() {
    let house = House::new();
    let (mut shell, pids) = brood(&house);
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    shell.kill().unwrap();
    shell.wait().unwrap();
    all_gone(&pids);
}

#[cfg(target_os = "linux")]
#[test]
fn when_the_program_ends_what_it_started_goes() {
    let house = House::new();
    let script = "setsid sleep 300 & echo $!";
    let output = house.command(&["guard", "sh", "-c", script]).output().unwrap();
    let pid = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    all_gone(&[pid]);
    let code = house.command(&["guard", "sh", "-c", "exit 7"]).status().unwrap().code();
    assert_eq!(code, Some(7));
}

/// A program that leaves others to its guard, over days, would fill the table of processes.
#[cfg(target_os = "linux")]
#[test]
fn who_was_left_to_the_guard_and_has_ended_is_taken_note_of() {
    let house = House::new();
    let script = "(sleep 0.2 & echo $!); sleep 300";
    let mut guard = house.command(&["guard", "sh", "-c", script]);
    let mut guard = guard.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
    let pid: u32 = lines.next().unwrap().unwrap().parse().unwrap();
    let began = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is still listed");
        std::thread::sleep(Duration::from_millis(50));
    }
    let told = Command::new("kill").arg(guard.id().to_string()).status().unwrap();
    assert!(told.success());
    guard.wait().unwrap();
}

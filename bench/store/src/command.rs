//! Measures single runs of the `brigade` program.

use std::process::Command;
use std::time::Duration;

use brigade_files::claude_dir_key;

use crate::figures::Times;
use crate::fixtures::LEAD;
use crate::mcp_server::brigade;
use crate::temp_team::{TEAM, TempTeam};

/// Runs a program without output. Prints its duration in seconds, its highest memory use in kilobytes and its exit code.
const MEASURE: &str = "
import os, sys, time
null = os.open('/dev/null', os.O_RDWR)
quiet = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
start = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
";

/// Durations of a command, and its highest memory use in megabytes.
#[derive(Debug, Default)]
pub(crate) struct CommandCost {
    pub(crate) times: Times,
    pub(crate) peak: f64,
}

impl CommandCost {
    /// Returns the median duration in milliseconds.
    pub(crate) fn milliseconds(&self) -> f64 {
        self.times.median() / 1e3
    }

    /// Runs `brigade` once as the lead of the team. It must end with one of these exit codes.
    pub(crate) fn run(&mut self, temp: &TempTeam, args: &[&str], exit_codes: &[&str]) {
        let mut command = Command::new("python3");
        command.args(["-c", MEASURE]).arg(brigade());
        command.args(["--team", TEAM, "--as", LEAD]).args(args);
        command.env("CLAUDE_CONFIG_DIR", &temp.dirs.claude);
        command.env("XDG_STATE_HOME", temp.root.join("state"));
        let output = command.output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let [seconds, kilobytes, code] = words.as_slice() else {
            panic!("{args:?}: {line} {}", String::from_utf8_lossy(&output.stderr))
        };
        assert!(exit_codes.contains(code), "{args:?} ended with {code}");
        self.times.push(Duration::from_secs_f64(seconds.parse().unwrap()));
        self.peak = self.peak.max(kilobytes.parse::<f64>().unwrap() / 1_024.0);
    }
}

/// Records that the team runs on this host, because `brigade status` shows only such teams.
pub(crate) fn mark_as_running(temp: &TempTeam) {
    let host = temp.dirs.state.join("host").join(claude_dir_key(&temp.dirs.claude));
    std::fs::create_dir_all(host.join(TEAM)).unwrap();
    std::fs::write(host.join(TEAM).join("team.json"), "{}").unwrap();
}

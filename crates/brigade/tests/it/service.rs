//! `brigade service …`

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::env::{CliEnv, Outcome};

const UNIT: &str = "home/.config/systemd/user/brigade.service";

/// An environment with a `systemctl` that records its arguments, and fails while the file `broken` exists.
struct ServiceEnv {
    cli: CliEnv,
    path: String,
}

impl ServiceEnv {
    fn new() -> Self {
        let cli = CliEnv::new();
        let script = format!(
            "#!/bin/sh\n[ ! -e {0}/broken ] || {{ echo 'no bus' >&2; exit 1; }}\necho \"$*\" >> {0}/called\n",
            cli.root.display()
        );
        cli.write("bin/systemctl", &script);
        fs::set_permissions(cli.path("bin/systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", cli.path("bin").display());
        Self { cli, path }
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.cli.run_with_env(&[&["service"][..], args].concat(), &[("PATH", &self.path)])
    }

    fn called(&self) -> Vec<String> {
        let called = fs::read_to_string(self.cli.path("called")).unwrap_or_default();
        called.lines().map(str::to_owned).collect()
    }

    fn unit(&self) -> PathBuf {
        self.cli.path(UNIT)
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_service_is_installed_shown_and_removed() {
    let env = ServiceEnv::new();
    assert_eq!(env.run(&["status"]).code, Some(4));
    // Without a terminal, `--yes` is necessary.
    let asked = env.run(&["install"]);
    assert_eq!((asked.code, env.unit().exists()), (Some(2), false), "{asked}");
    assert!(asked.stdout.contains("ExecStart="), "{asked}");
    let installed = env.run(&["install", "--yes"]);
    assert_eq!(installed.code, Some(0), "{installed}");
    assert!(installed.stderr.contains("loginctl enable-linger"), "{installed}");
    let enabling = ["--user daemon-reload", "--user enable brigade.service"];
    assert_eq!(env.called(), enabling);
    let unit = fs::read_to_string(env.unit()).unwrap();
    assert!(unit.starts_with("# Written by `brigade service install`"), "{unit}");
    assert!(unit.contains("\"resume\"\n"), "{unit}");
    assert!(unit.contains(&format!("Environment=\"PATH={}\"\n", env.path)), "{unit}");
    assert!(unit.contains("Environment=\"XDG_STATE_HOME="), "{unit}");
    let again = env.run(&["install", "--yes", "--json"]);
    assert_eq!(again.code, Some(0), "{again}");
    let status = env.run(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!((&status["state"], &status["enabled"]), (&json!("installed"), &json!(true)));
    let removed = env.run(&["remove"]);
    assert_eq!((removed.code, env.unit().exists()), (Some(0), false), "{removed}");
    assert!(env.called().contains(&"--user disable brigade.service".to_owned()));
    assert_eq!(env.run(&["remove"]).code, Some(4));
    let left: Vec<_> = fs::read_dir(env.unit().parent().unwrap()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The unit does what it says: systemd would run exactly this command.
#[test]
#[cfg(target_os = "linux")]
fn the_command_of_the_unit_starts_the_teams_again() {
    let env = ServiceEnv::new();
    assert_eq!(env.run(&["install", "--yes"]).code, Some(0));
    let unit = fs::read_to_string(env.unit()).unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    let mut resume = env.cli.command_of(words[0].as_ref(), &words[1..]);
    let resumed = env.cli.outcome(&resume.output().unwrap());
    // No team is up. The unit counts this as success.
    assert_eq!(resumed.code, Some(4), "{resumed}");
    assert!(unit.contains("SuccessExitStatus=4\n"), "{unit}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_brigade_did_not_write_is_never_overwritten() {
    let env = ServiceEnv::new();
    env.cli.write(UNIT, "[Service]\nExecStart=/bin/true\n");
    for command in [&["install", "--yes"][..], &["remove"]] {
        let refused = env.run(command);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("brigade did not write it"), "{refused}");
    }
    assert_eq!(fs::read_to_string(env.unit()).unwrap(), "[Service]\nExecStart=/bin/true\n");
    assert_eq!(env.called(), Vec::<String>::new());
    assert_eq!(env.run(&["status"]).code, Some(4));
}

#[test]
#[cfg(target_os = "linux")]
fn a_unit_that_cannot_be_enabled_is_reported_with_the_commands() {
    let env = ServiceEnv::new();
    env.cli.write("broken", "");
    let partly = env.run(&["install", "--yes"]);
    assert_eq!(partly.code, Some(3), "{partly}");
    let hint = "`systemctl --user daemon-reload && systemctl --user enable brigade.service`";
    assert!(partly.stderr.contains("no bus") && partly.stderr.contains(hint), "{partly}");
    assert!(env.unit().exists());
    fs::remove_file(env.cli.path("broken")).unwrap();
    assert_eq!(env.run(&["install", "--yes"]).code, Some(0));
    // Another search path makes another unit.
    let outdated = env.cli.run_with_env(&["service", "status"], &[("PATH", "/usr/bin")]);
    assert!(outdated.stdout.starts_with("installed with other settings"), "{outdated}");
}

#[test]
fn an_agent_installs_no_service() {
    let env = ServiceEnv::new();
    let agent = [("BRIGADE_ANSWERS", "lead"), ("PATH", env.path.as_str())];
    let refused = env.cli.run_with_env(&["service", "install", "--yes"], &agent);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("only a person may install a service"), "{refused}");
    assert!(!env.unit().exists());
}

/// systemd itself reads the unit, if it is installed.
#[test]
#[cfg(target_os = "linux")]
fn systemd_accepts_the_installed_unit() {
    let env = ServiceEnv::new();
    assert_eq!(env.run(&["install", "--yes"]).code, Some(0));
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "--man=no", "verify"]).arg(env.unit());
    verify.env("XDG_RUNTIME_DIR", &env.cli.root);
    let Ok(verified) = verify.output() else { return };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("brigade.service"), "{said}");
}

//! The files of services: systemd's units and launchd's property lists.

use std::fmt::Write as _;

/// Returns a systemd user unit that runs a command once at login.
///
/// `KillMode=process` leaves the members alone when the unit stops or fails, because they outlive the command that started
/// them. Exit code 4 of `resume` means that no team is up.
pub(super) fn unit(mark: &str, command: &[String], variables: &[(String, String)]) -> String {
    // `$` starts a variable only in commands.
    let command: Vec<String> =
        command.iter().map(|word| quoted(&word.replace('$', "$$"))).collect();
    let mut text = format!(
        "# {mark}. `brigade service remove` deletes this file.\n\
         [Unit]\n\
         Description=Brigade: start the agent teams of this user again\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         KillMode=process\n\
         SuccessExitStatus=4\n\
         ExecStart={}\n",
        command.join(" ")
    );
    for (name, value) in variables {
        let _infallible = writeln!(text, "Environment={}", quoted(&format!("{name}={value}")));
    }
    text.push_str("\n[Install]\nWantedBy=default.target\n");
    text
}

/// Quotes a word for systemd.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

/// Returns a property list of launchd that runs a command once at login.
pub(super) fn agent(
    mark: &str,
    label: &str,
    command: &[String],
    variables: &[(String, String)],
) -> String {
    let string = |text: &str| format!("<string>{}</string>", escaped(text));
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- {mark}. `brigade service remove` deletes this file. -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>{}\n  <key>RunAtLoad</key><true/>\n  \
         <key>AbandonProcessGroup</key><true/>\n  <key>ProgramArguments</key>\n  <array>\n",
        string(label)
    );
    for word in command {
        let _infallible = writeln!(text, "    {}", string(word));
    }
    text.push_str("  </array>\n  <key>EnvironmentVariables</key>\n  <dict>\n");
    for (name, value) in variables {
        let _infallible = writeln!(text, "    <key>{}</key>{}", escaped(name), string(value));
    }
    text.push_str("  </dict>\n</dict>\n</plist>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn words_with_special_characters_are_quoted() {
        let command = words(&["/opt/my agents/brigade", "a\"b", "50%", "$HOME", "c\\d"]);
        let variables = [("PATH".to_owned(), "/a b:/usr/bin:$x".to_owned())];
        let text = unit("Mark", &command, &variables);
        let line = r#"ExecStart="/opt/my agents/brigade" "a\"b" "50%%" "$$HOME" "c\\d""#;
        assert!(text.lines().any(|found| found == line), "{text}");
        assert!(text.contains("Environment=\"PATH=/a b:/usr/bin:$x\"\n"), "{text}");
        assert!(text.starts_with("# Mark. "), "{text}");
        let agent = agent("Mark", "label", &words(&["a<b", "c&d"]), &[]);
        assert!(agent.contains("<string>a&lt;b</string>\n    <string>c&amp;d</string>"), "{agent}");
    }

    /// systemd itself reads the unit, if it is installed.
    #[test]
    fn systemd_accepts_the_unit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("brigade.service");
        let variables = [("PATH".to_owned(), "/a \"b\":50%".to_owned())];
        std::fs::write(&path, unit("Mark", &words(&["/bin/true", "a b"]), &variables)).unwrap();
        let mut verify = Command::new("systemd-analyze");
        verify.args(["--user", "--man=no", "verify"]).arg(&path);
        verify.env("XDG_RUNTIME_DIR", dir.path());
        let Ok(verified) = verify.output() else { return };
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && !said.contains("brigade.service"), "{said}");
    }
}

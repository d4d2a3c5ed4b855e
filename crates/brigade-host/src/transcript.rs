//! The record that Claude Code keeps of its sessions, `projects/<folder>/<session>.jsonl`: what the
//! model of a native teammate was given, and whether it was in the middle of a turn.
//!
//! A row of type `user` is written when the model is given its text; on a resumed session these rows
//! are what it remembers. Other rows repeat the same text for purposes of the program's own.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use brigade_agents::resend::Heard;
use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// A row, as far as it matters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(rename = "type")]
    kind: String,
    uuid: Option<String>,
    timestamp: Option<Timestamp>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    team_name: Option<String>,
    agent_name: Option<String>,
    message: Option<Content>,
}

#[derive(Debug, Deserialize)]
struct Content {
    #[serde(default)]
    content: Value,
}

/// Whose record it is.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'w> {
    pub team: &'w TeamName,
    pub member: &'w MemberName,
    /// When the team was created: an earlier one of the same name was another.
    pub since: Timestamp,
}

/// What the record of a session says, and those beside it of the same member: somebody may have begun
/// a new session in its window. `None` if there is nothing a session could be resumed from.
pub fn read(claude_dir: &Path, session: &str, whose: Whose<'_>) -> io::Result<Option<Heard>> {
    let Some(own) = find(claude_dir, session)? else { return Ok(None) };
    let mut heard = Heard::default();
    let mut resumable = false;
    let folder = own.parent().unwrap_or(&own);
    let mut records: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        records.push(entry?.path());
    }
    records.retain(|path| path.extension().is_some_and(|its| its == "jsonl"));
    records.sort();
    for path in records {
        let mut last = None;
        for line in BufReader::new(File::open(&path)?).split(b'\n') {
            // A row that was being written when the program died is no row.
            let Ok(row) = serde_json::from_slice::<Row>(&line?) else { continue };
            if !row.is_of(whose) {
                continue;
            }
            if row.kind == "user" && row.timestamp.is_none_or(|at| at >= whose.since) {
                heard.turns.extend(row.text().filter(|text| text.contains("<teammate-message")));
            }
            last = Some(row);
        }
        if path == own {
            resumable = last.is_some();
            heard.unfinished = last.filter(Row::is_unfinished).and_then(|row| row.uuid);
        }
    }
    Ok(resumable.then_some(heard))
}

/// The record of a session, in whichever folder it is: Claude Code names them after where it works,
/// and cuts long names in its own way.
fn find(claude_dir: &Path, session: &str) -> io::Result<Option<PathBuf>> {
    let folders = match fs::read_dir(claude_dir.join("projects")) {
        Ok(folders) => folders,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for folder in folders {
        let path = folder?.path().join(format!("{session}.jsonl"));
        if path.is_file() {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

impl Row {
    /// Whether it is of the member's own conversation.
    fn is_of(&self, whose: Whose<'_>) -> bool {
        let team = self.team_name.as_deref() == Some(whose.team.as_str());
        let member = self.agent_name.as_deref() == Some(whose.member.as_str());
        let spoken = matches!(self.kind.as_str(), "user" | "assistant");
        team && member && spoken && !self.is_sidechain && !self.is_meta
    }

    fn text(&self) -> Option<String> {
        match &self.message.as_ref()?.content {
            Value::String(text) => Some(text.clone()),
            Value::Array(blocks) => {
                let text = |block: &Value| Some(block.get("text")?.as_str()?.to_owned());
                let texts: Vec<String> = blocks.iter().filter_map(text).collect();
                Some(texts.join("\n"))
            }
            _ => None,
        }
    }

    fn has(&self, kind: &str) -> bool {
        let blocks = self.message.as_ref().and_then(|message| message.content.as_array());
        let is = |block: &Value| block.get("type").and_then(Value::as_str) == Some(kind);
        blocks.is_some_and(|blocks| blocks.iter().any(is))
    }

    /// Whether something still had to follow: an answer to what was said or found out, or what a tool
    /// came to. What somebody stopped by hand, or said to the program itself, wants no answer.
    fn is_unfinished(&self) -> bool {
        if self.kind == "assistant" {
            return self.has("tool_use");
        }
        let text = self.text().unwrap_or_default();
        let settled = ["[Request interrupted", "<command-name>", "<local-command"];
        !settled.iter().any(|start| text.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a teammate `alice` of a team `own` that was killed in a turn, resumed and given one
    /// more message.
    fn recorded(version: &str) -> (String, Vec<String>) {
        let path = format!("{}/../../fixtures/records/{version}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let rows: Vec<String> =
            fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        let row: Value = serde_json::from_str(rows.last().unwrap()).unwrap();
        (row["sessionId"].as_str().unwrap().to_owned(), rows)
    }

    fn check(session: &str, rows: &[String], member: &str, since: &str) -> Option<Heard> {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-home-dev-project");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{session}.jsonl")), rows.join("\n")).unwrap();
        let (team, member) = ("own".parse().unwrap(), member.parse().unwrap());
        let whose = Whose { team: &team, member: &member, since: since.parse().unwrap() };
        read(dir.path(), session, whose).unwrap()
    }

    const BEFORE: &str = "2026-11-15T00:00:00Z";

    #[test]
    fn what_the_model_was_given_is_read_from_real_records() {
        for version in ["2.1.50", "2.1.325"] {
            let (session, rows) = recorded(version);
            let heard = check(&session, &rows, "alice", BEFORE).unwrap();
            assert_eq!(heard.unfinished, None, "{version}");
            let turns = heard.turns.len();
            assert_eq!(turns, 4, "{version}");
            for (turn, words) in
                heard.turns.iter().zip(["begin, one", "three, mid", "four b", "five"])
            {
                assert!(turn.contains(words), "{version}: {turn}");
            }
            // Another's record, and one of an earlier team of the same name.
            assert_eq!(check(&session, &rows, "bob", BEFORE), None);
            let later = check(&session, &rows, "alice", "2026-11-16T00:00:00Z").unwrap();
            assert_eq!(later.turns, [""; 0]);
        }
    }

    #[test]
    fn a_turn_that_was_cut_off_is_unfinished() {
        for version in ["2.1.50", "2.1.325"] {
            let (session, rows) = recorded(version);
            let at = |words: &str| rows.iter().position(|row| row.contains(words)).unwrap();
            // Killed while its model thought: what it resumed with says so.
            let asked = &rows[..at("\"No response requested.\"")];
            let asked = check(&session, asked, "alice", BEFORE).unwrap();
            assert!(asked.unfinished.is_some(), "{version}");
            // Killed while a tool ran.
            let tool = &rows[..=at("\"tool_use\"")];
            let tool = check(&session, tool, "alice", BEFORE).unwrap();
            assert!(tool.unfinished.is_some() && tool.unfinished != asked.unfinished, "{version}");
            // A row that was being written is none.
            let mut torn = rows[..=at("\"tool_use\"")].to_vec();
            torn.push(rows[at("\"tool_result\"")].chars().take(40).collect());
            assert_eq!(check(&session, &torn, "alice", BEFORE).unwrap(), tool, "{version}");
        }
    }

    #[test]
    fn without_a_record_there_is_nothing_to_resume() {
        assert_eq!(check("none", &[], "alice", BEFORE), None);
        let (session, rows) = recorded("2.1.325");
        assert_eq!(check(&session, &rows[..1], "alice", BEFORE), None, "a record of no words");
    }
}

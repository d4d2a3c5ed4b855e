//! Reads the transcripts of Claude Code sessions, `projects/<folder>/<session>.jsonl`. They show which messages
//! the model of a native teammate received, and whether the teammate's last turn was interrupted.
//!
//! Claude Code writes a row of type `user` when it passes text to the model. In a resumed session the model
//! gets these rows again. Rows of other types repeat the same text for internal purposes.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use brigade_agents::resend::ModelInput;
use brigade_wire::name::{MemberName, TeamName};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The fields of a transcript row that are used here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TranscriptRow {
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

/// The member whose transcripts are read.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptOwner<'w> {
    /// The member's team.
    pub team: &'w TeamName,
    /// The member's name.
    pub member: &'w MemberName,
    /// When the team was created. Older rows belong to an earlier team of the same name.
    pub since: Timestamp,
}

/// Reads the transcript of a session. Also reads the member's other transcripts in the same folder, because a
/// person may have started a new session in the member's window. Returns `None` if there is no session to resume.
pub fn read(
    claude_dir: &Path,
    session: &str,
    whose: TranscriptOwner<'_>,
) -> io::Result<Option<ModelInput>> {
    let Some(own) = find(claude_dir, session)? else { return Ok(None) };
    let mut heard = ModelInput::default();
    let mut resumable = false;
    let folder = own.parent().unwrap_or(&own);
    let mut transcripts: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        transcripts.push(entry?.path());
    }
    transcripts.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    transcripts.sort();
    for path in transcripts {
        let mut last = None;
        for line in BufReader::new(File::open(&path)?).split(b'\n') {
            // Skip a row that was only partly written when Claude Code died.
            let Ok(row) = serde_json::from_slice::<TranscriptRow>(&line?) else { continue };
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
            heard.unfinished = last.filter(TranscriptRow::is_unfinished).and_then(|row| row.uuid);
        }
    }
    Ok(resumable.then_some(heard))
}

/// Finds the transcript of a session by searching all project folders. Claude Code derives a project folder's name
/// from the working directory, but how it shortens long names is undocumented.
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

impl TranscriptRow {
    /// Returns whether this row is part of the member's own conversation.
    fn is_of(&self, whose: TranscriptOwner<'_>) -> bool {
        let team = self.team_name.as_deref() == Some(whose.team.as_str());
        let member = self.agent_name.as_deref() == Some(whose.member.as_str());
        let is_message = matches!(self.kind.as_str(), "user" | "assistant");
        team && member && is_message && !self.is_sidechain && !self.is_meta
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

    /// Returns whether an answer or a tool result is missing after this row, because the turn was interrupted. A
    /// turn that a person stopped needs no answer, and neither does a command to Claude Code itself.
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

    /// Returns the session id and the rows of a recorded transcript. In the recording, teammate `alice` of team
    /// `own` was killed during a turn, resumed, and got one more message.
    fn recorded(version: &str) -> (String, Vec<String>) {
        let path = format!("{}/../../fixtures/records/{version}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let rows: Vec<String> =
            fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        let row: Value = serde_json::from_str(rows.last().unwrap()).unwrap();
        (row["sessionId"].as_str().unwrap().to_owned(), rows)
    }

    fn check(session: &str, rows: &[String], member: &str, since: &str) -> Option<ModelInput> {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-home-dev-project");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{session}.jsonl")), rows.join("\n")).unwrap();
        let (team, member) = ("own".parse().unwrap(), member.parse().unwrap());
        let whose = TranscriptOwner { team: &team, member: &member, since: since.parse().unwrap() };
        read(dir.path(), session, whose).unwrap()
    }

    const BEFORE: &str = "2026-11-15T00:00:00Z";

    #[test]
    fn messages_to_the_model_are_read_from_real_transcripts() {
        for version in ["2.1.50", "2.1.325"] {
            let (session, rows) = recorded(version);
            let heard = check(&session, &rows, "alice", BEFORE).unwrap();
            assert_eq!(heard.unfinished, None, "{version}");
            let turns = heard.turns.len();
            assert_eq!(turns, 4, "{version}");
            for (turn, text) in
                heard.turns.iter().zip(["begin, one", "three, mid", "four b", "five"])
            {
                assert!(turn.contains(text), "{version}: {turn}");
            }
            // The transcripts of another member and of an earlier team with the same name are ignored.
            assert_eq!(check(&session, &rows, "bob", BEFORE), None);
            let later = check(&session, &rows, "alice", "2026-11-16T00:00:00Z").unwrap();
            assert_eq!(later.turns, [""; 0]);
        }
    }

    #[test]
    fn an_interrupted_turn_is_unfinished() {
        for version in ["2.1.50", "2.1.325"] {
            let (session, rows) = recorded(version);
            let at = |text: &str| rows.iter().position(|row| row.contains(text)).unwrap();
            // Claude Code was killed while its model was thinking.
            let asked = &rows[..at("\"No response requested.\"")];
            let asked = check(&session, asked, "alice", BEFORE).unwrap();
            assert!(asked.unfinished.is_some(), "{version}");
            // Claude Code was killed while a tool ran.
            let tool = &rows[..=at("\"tool_use\"")];
            let tool = check(&session, tool, "alice", BEFORE).unwrap();
            assert!(tool.unfinished.is_some() && tool.unfinished != asked.unfinished, "{version}");
            // A partly written row is skipped.
            let mut torn = rows[..=at("\"tool_use\"")].to_vec();
            torn.push(rows[at("\"tool_result\"")].chars().take(40).collect());
            assert_eq!(check(&session, &torn, "alice", BEFORE).unwrap(), tool, "{version}");
        }
    }

    #[test]
    fn without_a_transcript_there_is_nothing_to_resume() {
        assert_eq!(check("none", &[], "alice", BEFORE), None);
        let (session, rows) = recorded("2.1.325");
        assert_eq!(
            check(&session, &rows[..1], "alice", BEFORE),
            None,
            "a transcript without messages"
        );
    }
}

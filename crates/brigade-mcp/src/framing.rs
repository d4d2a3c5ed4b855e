//! Checks the client's lines before the SDK reads them. The SDK ignores a line that is too long or not JSON, so
//! without this check the client would wait forever for an answer.

use std::borrow::Cow;
use std::fmt;
use std::io;

use brigade_wire::legible::legible;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH as MAX_LINE;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::sync::mpsc;

/// How many bytes of input are read ahead of the SDK.
const READ_AHEAD: usize = 64 << 10;
/// If a line is too long, this many bytes at its end are searched for a request id.
const TAIL: usize = 512;

/// A line that is not a valid message: the request id, if the line contains one, and the error to answer with.
#[derive(Debug)]
pub(super) struct RejectedLine {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

/// Splits the input into valid lines, which the SDK reads, and rejected lines.
pub(super) fn split(
    input: impl AsyncRead + Unpin + Send + 'static,
) -> (DuplexStream, mpsc::Receiver<RejectedLine>) {
    let (sender, valid) = tokio::io::duplex(READ_AHEAD);
    let (reject, rejected) = mpsc::channel(1);
    // The task ends when the input ends, or when both receivers are dropped.
    tokio::spawn(check_lines(input, sender, reject));
    (valid, rejected)
}

async fn check_lines(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    reject: mpsc::Sender<RejectedLine>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while read(&mut input, MAX_LINE, &mut line).await? > 0 {
        let checked = if line.len() == MAX_LINE && !line.ends_with(b"\n") {
            let id = leading_id(&legible(&line));
            while !line.ends_with(b"\n") {
                line.drain(..line.len().saturating_sub(TAIL));
                if read(&mut input, READ_AHEAD, &mut line).await? == 0 {
                    break;
                }
            }
            let id = id.or_else(|| trailing_id(&String::from_utf8_lossy(&line)));
            let message = format!("the line is longer than {MAX_LINE} bytes");
            Err(RejectedLine { id, error: ErrorData::invalid_request(message, None) })
        } else {
            read_line(&line)
        };
        match checked {
            Ok(text) => {
                output.write_all(text.trim_end().as_bytes()).await?;
                output.write_all(b"\n").await?;
            }
            Err(rejected) => reject.send(rejected).await.map_err(io::Error::other)?,
        }
        line.clear();
        line.shrink_to(READ_AHEAD);
    }
    Ok(())
}

/// Appends input to `line` up to the end of the line, but at most `limit` bytes.
async fn read(
    input: &mut (impl AsyncBufRead + Unpin),
    limit: usize,
    line: &mut Vec<u8>,
) -> io::Result<usize> {
    input.take(limit as u64).read_until(b'\n', line).await
}

/// Checks that a line is JSON. Replaces unpaired UTF-16 surrogates, which JavaScript writes and the SDK rejects.
fn read_line(line: &[u8]) -> Result<Cow<'_, str>, RejectedLine> {
    let text = legible(line);
    let reject = |message: String| RejectedLine {
        id: leading_id(&text),
        error: ErrorData::new(ErrorCode::PARSE_ERROR, message, None),
    };
    if str::from_utf8(line).is_err() {
        return Err(reject("the line is not UTF-8".to_owned()));
    }
    if !text.trim().is_empty() {
        serde_json::from_str::<Value>(&text)
            .map_err(|error| reject(format!("the line is not JSON: {error}")))?;
    }
    Ok(text)
}

/// Finds the request id in a text that starts like a request, even if the rest of the text is missing or invalid.
fn leading_id(text: &str) -> Option<RequestId> {
    let mut id = None;
    let _rest_may_be_invalid =
        serde_json::Deserializer::from_str(text).deserialize_map(FindId(&mut id));
    id
}

struct FindId<'a>(&'a mut Option<RequestId>);

impl<'de> Visitor<'de> for FindId<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
        let mut id = None;
        while let Some(name) = members.next_key::<String>()? {
            // The value of the previous key is complete, because another key follows.
            *self.0 = id.take().or_else(|| self.0.take());
            let value: &RawValue = members.next_value()?;
            if name == "id" {
                id = serde_json::from_str(value.get()).ok();
            }
        }
        *self.0 = id.or_else(|| self.0.take());
        Ok(())
    }
}

/// Finds the request id at the end of a JSON object whose start is missing. The last key before the final brace
/// belongs to the outermost object, and quotation marks in JSON strings are always escaped.
fn trailing_id(tail: &str) -> Option<RequestId> {
    let members = tail.trim_end().strip_suffix('}')?;
    let (before, value) = members.rsplit_once("\"id\"")?;
    before.trim_end().ends_with([',', '{']).then_some(())?;
    serde_json::from_str(value.trim_start().strip_prefix(':')?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(id: i64) -> Option<RequestId> {
        Some(RequestId::Number(id))
    }

    #[test]
    fn an_id_is_found_in_an_incomplete_request() {
        assert_eq!(leading_id(r#"{"id":7,"params":{"text":"cut of"#), number(7));
        assert_eq!(leading_id(r#"{"params":{"id":8,"n":1e999},"id":7}"#), number(7));
        assert_eq!(leading_id(r#"{"id":"a\"b","params"#), None, "the next key is incomplete");
        assert_eq!(leading_id(r#"{"id":"a\"b","params":"#), Some(RequestId::String("a\"b".into())));
        assert_eq!(leading_id(r#"{"params":{"id":8,"#), None);
        assert_eq!(leading_id(r#"{"id":12"#), None, "more digits may have been cut off");
        assert_eq!(leading_id(r#"[{"id":7}]"#), None);
        assert_eq!(leading_id("send alice hi"), None);
    }

    #[test]
    fn an_id_is_found_at_the_end() {
        assert_eq!(trailing_id("xx\"},\"jsonrpc\":\"2.0\", \"id\" : 7 }\r\n"), number(7));
        assert_eq!(trailing_id(r#"xx"},"id":"a"}"#), Some(RequestId::String("a".into())));
        assert_eq!(trailing_id(r#"xx","id":7}}"#), None, "the id belongs to a nested object");
        assert_eq!(trailing_id(r#"xx\"id":7}"#), None, "`id` is only the end of another key");
        assert_eq!(trailing_id(r#","id":7,"params":{"text":"xx"}}"#), None);
        assert_eq!(trailing_id("xxxx"), None);
    }
}

//! The lines a client writes, looked at before the SDK reads them: it says nothing to a line that is too
//! long for it or no JSON, and whoever wrote it would wait for the answer for ever.

use std::borrow::Cow;
use std::fmt;
use std::io;

use brigade_wire::legible::legible;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH as LONGEST;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::sync::mpsc;

/// How much is read ahead of the SDK.
const AHEAD: usize = 64 << 10;
/// How much of the end of a line that is too long is looked at.
const TAIL: usize = 512;

/// A line that is no message: whose answer it waits for, if that can be told, and what the answer is.
#[derive(Debug)]
pub(super) struct Unusable {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

/// What of the input the SDK can read, and what it cannot.
pub(super) fn sift(
    input: impl AsyncRead + Unpin + Send + 'static,
) -> (DuplexStream, mpsc::Receiver<Unusable>) {
    let (into, usable) = tokio::io::duplex(AHEAD);
    let (refuse, unusable) = mpsc::channel(1);
    // It ends with the input, or when nobody wants it any longer.
    tokio::spawn(pass_on(input, into, refuse));
    (usable, unusable)
}

async fn pass_on(
    input: impl AsyncRead + Unpin,
    mut into: impl AsyncWrite + Unpin,
    refuse: mpsc::Sender<Unusable>,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while read(&mut input, LONGEST, &mut line).await? > 0 {
        let usable = if line.len() == LONGEST && !line.ends_with(b"\n") {
            let id = id_ahead(&legible(&line));
            while !line.ends_with(b"\n") {
                line.drain(..line.len().saturating_sub(TAIL));
                if read(&mut input, AHEAD, &mut line).await? == 0 {
                    break;
                }
            }
            let id = id.or_else(|| id_at_end(&String::from_utf8_lossy(&line)));
            let words = format!("a line of more than {LONGEST} bytes");
            Err(Unusable { id, error: ErrorData::invalid_request(words, None) })
        } else {
            read_line(&line)
        };
        match usable {
            Ok(text) => {
                into.write_all(text.trim_end().as_bytes()).await?;
                into.write_all(b"\n").await?;
            }
            Err(unusable) => refuse.send(unusable).await.map_err(io::Error::other)?,
        }
        line.clear();
        line.shrink_to(AHEAD);
    }
    Ok(())
}

/// Reads to the end of the line, but no more than so many bytes.
async fn read(
    input: &mut (impl AsyncBufRead + Unpin),
    most: usize,
    line: &mut Vec<u8>,
) -> io::Result<usize> {
    input.take(most as u64).read_until(b'\n', line).await
}

/// The line as JSON that the SDK reads; halves of surrogate pairs, which JavaScript writes, are replaced.
fn read_line(line: &[u8]) -> Result<Cow<'_, str>, Unusable> {
    let text = legible(line);
    let refuse = |words: String| Unusable {
        id: id_ahead(&text),
        error: ErrorData::new(ErrorCode::PARSE_ERROR, words, None),
    };
    if str::from_utf8(line).is_err() {
        return Err(refuse("not UTF-8".to_owned()));
    }
    if !text.trim().is_empty() {
        serde_json::from_str::<Value>(&text)
            .map_err(|error| refuse(format!("no JSON: {error}")))?;
    }
    Ok(text)
}

/// The id in a text that begins like a request, whatever comes after it.
fn id_ahead(text: &str) -> Option<RequestId> {
    let mut id = None;
    let _what_comes_after = serde_json::Deserializer::from_str(text).deserialize_map(Find(&mut id));
    id
}

struct Find<'a>(&'a mut Option<RequestId>);

impl<'de> Visitor<'de> for Find<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
        let mut id = None;
        while let Some(name) = members.next_key::<String>()? {
            // A number with something behind it is a whole number.
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

/// The id at the end of an object of which the beginning is missing. What is the last member of a line is
/// a member of the whole, for the brace behind it is the last; and in a text no quotation mark is bare.
fn id_at_end(tail: &str) -> Option<RequestId> {
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
    fn an_id_is_found_in_what_is_no_whole_request() {
        assert_eq!(id_ahead(r#"{"id":7,"params":{"text":"cut of"#), number(7));
        assert_eq!(id_ahead(r#"{"params":{"id":8,"n":1e999},"id":7}"#), number(7));
        assert_eq!(id_ahead(r#"{"id":"a\"b","params"#), None, "what is behind it is not whole");
        assert_eq!(id_ahead(r#"{"id":"a\"b","params":"#), Some(RequestId::String("a\"b".into())));
        assert_eq!(id_ahead(r#"{"params":{"id":8,"#), None);
        assert_eq!(id_ahead(r#"{"id":12"#), None, "more digits may have been cut off");
        assert_eq!(id_ahead(r#"[{"id":7}]"#), None);
        assert_eq!(id_ahead("send alice hi"), None);
    }

    #[test]
    fn an_id_is_found_at_the_end() {
        assert_eq!(id_at_end("xx\"},\"jsonrpc\":\"2.0\", \"id\" : 7 }\r\n"), number(7));
        assert_eq!(id_at_end(r#"xx"},"id":"a"}"#), Some(RequestId::String("a".into())));
        assert_eq!(id_at_end(r#"xx","id":7}}"#), None, "of something inside");
        assert_eq!(id_at_end(r#"xx\"id":7}"#), None, "the end of another name");
        assert_eq!(id_at_end(r#","id":7,"params":{"text":"xx"}}"#), None);
        assert_eq!(id_at_end("xxxx"), None);
    }
}

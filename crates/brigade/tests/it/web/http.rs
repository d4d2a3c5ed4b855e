//! A small HTTP client that can also send what a proper client does not.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// A response.
#[derive(Debug)]
pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl HttpReply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends bytes, and reads the response until the server closes the connection. The status is 0 if the server sent nothing.
pub(super) fn send(address: &str, bytes: &[u8]) -> HttpReply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The server may answer and close the connection before it has read everything.
    let _refused = stream.write_all(bytes);
    let mut received = Vec::new();
    let _closed = stream.read_to_end(&mut received);
    parse(&String::from_utf8_lossy(&received))
}

fn parse(text: &str) -> HttpReply {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    HttpReply { status, head: head.to_owned(), body: body.to_owned() }
}

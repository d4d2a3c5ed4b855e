//! Tests of the HTTP server over a real socket.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use scripted_model::server::{ModelServer, ServerOptions};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn start(folder: &Path) -> SocketAddr {
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let options = ServerOptions {
        log: Some(Box::new(log)),
        bodies: Some(folder.to_owned()),
        outage: Some(folder.join("outage")),
    };
    let server = ModelServer::bind(0, options).await.unwrap();
    let address = server.address().unwrap();
    tokio::spawn(server.run());
    address
}

async fn send(address: SocketAddr, head: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{head}\r\nhost: model\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_all(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

fn log(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("log")).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

const CHAT: &str = "POST /v1/chat/completions?beta=true HTTP/1.1";

#[tokio::test]
async fn headers_are_sent_before_the_delay_and_after_logging() {
    let folder = tempfile::tempdir().unwrap();
    let address = start(folder.path()).await;
    assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
    let body = r#"{"stream":true,"messages":[{"role":"user",
        "content":"[script][{\"say\":\"late text\",\"wait\":1}][/script]"}]}"#;
    let started = Instant::now();
    let mut stream = send(address, CHAT, body).await;
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let records = log(folder.path());
    assert_eq!(records[0]["answer"]["say"], "late text");
    assert_eq!(records[0]["path"], "/v1/chat/completions");
    assert_eq!(std::fs::read_to_string(folder.path().join("0001.json")).unwrap(), body);

    let events = read_all(stream).await;
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
    assert!(events.contains("content-type: text/event-stream"), "{events}");
    assert!(events.contains(r#"{"content":"late "}"#), "{events}");
    assert!(events.contains("data: [DONE]"), "{events}");
}

#[tokio::test]
async fn a_pace_delays_every_part_of_a_streamed_text() {
    let folder = tempfile::tempdir().unwrap();
    let address = start(folder.path()).await;
    let body = r#"{"stream":true,"messages":[{"role":"user",
        "content":"[script][{\"say\":\"slow text\",\"pace\":0.3}][/script]"}]}"#;
    let started = Instant::now();
    let mut stream = send(address, CHAT, body).await;
    let mut first = String::new();
    while !first.contains(r#"{"content":"slow "}"#) {
        let mut part = [0; 1024];
        let length = stream.read(&mut part).await.unwrap();
        first.push_str(std::str::from_utf8(&part[..length]).unwrap());
    }
    assert!(!first.contains(r#"{"content":"text"}"#), "{first}");
    assert!(read_all(stream).await.contains(r#"{"content":"text"}"#));
    assert!(started.elapsed() >= Duration::from_millis(600), "{:?}", started.elapsed());
}

#[tokio::test]
async fn each_request_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let address = start(folder.path()).await;
    for (head, body) in [
        ("HEAD / HTTP/1.1", ""),
        ("GET /v1/models HTTP/1.1", ""),
        ("POST /v1/messages HTTP/1.1\r\ncontent-encoding: zstd", "{}"),
        ("POST /v1/messages HTTP/1.1", r#"{"messages":[]}"#),
        ("GET /nowhere HTTP/1.1", ""),
    ] {
        read_all(send(address, head, body).await).await;
    }
    let records = log(folder.path());
    let logged: Vec<_> = records
        .iter()
        .map(|record| {
            (record["number"].as_u64(), record["status"].as_u64(), record["wire"].as_str())
        })
        .collect();
    let plain = |number, status| (Some(number), Some(status), None);
    let asked = (Some(4), Some(200), Some("messages"));
    assert_eq!(logged, [plain(1, 200), plain(2, 200), plain(3, 415), asked, plain(5, 404)]);
}

#[tokio::test]
async fn ids_are_unique() {
    let folder = tempfile::tempdir().unwrap();
    let address = start(folder.path()).await;
    let id = async || {
        let answer = read_all(send(address, CHAT, r#"{"messages":[]}"#).await).await;
        let (_, after) = answer.split_once(r#""id":""#).unwrap();
        after.split_once('"').unwrap().0.to_owned()
    };
    assert_ne!(id().await, id().await);
}

#[tokio::test]
async fn model_requests_fail_while_the_outage_file_exists() {
    let folder = tempfile::tempdir().unwrap();
    let address = start(folder.path()).await;
    let body = r#"{"messages":[{"role":"user","content":"[script][{\"say\":\"hi\"}][/script]"}]}"#;
    let outage = folder.path().join("outage");
    for (content, expected) in [
        (Some(r#"{"status":429,"body":{"error":{"code":"busy"}}}"#), "429 Too Many Requests"),
        (Some("nonsense"), "501 Not Implemented"),
        (None, "200 OK"),
    ] {
        match content {
            Some(content) => std::fs::write(&outage, content).unwrap(),
            None => std::fs::remove_file(&outage).unwrap(),
        }
        let answer = read_all(send(address, CHAT, body).await).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{answer}");
        assert_eq!(answer.contains("hi"), content.is_none(), "{answer}");
        // Requests that are not for the model still succeed.
        let models = read_all(send(address, "GET /v1/models HTTP/1.1", "").await).await;
        assert!(models.starts_with("HTTP/1.1 200 OK"), "{models}");
    }
    let statuses: Vec<_> =
        log(folder.path()).iter().map(|record| record["status"].clone()).collect();
    assert_eq!(statuses, [429, 200, 501, 200, 200, 200]);
}

//! `brigade web`: the API, who may use it, and attacks on it.

mod access;
mod attacks;
mod calls;
mod events;
mod http;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use self::http::{HttpReply, send};
use crate::env::CliEnv;

/// A running server.
struct WebServer {
    child: Child,
    address: String,
    /// The secret of the login link that the server printed.
    login: String,
}

impl WebServer {
    fn start(cli: &CliEnv) -> Self {
        Self::start_at(cli, "0")
    }

    fn start_at(cli: &CliEnv, port: &str) -> Self {
        let mut command = cli.command(&["web", "--port", port, "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: Value = serde_json::from_str(&line).unwrap();
        let page = started["page"].as_str().unwrap();
        let address = page.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        let login = started["login"].as_str().unwrap().split_once("#login=").unwrap().1.to_owned();
        Self { child, address, login }
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends a request with these headers and this content, and the right `Host`.
    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpReply {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text +=
                &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        text += &format!("Connection: close\r\n\r\n{body}");
        send(&self.address, text.as_bytes())
    }

    /// Sends a request with a token.
    fn call(&self, token: &str, method: &str, path: &str, body: &str) -> HttpReply {
        let bearer = format!("Bearer {token}");
        let path = format!("/api/v1{path}");
        self.request(method, &path, &[("Authorization", &bearer)], body)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Adds a token and returns it.
fn token(cli: &CliEnv, name: &str, kind: &str) -> String {
    let added = cli.json(&["web", "token", "add", name, "--kind", kind]);
    added["token"].as_str().unwrap().to_owned()
}

/// Returns a team `demo` with a server, and a full token.
fn served() -> (CliEnv, WebServer, String) {
    let cli = CliEnv::with_team();
    let server = WebServer::start(&cli);
    let token = token(&cli, "test", "full");
    (cli, server, token)
}

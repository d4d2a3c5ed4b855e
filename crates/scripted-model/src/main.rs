//! The scripted model as a program, for tests that start other programs.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use scripted_model::server::{Books, Server};

/// A model that does what the script in the prompt says. Listens on loopback until it is ended.
#[derive(Parser)]
struct Arguments {
    /// The port; 0 for any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the address to this file, whole, once it listens; without it, to standard output
    #[arg(long, value_name = "FILE")]
    address: Option<PathBuf>,
    /// Append a line of JSON for each request
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Keep the body of each request in this folder
    #[arg(long, value_name = "DIR")]
    bodies: Option<PathBuf>,
    /// While there is this file, answer each question with what it holds: `{"status": 429, "body": {}}`
    #[arg(long, value_name = "FILE")]
    outage: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let mut books = Books::default();
    if let Some(path) = &arguments.log {
        books.log = Some(Box::new(File::options().create(true).append(true).open(path)?));
    }
    if let Some(folder) = arguments.bodies {
        std::fs::create_dir_all(&folder)?;
        books.bodies = Some(folder);
    }
    books.outage = arguments.outage;
    let server = Server::bind(arguments.port, books).await?;
    let address = format!("http://{}\n", server.address()?);
    match &arguments.address {
        Some(path) => write_whole(path, &address)?,
        None => io::stdout().write_all(address.as_bytes())?,
    }
    server.run().await
}

/// A reader finds nothing or all of it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_added_extension("draft");
    std::fs::write(&draft, text)?;
    std::fs::rename(draft, path)
}

//! Runs the scripted model as a server, for tests that start real agent programs.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use scripted_model::server::{ModelServer, ServerOptions};

/// Serve a fake language model that follows the script in the prompt. Listens on the loopback interface
#[derive(Parser)]
struct Arguments {
    /// Port to listen on; 0 chooses a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the server's address to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    address: Option<PathBuf>,
    /// Append a JSON line for each request to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Save the body of each request in this folder
    #[arg(long, value_name = "DIR")]
    bodies: Option<PathBuf>,
    /// While this file exists, answer each model request with the status and body in the file, such as `{"status":
    /// 429, "body": {}}`
    #[arg(long, value_name = "FILE")]
    outage: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let mut options = ServerOptions::default();
    if let Some(path) = &arguments.log {
        options.log = Some(Box::new(File::options().create(true).append(true).open(path)?));
    }
    if let Some(folder) = arguments.bodies {
        std::fs::create_dir_all(&folder)?;
        options.bodies = Some(folder);
    }
    options.outage = arguments.outage;
    let server = ModelServer::bind(arguments.port, options).await?;
    let address = format!("http://{}\n", server.address()?);
    match &arguments.address {
        Some(path) => write_atomically(path, &address)?,
        None => io::stdout().write_all(address.as_bytes())?,
    }
    server.run().await
}

/// Writes the file atomically, so that a reader never sees an incomplete file.
fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_added_extension("draft");
    std::fs::write(&temporary, text)?;
    std::fs::rename(temporary, path)
}

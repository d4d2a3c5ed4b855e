//! Operators, organisations and seats: who may do what on the NATS servers.
//!
//! The servers authenticate clients with NATS's decentralised JWTs. The operator's key signs accounts, and an
//! account's key signs the credentials of its users. The credentials list the subjects that a user may publish and
//! subscribe to. This module creates accounts and credentials offline, from the keys in one folder.
//!
//! An organisation has **two accounts**. One holds the streams and the administrators. The other holds the seats;
//! it has no streams and imports exactly the subjects that seats need. A single account would be unsafe, because
//! the server checks the subject that a client publishes to, but not the reply subject. A seat could send an
//! allowed request and choose the reply subject so that the answer is stored as a message from another member, or
//! purges a stream. With two accounts, the answer goes to the seats' account, which has no streams.
//!
//! The private module `rights` defines what each seat may do.
//!
//! ```
//! use brigade_core::clock::Timestamp;
//! use brigade_nats::org::Folder;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let folder = Folder::init(&dir.join("org"), None, Timestamp::now())?;
//! assert!(folder.server(1).starts_with(dir));
//! # Ok(())
//! # }
//! ```

mod claims;
mod config;
mod error;
mod files;
mod folder;
mod jwt;
mod push;
mod record;
mod rights;

pub use config::{Cluster, ServerAddress, Tls};
pub use error::OrgError;
pub use folder::{Folder, Granted};
pub use push::{PushError, UpdateResult, push};
pub use record::{IssuedSeat, Organisation};
pub use rights::{Permissions, rights};

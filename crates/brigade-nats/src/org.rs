//! Who may do what in the engine: operator, organisations, seats.
//!
//! The server authenticates by NATS's decentralised JWTs. The operator's key signs accounts, an
//! account's key signs the credentials of its users, and what a user may publish and hear stands in its
//! credentials. All of it is made here, offline, from the keys in one folder.
//!
//! An organisation has **two accounts**. The streams are in one, with those who run the organisation.
//! The seats are in the other, which has no streams and borrows exactly the subjects that seats need.
//! One account would not do: the server looks at what a client publishes, and not at where it wants the
//! answer to go. A seat could have the answer to an allowed question stored as another's message, or
//! have it purge a stream. Across accounts, the answer comes back to the seats' account and goes no
//! further.
//!
//! [`rights`] is the table of what each seat may do.
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

pub use config::{Address, Cluster, Tls};
pub use error::OrgError;
pub use folder::{Folder, Granted};
pub use push::{PushError, Pushed, push};
pub use record::{Organisation, Seat};
pub use rights::{Permissions, rights};

//! A fake language model for tests. The prompt contains a script, and the model's answer is the next step of the
//! script, in the wire format of the request.
//!
//! ```text
//! Do your work. [script][{"tool": "team/task_claim", "args": {"taskId": "1"}}, {"say": "done"}][/script]
//! ```
//!
//! The server keeps no state between requests, because every request contains the whole conversation. A resumed
//! session continues at the same step of its script.
//!
//! In reading order: [`script`] parses scripts, [`conversation`] finds the next step and its tool, [`wire`] has
//! one file for each wire format, [`endpoint`] maps paths to formats, [`record`] defines the log, [`server`]
//! serves HTTP. Only [`server`] does I/O.

pub mod conversation;
pub mod endpoint;
pub mod record;
mod schema;
pub mod script;
pub mod server;
pub mod wire;

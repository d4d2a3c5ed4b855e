//! A model for tests. It thinks nothing: the prompt carries a script, and each answer is the script's
//! next step, in the wire format in which it was asked.
//!
//! ```text
//! Do your work. [script][{"tool": "team/task_claim", "args": {"taskId": "1"}}, {"say": "done"}][/script]
//! ```
//!
//! Nothing is remembered between requests, because every request carries the whole conversation. A
//! session that was resumed, by whatever process, goes on where its script stood.
//!
//! In reading order: [`script`] is what a prompt can say, [`conversation`] finds the step and the tool
//! for it, [`wire`] has one file for each vendor's format, [`endpoint`] knows the paths, [`record`] is
//! what is told of a request, [`server`] does the HTTP. All but the last are pure.

pub mod conversation;
pub mod endpoint;
pub mod record;
mod schema;
pub mod script;
pub mod server;
pub mod wire;

//! Integration tests of the command line, in one binary.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test at the first unexpected result"
)]

mod absences;
mod agents;
mod approvals;
mod ask;
mod attach;
mod claude_led;
mod client;
mod clock;
mod complete;
mod demo;
mod differences;
mod doctor;
mod doctor_faults;
mod doctor_host;
mod doctor_races;
mod env;
mod errors;
mod graphs;
mod guard;
mod help;
mod history;
mod host;
mod host_faults;
mod hostile;
#[cfg(target_os = "linux")]
mod hostile_repository;
mod identity;
mod incomplete;
mod init;
mod init_files;
mod init_undo;
mod interrupted;
mod log;
mod login;
mod logs;
mod mail;
mod mcp;
mod mcp_broken;
mod mcp_forgery;
mod mcp_load;
#[cfg(feature = "nats")]
mod nats;
mod old_state;
mod overview;
mod ownership;
mod pager;
mod pipes;
mod policy;
mod process;
mod read_only;
mod review;
mod search;
mod service;
mod spawn;
mod starter;
mod status;
mod steer;
mod stopped;
mod structure;
mod stumbles;
mod task_changes;
mod task_files;
mod tasks;
mod team_file;
mod teammate;
mod teams;
mod trust;
mod use_team;
mod version;
mod wait;
mod web;

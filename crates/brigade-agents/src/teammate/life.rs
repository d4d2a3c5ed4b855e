//! Who plays a member, and one life of it: a program of its own, or a value in this process.

use std::io;

use crate::program::{Program, Start};
use crate::worker::{self, Workers};

/// Who plays a member.
#[derive(Clone, Debug)]
pub enum Player {
    /// An agent's program; the arguments are the driver's.
    Program(Start),
    /// Values in this process.
    Workers(Workers),
}

/// One life of it.
#[derive(Debug)]
pub(super) enum Life {
    Program(Box<Program>),
    Worker(worker::Life),
}

impl Life {
    /// Tells it something, sooner or later.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        match self {
            Self::Program(program) => program.write(bytes),
            Self::Worker(worker) => worker.write(bytes),
        }
    }

    /// What it told; nothing once it has ended.
    pub(super) async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Program(program) => program.read(room).await,
            Self::Worker(worker) => Ok(worker.read(room).await),
        }
    }

    /// That it ended, in words.
    pub(super) fn ended(&self) -> &'static str {
        match self {
            Self::Program(_) => "the program ended",
            Self::Worker(_) => "the worker ended",
        }
    }

    /// The last it said beside the conversation.
    pub(super) async fn last_words(&mut self) -> String {
        match self {
            Self::Program(program) => program.last_words().await,
            Self::Worker(worker) => worker.last_words(),
        }
    }

    /// Ends it, and everything it started; gives the code with which a program ended by itself.
    pub(super) async fn end(self) -> io::Result<Option<i32>> {
        match self {
            Self::Program(program) => program.end().await,
            Self::Worker(worker) => {
                worker.end().await;
                Ok(None)
            }
        }
    }
}

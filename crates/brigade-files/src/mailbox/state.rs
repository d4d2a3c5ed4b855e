//! Brigade's saved state of one mailbox: how much of the journal is in the inbox, and which
//! messages were in the inbox when brigade last read or wrote it.
//!
//! The state file begins with a head, which is written by one `pwrite` of 160 bytes. The head is a
//! write-ahead intent: it names the temporary file that is about to become the inbox. If the
//! temporary file is gone, it was renamed and the head's new values apply. While the temporary file
//! exists, the values of the previous write apply.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::dir::{Dir, FileStamp, io_error};
use crate::journal::JournalPosition;
use crate::lock_id::LockId;
use crate::temp_file::TempFile;
use brigade_core::event::MessageKey;
use brigade_core::hash::Fnv;
use brigade_core::store::StoreError;

const MAGIC: u64 = u64::from_le_bytes(*b"brigade1");
const HEAD_LEN: usize = 160;
/// Stands for "no journal offset".
const NO_OFFSET: u64 = u64::MAX;

/// The open state file of a mailbox.
#[derive(Debug)]
pub(crate) struct MailboxStateFile {
    fd: OwnedFd,
    path: PathBuf,
}

/// How much of the journal is in the inbox, and the messages known to be in the inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MergeState {
    /// The journal position up to which every `sent` record is in the inbox.
    pub(crate) upto: JournalPosition,
    /// The number of known messages.
    pub(crate) known: u64,
    /// The index of the first known message in the state file. Entries that the current head refers
    /// to are never overwritten: entries for the next head are written to another part of the file.
    pub(crate) at: u64,
}

impl MergeState {
    /// Returns a start index at which `count` new entries do not overlap the current ones.
    pub(crate) fn free_start_for(&self, count: u64) -> u64 {
        if self.at >= count { 0 } else { self.at + self.known }
    }
}

/// The risk that a program overwrites the inbox with an old copy after brigade stole its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverwriteRisk {
    /// Messages after this journal offset are at risk.
    pub(crate) from: u64,
    /// When the risk ends, in milliseconds. The program is not expected to write after that time.
    pub(crate) until: i64,
}

/// The head of the state file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MailboxHead {
    /// The state that applies while the file [`MailboxHead::temp`] exists.
    pub(crate) before: MergeState,
    /// The state that applies once the file [`MailboxHead::temp`] no longer exists.
    pub(crate) after: MergeState,
    /// The temporary file that is about to become the inbox.
    pub(crate) temp: Option<TempFile>,
    /// Whether the writer checked, after the rename, that it still held the lock.
    pub(crate) verified: bool,
    /// The inbox lock of the process that wrote this head.
    pub(crate) lock: LockId,
    /// The stamp of the inbox after the last write or comparison.
    pub(crate) inbox_stamp: FileStamp,
    /// The last message merged into the inbox. If the inbox contains that message, no merged
    /// message was overwritten.
    pub(crate) newest: Option<MessageKey>,
    /// Set after brigade stole a lock from another program.
    pub(crate) risk: Option<OverwriteRisk>,
    /// Whether a message in the inbox must survive power loss.
    pub(crate) power_safe: bool,
    /// When the last write finished, in nanoseconds.
    pub(crate) written_at: i64,
    /// Whether several processes wanted to write the inbox at the time of the last write.
    pub(crate) contended: bool,
    /// Whether the inbox held entries that are not messages.
    pub(crate) has_non_messages: bool,
}

/// A message known to have been in the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownMessage {
    pub(crate) key: MessageKey,
    pub(crate) read: bool,
}

impl MailboxStateFile {
    pub(crate) fn open(dir: &Dir, name: &str) -> Result<Self, StoreError> {
        Ok(Self { fd: dir.private_file(name, OFlags::empty())?, path: dir.path(name) })
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Tries to lock out other brigade processes until [`MailboxStateFile::unlock`] or the end of this
    /// process.
    pub(crate) fn try_lock(&self) -> Result<bool, StoreError> {
        match flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(error) => Err(io_error("lock", self.path.clone(), error)),
        }
    }

    pub(crate) fn unlock(&self) {
        let _cannot_fail = flock(&self.fd, FlockOperation::Unlock);
    }

    /// Returns the head, or `None` if it was never written or was torn by power loss.
    pub(crate) fn head(&self) -> Result<Option<MailboxHead>, StoreError> {
        let mut bytes = [0; HEAD_LEN];
        let read = rustix::io::pread(&self.fd, &mut bytes, 0);
        let read = read.map_err(|error| io_error("read", self.path.clone(), error))?;
        Ok((read == HEAD_LEN).then(|| MailboxHead::decode(&bytes)).flatten())
    }

    pub(crate) fn write_head(&self, head: &MailboxHead) -> Result<(), StoreError> {
        self.write_at(&head.encode(), 0)
    }

    /// Reads the known messages that `merged` refers to.
    pub(crate) fn known(&self, merged: MergeState) -> Result<Vec<KnownMessage>, StoreError> {
        let count = usize::try_from(merged.known).unwrap_or_default();
        let mut bytes = vec![0; count * 8];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let read =
                rustix::io::pread(&self.fd, rest, (HEAD_LEN + filled) as u64 + merged.at * 8);
            match read.map_err(|error| io_error("read", self.path.clone(), error))? {
                0 => break,
                read => filled += read,
            }
        }
        let whole = bytes.get(..filled).unwrap_or_default().as_chunks::<8>().0;
        let known = whole.iter().map(|&chunk| {
            let bits = u64::from_le_bytes(chunk);
            KnownMessage { key: MessageKey::from_bits(bits), read: bits & 1 == 1 }
        });
        Ok(known.collect())
    }

    /// Writes known messages, starting at index `at`.
    pub(crate) fn write_known(&self, at: u64, known: &[KnownMessage]) -> Result<(), StoreError> {
        let bits = known.iter().flat_map(|k| (k.key.bits() | u64::from(k.read)).to_le_bytes());
        self.write_at(&bits.collect::<Vec<u8>>(), HEAD_LEN as u64 + at * 8)
    }

    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> Result<(), StoreError> {
        let io_error = |error| io_error("write", self.path.clone(), error);
        while !bytes.is_empty() {
            let written = rustix::io::pwrite(&self.fd, bytes, offset).map_err(io_error)?;
            if written == 0 {
                return Err(io_error(Errno::NOSPC));
            }
            bytes = bytes.get(written..).unwrap_or_default();
            offset += written as u64;
        }
        Ok(())
    }
}

impl MailboxHead {
    fn encode(&self) -> [u8; HEAD_LEN] {
        let temp = self.temp.map_or(0, |t| u64::from(t.process) << 32 | u64::from(t.number));
        let risk = self.risk.unwrap_or(OverwriteRisk { from: NO_OFFSET, until: 0 });
        let flags = [self.power_safe, self.has_non_messages, self.verified, self.contended];
        let flags = flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        let numbers = [
            MAGIC,
            self.before.upto.offset,
            self.before.upto.anchor,
            self.before.known | self.before.at << 32,
            self.after.upto.offset,
            self.after.upto.anchor,
            self.after.known | self.after.at << 32,
            temp,
            self.lock.inode,
            self.lock.born.cast_unsigned(),
            self.inbox_stamp.inode,
            self.inbox_stamp.modified.cast_unsigned(),
            self.inbox_stamp.size,
            risk.from,
            self.newest.map_or(0, MessageKey::bits),
            risk.until.cast_unsigned(),
            flags,
            self.written_at.cast_unsigned(),
        ];
        let mut bytes = [0; HEAD_LEN];
        for (offset, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            offset.copy_from_slice(&number.to_le_bytes());
        }
        let (body, sum) = bytes.split_at_mut(HEAD_LEN - 8);
        sum.copy_from_slice(&Fnv::default().bytes(body).finish().to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEAD_LEN]) -> Option<Self> {
        let (body, sum) = bytes.split_at(HEAD_LEN - 8);
        if Fnv::default().bytes(body).finish().to_le_bytes() != sum {
            return None;
        }
        let mut numbers = body.as_chunks::<8>().0.iter().map(|&chunk| u64::from_le_bytes(chunk));
        let mut next = || numbers.next().unwrap_or_default();
        if next() != MAGIC {
            return None;
        }
        let mut merged = || {
            let upto = JournalPosition { offset: next(), anchor: next() };
            let known = next();
            MergeState { upto, known: u64::from(low(known)), at: u64::from(high(known)) }
        };
        let (before, after) = (merged(), merged());
        let temp = match next() {
            0 => None,
            bits => Some(TempFile { process: high(bits), number: low(bits) }),
        };
        let lock = LockId { inode: next(), born: next().cast_signed() };
        let inbox_stamp = FileStamp { inode: next(), modified: next().cast_signed(), size: next() };
        let (from, newest, until) = (next(), next(), next().cast_signed());
        let newest = Some(newest).filter(|&bits| bits != 0).map(MessageKey::from_bits);
        let risk = (from != NO_OFFSET).then_some(OverwriteRisk { from, until });
        let flags = next();
        let [power_safe, has_non_messages, verified, contended] =
            [1, 2, 4, 8].map(|flag| flags & flag != 0);
        let written_at = next().cast_signed();
        Some(Self {
            before,
            after,
            temp,
            verified,
            lock,
            inbox_stamp,
            newest,
            risk,
            power_safe,
            written_at,
            contended,
            has_non_messages,
        })
    }
}

fn high(bits: u64) -> u32 {
    u32::try_from(bits >> 32).unwrap_or_default()
}

fn low(bits: u64) -> u32 {
    u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default()
}

/// Maps the keys of known messages to whether they are read.
pub(crate) fn by_key(known: &[KnownMessage]) -> HashMap<MessageKey, bool> {
    known.iter().map(|known| (known.key, known.read)).collect()
}

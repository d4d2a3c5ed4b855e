//! Holes: ranges of zeros in a file that use no space on the disk.

use std::os::fd::AsFd;

use rustix::fs::{self, SeekFrom};
use rustix::io::Errno;

/// Replaces these bytes of a file with zeros, and gives their space back to the file system. The file keeps its length.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn punch(file: impl AsFd, from: u64, upto: u64) -> Result<(), Errno> {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fs::fallocate(file, flags, from, upto.saturating_sub(from))
}

/// Other systems have no such call that takes any range of bytes.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn punch(_: impl AsFd, _: u64, _: u64) -> Result<(), Errno> {
    Err(Errno::NOTSUP)
}

/// Returns where the hole at this offset ends, or an offset before that if the file system does not tell. Moves the offset of
/// the open file.
pub(crate) fn end(file: impl AsFd, offset: u64) -> Result<u64, Errno> {
    match fs::seek(&file, SeekFrom::Data(offset)) {
        Ok(end) => Ok(end.max(offset)),
        // The hole extends to the end of the file.
        Err(Errno::NXIO) => {
            let size = fs::fstat(&file)?.st_size;
            Ok(u64::try_from(size).unwrap_or_default().max(offset))
        }
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(offset),
        Err(error) => Err(error),
    }
}

/// Returns the bytes of a line without the zeros before it.
pub(crate) fn without_zeros(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|byte| *byte != 0).unwrap_or(line.len());
    line.get(start..).unwrap_or_default()
}

/// Returns the position of the first byte that is not zero.
pub(crate) fn first_byte(bytes: &[u8]) -> Option<u64> {
    bytes.iter().position(|byte| *byte != 0).map(|at| at as u64)
}

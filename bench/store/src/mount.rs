//! Mounts temporary file systems, to test a full disk, a read-only disk and a power cut.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system, unmounted on drop.
#[derive(Debug)]
pub(crate) struct Mount {
    at: PathBuf,
    mounted: bool,
}

impl Mount {
    /// Mounts an in-memory file system of this size.
    pub(crate) fn memory(at: &Path, size: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        must("mount", &["-t", "tmpfs", "-o", &format!("size={size},mode=755"), "none"], at);
        Self { at: at.to_owned(), mounted: true }
    }

    /// Mounts an ext4 file system that is stored in the file `image`, through a loop device.
    pub(crate) fn image(image: &Path, at: &Path) -> Self {
        std::fs::create_dir_all(at).unwrap();
        must("mount", &["-t", "ext4", "-o", "loop", image.to_str().unwrap()], at);
        Self { at: at.to_owned(), mounted: true }
    }

    /// Remounts the file system with other options.
    pub(crate) fn remount(&self, options: &str) {
        must("mount", &["-o", &format!("remount,{options}")], &self.at);
    }

    pub(crate) fn unmount(mut self) {
        must("umount", &[], &self.at);
        self.mounted = false;
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted {
            // Unmount lazily (`-l`), because files may still be open after a panic.
            let _untidy = Command::new("umount").arg("-l").arg(&self.at).status();
        }
    }
}

/// Panics unless this process runs as root, because only root may mount file systems.
pub(crate) fn need_root() {
    let root = rustix::process::geteuid().is_root();
    assert!(root, "this benchmark mounts file systems: run it as root (sudo)");
}

/// Runs a program, and panics if it fails. `last` is its last argument.
pub(crate) fn must(program: &str, args: &[&str], last: &Path) {
    let output = Command::new(program).args(args).arg(last).output();
    let output = output
        .unwrap_or_else(|error| panic!("{program}: {error}; install util-linux and e2fsprogs"));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?} {}: {stderr}", last.display());
}

//! Helpers to start real servers: finding programs, folders, ports and logs.

mod error;
mod folder;
mod tether;

pub(crate) use error::LogTail;
pub use error::StartError;
pub(crate) use folder::Folder;
pub(crate) use tether::Tethered;
#[cfg(feature = "postgres")]
pub(crate) use tether::User;

use std::{
    env,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// How long one check of a server that is not ready waits for a log line, and how many checks there
/// are: 20 s at least.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
pub(crate) const LOOKS: usize = 2_000;

/// Ports outside the ephemeral range, so that a server's port is free when it is restarted.
const PORTS: Range<u32> = 20_000..32_000;

/// The first program of this name in these folders.
pub(crate) fn find(program: &str, folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.into_iter().map(|folder| folder.join(program)).find(|program| program.is_file())
}

/// The folders that are searched for programs.
pub(crate) fn path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

pub(crate) fn free_port() -> u16 {
    loop {
        // Concurrent tests start their search at different ports.
        let offset = process::id().wrapping_mul(37).wrapping_add(next()) % PORTS.len() as u32;
        let port = (PORTS.start + offset) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

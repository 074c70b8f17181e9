//! Reads a lock file of OpenClaw's.
use serde::Deserialize;

#[derive(Deserialize)]
struct Lock {
    pid: u32,
}

/// The id of the process that holds it, if it names one.
pub(crate) fn holder(text: &[u8]) -> Option<u32> {
    serde_json::from_slice::<Lock>(text).ok().map(|lock| lock.pid)
}

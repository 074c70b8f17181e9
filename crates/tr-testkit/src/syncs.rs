//! Counts the syncs to disk of this process, and makes them slow or fail.
//!
//! # When to use
//!
//! In a test or benchmark of a store: how many syncs an operation costs, and how it behaves on a
//! slow or failing disk. The count is that of the whole process, so such a test needs its own
//! binary.
//!
//! # Example
//!
//! ```
//! use std::{fs::File, time::Duration};
//! use tr_testkit::syncs;
//!
//! # fn main() -> std::io::Result<()> {
//! # let path = std::env::temp_dir().join(format!("syncs-doc-{}", std::process::id()));
//! let file = File::create(&path)?;
//! let before = syncs::count();
//! file.sync_all()?;
//! file.sync_data()?;
//! assert_eq!(syncs::count() - before, 2);
//!
//! syncs::slow(Duration::from_millis(1)); // each sync from now on
//! syncs::fail(1); // the next one
//! assert!(file.sync_all().is_err());
//! assert!(file.sync_all().is_ok());
//! # std::fs::remove_file(&path)
//! # }
//! ```
//!
//! # How
//!
//! This module defines `fsync` and `fdatasync`. The linker takes the first definition, so all calls
//! of the program come here, also those of its C libraries, and go on to the kernel. Linux only.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

static COUNT: AtomicU64 = AtomicU64::new(0);
static DELAY_NS: AtomicU64 = AtomicU64::new(0);
static FAILING: AtomicU64 = AtomicU64::new(0);

/// How often this process has synced a file, including failed syncs.
pub fn count() -> u64 {
    COUNT.load(Relaxed)
}

/// Adds this time to each sync from now on. Zero is no delay.
pub fn slow(by: Duration) {
    DELAY_NS.store(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Relaxed);
}

/// Makes the next `syncs` fail with `EIO`, as on a broken disk, without reaching the disk.
pub fn fail(syncs: u64) {
    FAILING.store(syncs, Relaxed);
}

/// Whether this sync may proceed.
fn note() -> bool {
    COUNT.fetch_add(1, Relaxed);
    let delay = Duration::from_nanos(DELAY_NS.load(Relaxed));
    if !delay.is_zero() {
        #[expect(clippy::disallowed_methods, reason = "a slow disk takes real time")]
        thread::sleep(delay);
    }
    FAILING.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
}

fn sync(call: libc::c_long, fd: libc::c_int) -> libc::c_int {
    if note() {
        // SAFETY: the kernel checks the descriptor, and nothing is handed over but this number.
        #[allow(
            unsafe_code,
            reason = "the kernel is asked past libc, whose function this replaces"
        )]
        let end = unsafe { libc::syscall(call, fd) };
        return if end == 0 { 0 } else { -1 };
    }
    // SAFETY: it points to this thread's own `errno`.
    #[allow(unsafe_code, reason = "C's way to say what failed")]
    unsafe {
        *libc::__errno_location() = libc::EIO;
    }
    -1
}

// SAFETY: name, parameter and result are those of POSIX, and so is what it does.
#[allow(unsafe_code, reason = "takes the place of libc's function")]
#[unsafe(no_mangle)]
extern "C" fn fsync(fd: libc::c_int) -> libc::c_int {
    sync(libc::SYS_fsync, fd)
}

// SAFETY: as above.
#[allow(unsafe_code, reason = "takes the place of libc's function")]
#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: libc::c_int) -> libc::c_int {
    sync(libc::SYS_fdatasync, fd)
}

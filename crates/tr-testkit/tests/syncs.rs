//! Syncs are counted, slowed and failed. One test: all of it is the process's.
#![cfg(target_os = "linux")]

use std::{env, fs, fs::File, process, time::Duration};
use tokio::time::Instant;
use tr_testkit::syncs;

#[test]
fn syncs_are_counted_slowed_and_failed() {
    let path = env::temp_dir().join(format!("tr-testkit-syncs-{}", process::id()));
    let file = File::create(&path).unwrap();

    let before = syncs::count();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    assert_eq!(syncs::count() - before, 2);

    syncs::slow(Duration::from_millis(20));
    let begun = Instant::now();
    file.sync_data().unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    syncs::slow(Duration::ZERO);

    syncs::fail(2);
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(5), "EIO");
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(syncs::count() - before, 6, "in vain too");
    fs::remove_file(path).unwrap();
}

//! Listening on one thread while others log.
use std::thread;
use tr_testkit::logs::Logs;
use tracing_subscriber::fmt;

fn log() {
    tracing::warn!("the store is away");
}

#[test]
fn what_another_thread_logged_first_is_still_heard_here() {
    let (logs, _listening) = Logs::listen(|logs| fmt().with_writer(move || logs.clone()).finish());
    thread::spawn(log).join().unwrap();
    assert_eq!(logs.text(), "");
    log();
    assert!(logs.text().contains("the store is away"), "{}", logs.text());
}

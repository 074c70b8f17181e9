//! The ledger keeps every run, of several writers, through a kill.

use std::{
    env, fs, io,
    path::PathBuf,
    process::{self, Command, Stdio},
    thread,
};
use tr_testkit::ledger::Ledger;

/// Names the file to a child process of this test.
const FILE: &str = "TR_TESTKIT_LEDGER";

fn fresh(name: &str) -> Ledger {
    let path: PathBuf = env::temp_dir().join(format!("tr-testkit-{name}-{}", process::id()));
    let _ = fs::remove_file(&path);
    Ledger::at(path)
}

#[test]
fn it_is_empty_before_the_first_line() {
    let ledger = fresh("empty");
    assert_eq!(ledger.lines().unwrap(), [""; 0]);
    assert_eq!(ledger.count("a").unwrap(), 0);
}

#[test]
fn a_key_is_one_line() {
    let ledger = fresh("line");
    let error = ledger.append("a\nb").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(ledger.lines().unwrap(), [""; 0]);
}

#[test]
fn writers_do_not_mix() {
    let ledger = fresh("writers");
    thread::scope(|scope| {
        for key in ["aaaa", "bb", "c", "dddddddd"] {
            let ledger = &ledger;
            scope.spawn(move || (0..500).for_each(|_| ledger.append(key).unwrap()));
        }
    });
    for key in ["aaaa", "bb", "c", "dddddddd"] {
        assert_eq!(ledger.count(key).unwrap(), 500);
    }
    assert_eq!(ledger.lines().unwrap().len(), 2_000);
    fs::remove_file(ledger.path()).unwrap();
}

/// The test starts itself as the process that is killed.
#[test]
fn what_was_written_outlives_a_kill() {
    if let Some(path) = env::var_os(FILE) {
        Ledger::at(path).append("sent").unwrap();
        process::abort();
    }
    let ledger = fresh("kill");
    for _ in 0..3 {
        let killed = Command::new(env::current_exe().unwrap())
            .args(["ledger::what_was_written_outlives_a_kill", "--exact"])
            .env(FILE, ledger.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!killed.success());
    }
    assert_eq!(ledger.count("sent").unwrap(), 3);
    fs::remove_file(ledger.path()).unwrap();
}

//! Several processes on one file, and processes that are killed. The tests start themselves.
use crate::scratch::{Scratch, all, insert, numbers};
use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tr_sqlite::{Database, Error, ErrorKind};
use tr_testkit::rounds;

/// Tells the process that it is a child, and which file to work on.
const FILE: &str = "TR_SQLITE_TEST_FILE";
const FROM: &str = "TR_SQLITE_TEST_FROM";

/// How many numbers each of several processes writes.
const SHARE: u64 = 300;

fn file() -> Option<PathBuf> {
    env::var_os(FILE).map(Into::into)
}

fn child(test: &str, file: &Path, from: u64) -> Command {
    let mut child = Command::new(env::current_exe().unwrap());
    child
        .args([&format!("processes::{test}"), "--exact", "--nocapture"])
        .env(FILE, file)
        .env(FROM, from.to_string())
        .stdout(Stdio::piped());
    child
}

fn from() -> u64 {
    env::var(FROM).unwrap().parse().unwrap()
}

#[tokio::test]
async fn several_processes_share_a_file() {
    if let Some(file) = file() {
        let database = numbers(&file).await;
        // Read and write in one job: what no other process may come between.
        for n in from()..from() + SHARE {
            let add = database.write(move |connection| {
                let count: i64 =
                    connection.query_row("SELECT count(*) FROM numbers", [], |row| row.get(0))?;
                connection.execute("INSERT INTO numbers VALUES (?1)", [count])?;
                Ok::<_, Error>(n)
            });
            assert_eq!(add.await.unwrap(), n);
        }
        return;
    }
    let scratch = Scratch::new("share");
    scratch.open().await.close().await;
    let mut children = Vec::from_iter(
        (0..3)
            .map(|_| child("several_processes_share_a_file", &scratch.file(), 0).spawn().unwrap()),
    );
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(all(&scratch.open().await).await, Vec::from_iter(0..3 * SHARE));
}

/// What the child has confirmed; it is killed after `count` lines, in whatever it does then.
fn kill_after(mut child: Child, count: usize) -> Vec<u64> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut confirmed = Vec::new();
    for line in lines {
        let Some(n) = line.unwrap().strip_prefix("kept ").map(|n| n.parse().unwrap()) else {
            continue;
        };
        confirmed.push(n);
        if confirmed.len() == count {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success(), "it was killed");
    confirmed
}

#[tokio::test]
async fn what_was_confirmed_outlives_a_kill() {
    if let Some(file) = file() {
        let database = numbers(&file).await;
        let mut n = from();
        loop {
            let group = Vec::from_iter((n..n + 8).map(|n| insert(&database, n)));
            for one in group {
                one.await.unwrap();
                println!("\nkept {n}");
                n += 1;
            }
        }
    }
    let scratch = Scratch::new("kill");
    let mut rng = fastrand::Rng::with_seed(9);
    let mut from = 0;
    for _ in 0..rounds(10, 500) {
        let child = child("what_was_confirmed_outlives_a_kill", &scratch.file(), from);
        let confirmed = kill_after({ child }.spawn().unwrap(), rng.usize(1..200));
        let database = scratch.open().await;
        let found = all(&database).await;
        assert_eq!(found, Vec::from_iter(0..found.len() as u64), "in order, and no holes");
        assert!(found.len() as u64 > confirmed[confirmed.len() - 1], "lost what was confirmed");
        from = found.len() as u64;
        if rng.bool() {
            database.close().await;
        }
    }
}

#[tokio::test]
async fn a_process_may_go_elsewhere() {
    if let Some(file) = file() {
        env::set_current_dir(file.parent().unwrap()).unwrap();
        let database = numbers(Path::new("numbers.db")).await;
        env::set_current_dir("/").unwrap();
        insert(&database, 1).await.unwrap();
        assert_eq!(all(&database).await, [1]);
        assert_eq!(database.path(), file);
        return;
    }
    let scratch = Scratch::new("elsewhere");
    let mut child = child("a_process_may_go_elsewhere", &scratch.file(), 0);
    assert!(child.status().unwrap().success());
    assert_eq!(all(&scratch.open().await).await, [1]);
}

/// Root may write everywhere, so a child without its rights tries.
#[cfg(unix)]
#[tokio::test]
async fn a_file_of_somebody_else_is_refused() {
    use std::os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    };
    if let Some(file) = file() {
        let error = Database::open(&file).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Denied);
        assert!(
            error.to_string().contains("allow this user to write the file and its folder"),
            "{error}"
        );
        return;
    }
    let scratch = Scratch::new("denied");
    scratch.open().await.close().await;
    // The folder may not be written, so no file can be made beside the database.
    let program = scratch.folder().join("child");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let is_root = fs::metadata(scratch.file()).unwrap().uid() == 0;
    for (mode, file) in [(0o444, "numbers.db"), (0o666, "numbers.db"), (0o666, "new.db")] {
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&scratch.file(), mode);
        set(scratch.folder(), 0o555);
        let mut child = Command::new(&program);
        child
            .args(["processes::a_file_of_somebody_else_is_refused", "--exact"])
            .env(FILE, scratch.folder().join(file))
            .stdout(Stdio::piped());
        if is_root {
            child.uid(65_534);
        }
        let output = child.output().unwrap();
        set(scratch.folder(), 0o755);
        let text = OsString::from(String::from_utf8_lossy(&output.stdout).into_owned());
        assert!(output.status.success(), "{mode:o} {file}: {}", text.display());
    }
}

//! Real logs, damaged in every way.
use super::*;
use rusqlite::Connection;
use std::{env, fs, path::PathBuf, process};

/// A database with a log, until it is dropped.
struct Log {
    folder: PathBuf,
    connection: Connection,
}

impl Log {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("tr-sqlite-log-{name}-{}", process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).unwrap();
        let connection = Connection::open(folder.join("a.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
                 CREATE TABLE n (n)",
            )
            .unwrap();
        Self { folder, connection }
    }

    /// Commits so many times, in one frame or in several.
    fn commit(&self, times: u32) {
        for n in 0..times {
            self.connection.execute("INSERT INTO n VALUES (zeroblob(?1))", [n * 300]).unwrap();
        }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.folder.join("a.db-wal")).unwrap()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

const SLOT: usize = FRAME + 512;

/// Where a frame begins.
const fn begin(frame: usize) -> usize {
    HEADER + frame * SLOT
}

/// The number of the commit that each frame belongs to.
fn commits_of(log: &[u8]) -> Vec<usize> {
    let mut commit = 0;
    let frames = log[HEADER..].chunks_exact(SLOT).map(Frame);
    let number = |frame: Frame<'_>| {
        let number = commit;
        commit += usize::from(frame.commits());
        number
    };
    frames.map(number).collect()
}

fn whole(commits: usize) -> Finding {
    Finding { commits, damage: None }
}

#[test]
fn damage_of_any_frame_is_told_from_an_unfinished_commit() {
    let log = Log::new("damage");
    log.commit(6);
    let bytes = log.bytes();
    let of = commits_of(&bytes);
    let last = of[of.len() - 1];
    assert_eq!(judge(&bytes), whole(last + 1));
    assert!(of.len() > last + 1, "some commits have several frames");
    for (frame, commit) in of.iter().copied().enumerate() {
        // The page's number, the salts, the checksum, the page.
        for at in [3, 9, 17, FRAME, FRAME + 511] {
            let mut damaged = bytes.clone();
            damaged[begin(frame) + at] ^= 0x5a;
            let found = judge(&damaged);
            assert_eq!(found.commits, commit, "frame {frame}, byte {at}");
            let number = found.damage.map(|damage| damage.frame);
            // Of the last commit but one only the checksum, or the salts, may hide that the last follows.
            if commit + 2 <= last || commit < last && at >= FRAME {
                assert_eq!(number, Some(frame + 1), "frame {frame}, byte {at}");
            } else if commit == last {
                assert_eq!(number, None, "frame {frame}, byte {at}: a crash leaves this");
            }
        }
    }
}

#[test]
fn damage_of_the_header_is_found() {
    for commits in [0, 3] {
        let log = Log::new(&format!("header-{commits}"));
        log.commit(commits);
        let bytes = log.bytes();
        for at in 0..HEADER {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x5a;
            let found = judge(&damaged);
            assert_eq!(found.commits, 0);
            // A single commit is not told from a header that was not written as a whole by its own checksum.
            if commits > 0 || at < 16 {
                assert_eq!(found.damage.map(|damage| damage.frame), Some(0), "byte {at}");
            }
        }
    }
}

#[test]
fn a_log_of_any_length_is_read_as_far_as_it_goes() {
    let log = Log::new("length");
    log.commit(6);
    let bytes = log.bytes();
    let of = commits_of(&bytes);
    let ends = (0..=of.len()).map(begin);
    let lengths =
        ends.flat_map(|end| [-1, 0, 1, 23, 24, 25, 100].map(|by| end.checked_add_signed(by)));
    for length in lengths.chain((0..HEADER).map(Some)).flatten().filter(|at| *at <= bytes.len()) {
        let frames = length.saturating_sub(HEADER) / SLOT;
        let commits = bytes[HEADER.min(length)..length].chunks_exact(SLOT).take(frames);
        let commits = commits.filter(|frame| Frame(frame).commits()).count();
        assert_eq!(judge(&bytes[..length]), whole(commits), "{length} bytes");
    }
    assert!(!has_frame(begin(0) as u64) && has_frame(begin(1) as u64));
}

/// A power failure: of the last commit any sectors are on the disk.
#[test]
fn an_unfinished_commit_is_no_damage() {
    let log = Log::new("torn");
    log.commit(6);
    let bytes = log.bytes();
    let of = commits_of(&bytes);
    let begun = begin(of.iter().position(|commit| *commit == of[of.len() - 1]).unwrap());
    assert!(bytes.len() - begun > SLOT);
    let mut rng = fastrand::Rng::with_seed(5);
    for _ in 0..2_000 {
        let mut torn = bytes.clone();
        for sector in torn[begun..].chunks_mut(SLOT / 4) {
            if rng.bool() {
                sector.fill(0);
            }
        }
        assert_eq!(judge(&torn).damage, None);
    }
}

#[test]
fn frames_of_an_older_log_are_no_damage() {
    let log = Log::new("older");
    log.commit(9);
    let of_before = log.bytes().len();
    for commits in 1..6 {
        let busy = "PRAGMA wal_checkpoint(RESTART)";
        log.connection.query_row(busy, [], |row| row.get::<_, i64>(0)).unwrap();
        log.commit(commits);
        let bytes = log.bytes();
        assert_eq!(judge(&bytes), whole(commits as usize));
        assert_eq!(bytes.len(), of_before, "and they are there");
    }
}

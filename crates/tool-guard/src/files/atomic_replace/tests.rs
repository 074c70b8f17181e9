//! Crashes, writers and attackers at each step of a replacement.
use super::*;
use crate::files::UNFINISHED;
use std::{
    mem,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};
use tempfile::{TempDir, tempdir};

const OLD: &[u8] = b"the old file";
const NEW: &[u8] = b"the new one";

fn folder() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    fs::write(&file, OLD).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    (folder, file)
}

fn contents(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let named = files.map(|file| {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let name = if name.starts_with(UNFINISHED) { UNFINISHED.to_owned() } else { name };
        (name, fs::read(&file).unwrap())
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

#[test]
fn a_crash_after_any_step_leaves_the_old_file_or_the_new_one_whole() {
    let own = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_owned());
    let (old, backup) = (own("s.jsonl", OLD), own("s.jsonl.bak-1", OLD));
    let unfinished = |bytes| own(UNFINISHED, bytes);

    // In the middle of writing, and at its end: forgetting is what a crash does to a value.
    let (folder, file) = folder();
    let source = File::open(&file).unwrap();
    let mut half = tempfile::Builder::new();
    let mut half = half.prefix(UNFINISHED).tempfile_in(folder.path()).unwrap();
    half.write_all(&NEW[..3]).unwrap();
    mem::forget(half);
    assert_eq!(contents(&folder), [unfinished(&NEW[..3]), old.clone()]);
    mem::forget(Staged::new(&source, NEW).unwrap());
    assert_eq!(contents(&folder), [unfinished(&NEW[..3]), unfinished(NEW), old.clone()]);

    let (folder, file) = self::folder();
    let source = File::open(&file).unwrap();
    let stamp = source.stamp().unwrap();
    let staged = Staged::new(&source, NEW).unwrap();
    mem::forget(staged.back_up(stamp, ".bak-1").unwrap());
    assert_eq!(contents(&folder), [unfinished(NEW), old, backup.clone()]);

    let (folder, file) = self::folder();
    let source = File::open(&file).unwrap();
    let stamp = source.stamp().unwrap();
    replace(&source, stamp, ".bak-1", NEW).unwrap();
    assert_eq!(contents(&folder), [own("s.jsonl", NEW), backup]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn what_changed_meanwhile_is_left_alone() {
    type Change = fn(&Path);
    let changes: [Change; 3] = [
        |file| fs::write(file, [OLD, b"and a line"].concat()).unwrap(),
        // As long, and as old as before.
        |file| {
            let found = fs::metadata(file).unwrap();
            fs::write(file, b"THE OLD FILE").unwrap();
            let file = fs::File::options().write(true).open(file).unwrap();
            file.set_modified(found.modified().unwrap()).unwrap();
        },
        |file| {
            fs::rename(file, file.with_extension("moved")).unwrap();
            fs::write(file, OLD).unwrap();
        },
    ];
    for change in changes {
        let (folder, file) = folder();
        let source = File::open(&file).unwrap();
        let stamp = source.stamp().unwrap();
        change(&file);
        let theirs = contents(&folder);
        let cli_error = replace(&source, stamp, ".bak-1", NEW).unwrap_err();
        assert!(cli_error.what.starts_with("was changed by another program"), "{cli_error}");
        assert_eq!(contents(&folder), theirs);
    }
}

fn backed_up<'s>(source: &'s File) -> BackedUp<'s> {
    let stamp = source.stamp().unwrap();
    Staged::new(source, NEW).unwrap().back_up(stamp, ".bak-1").unwrap()
}

#[test]
fn what_is_appended_in_the_moment_of_the_exchange_stays_in_the_file() {
    let (folder, file) = folder();
    let source = File::open(&file).unwrap();
    let backed_up = backed_up(&source);
    let mut writer = fs::File::options().append(true).open(&file).unwrap();
    writer.write_all(b"late").unwrap();
    let cli_error = backed_up.exchange().unwrap_err();
    assert!(cli_error.what.starts_with("was changed by another program"), "{cli_error}");
    assert_eq!(contents(&folder), [("s.jsonl".to_owned(), [OLD, b"late"].concat())]);
}

#[test]
fn what_is_appended_to_the_new_file_goes_back_with_the_old_one() {
    for (late, is_line) in [("a line\n", true), ("half a li", false)] {
        let (folder, file) = folder();
        let source = File::open(&file).unwrap();
        let backed_up = backed_up(&source);
        let new = &backed_up.staged.new;
        assert!(new.exchange(&source.name).unwrap(), "a file system that exchanges names");
        fs::File::options().append(true).open(&file).unwrap().write_all(late.as_bytes()).unwrap();
        let replaced = folder.path().join(&new.name);
        let cli_error = backed_up.go_back(&replaced);
        let own = |name: &str, bytes: &[&[u8]]| (name.to_owned(), bytes.concat());
        if is_line {
            assert_eq!(contents(&folder), [own("s.jsonl", &[OLD, late.as_bytes()])]);
        } else {
            assert!(cli_error.help.ends_with("s.jsonl.bak-1"), "{}", cli_error.help);
            let kept = own("s.jsonl.bak-1", &[NEW, late.as_bytes()]);
            assert_eq!(contents(&folder), [own("s.jsonl", &[OLD]), kept]);
        }
    }
}

#[test]
fn a_file_that_took_the_place_of_the_old_one_stays() {
    let (folder, file) = folder();
    let source = File::open(&file).unwrap();
    let backed_up = backed_up(&source);
    let theirs = file.with_extension("theirs");
    fs::write(&theirs, b"theirs").unwrap();
    fs::rename(&theirs, &file).unwrap();
    backed_up.exchange().unwrap_err();
    assert_eq!(fs::read(&file).unwrap(), b"theirs");
    assert!(!contents(&folder).iter().any(|(_, bytes)| bytes == NEW));
}

#[test]
fn an_earlier_backup_stays() {
    let (folder, file) = folder();
    for number in 0..3 {
        let source = File::open(&file).unwrap();
        let stamp = source.stamp().unwrap();
        replace(&source, stamp, ".bak-1", number.to_string().as_bytes()).unwrap();
    }
    let names: Vec<_> = contents(&folder).into_iter().collect();
    let own = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_owned());
    assert_eq!(
        names,
        [
            own("s.jsonl", b"2"),
            own("s.jsonl.bak-1", OLD),
            own("s.jsonl.bak-1-2", b"0"),
            own("s.jsonl.bak-1-3", b"1"),
        ]
    );
}

#[test]
fn a_file_of_its_own_takes_no_name_that_is_taken() {
    let (folder, file) = folder();
    for (number, name) in [(1, "s.jsonl.a.bak-1"), (2, "s.jsonl.a.bak-1-2")] {
        let kept = keep_bytes(&file, ".a", ".bak-1", &[b'0' + number]).unwrap();
        assert_eq!(kept, folder.path().join(name));
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o640);
    }
    assert_eq!(
        contents(&folder)[1..],
        [
            ("s.jsonl.a.bak-1".to_owned(), b"1".to_vec()),
            ("s.jsonl.a.bak-1-2".to_owned(), b"2".to_vec()),
        ]
    );
}

#[test]
fn without_links_the_backup_is_a_copy() {
    let (folder, file) = folder();
    let source = File::open(&file).unwrap();
    assert_eq!(copy(&source, ".bak-1").unwrap(), "s.jsonl.bak-1");
    assert_eq!(copy(&source, ".bak-1").unwrap(), "s.jsonl.bak-1-2", "the first stays");
    let left = contents(&folder);
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|(_, bytes)| bytes == OLD));
    let copied = fs::metadata(folder.path().join("s.jsonl.bak-1")).unwrap();
    assert_eq!(copied.mode() & 0o777, 0o640);
    assert_ne!(copied.ino(), fs::metadata(&file).unwrap().ino());
}

/// Runs `work` while another thread puts links to a file elsewhere in the place of each file
/// that is not in its place yet; what that file is in the end.
fn attacked(folder: &TempDir, work: impl FnOnce()) -> (Vec<u8>, u32) {
    let elsewhere = tempdir().unwrap();
    let victim = elsewhere.path().join("victim");
    fs::write(&victim, b"secret").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        let attack = || {
            while !stop.load(Ordering::Relaxed) {
                let names = fs::read_dir(folder.path()).unwrap().flatten();
                for name in names.filter(|it| {
                    it.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
                }) {
                    if fs::remove_file(name.path()).is_ok() {
                        let _ = symlink(&victim, name.path());
                    }
                }
            }
        };
        let attacker = threads.spawn(attack);
        work();
        stop.store(true, Ordering::Relaxed);
        attacker.join().unwrap();
    });
    (fs::read(&victim).unwrap(), fs::metadata(&victim).unwrap().mode() & 0o777)
}

#[test]
fn what_is_copied_goes_to_no_file_that_is_put_in_its_place() {
    let (folder, file) = folder();
    let source = File::open(&file).unwrap();
    let (mut whole, mut refused) = (0, 0);
    let victim = attacked(&folder, || {
        for try_number in 0..500 {
            match copy(&source, &format!(".bak-{try_number}")) {
                Ok(name) => {
                    let name = folder.path().join(name);
                    assert_eq!(fs::read(&name).unwrap(), OLD);
                    assert!(fs::symlink_metadata(&name).unwrap().is_file());
                    whole += 1;
                }
                Err(error) => {
                    let name = folder.path().join(format!("s.jsonl.bak-{try_number}"));
                    assert!(fs::symlink_metadata(name).is_err(), "{error}");
                    refused += 1;
                }
            }
        }
    });
    assert_eq!(victim, (b"secret".to_vec(), 0o600));
    assert!(refused > 0, "the attack came too late {whole} times");
}

#[test]
fn what_is_exchanged_goes_to_no_file_that_is_put_in_its_place() {
    let (folder, file) = folder();
    let mut refused = 0;
    let victim = attacked(&folder, || {
        for _ in 0..200 {
            let _ = fs::remove_file(&file);
            fs::write(&file, OLD).unwrap();
            let source = File::open(&file).unwrap();
            let stamp = source.stamp().unwrap();
            match replace(&source, stamp, ".bak-1", NEW) {
                Ok(_) => assert_eq!(fs::read(&file).unwrap(), NEW),
                Err(_) => refused += 1,
            }
            for name in fs::read_dir(folder.path()).unwrap().flatten() {
                let _ = fs::remove_file(name.path());
            }
        }
    });
    assert_eq!(victim, (b"secret".to_vec(), 0o600));
    assert!(refused > 0, "the attack came too late each time");
}

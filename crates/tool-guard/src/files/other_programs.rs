//! Detects other programs that may write a file, and lock files next to it.
use super::{
    error::CliError,
    folder::{Folder, beside, open_regular},
};
use rustix::{
    fs::OFlags,
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde_json::Value;
use std::{
    env, fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{self, Path, PathBuf},
    process,
};

/// The access mode in the flags of an open file, and its value for read-only access.
const ACCESS: u32 = 0o3;
const READ_ONLY: u32 = 0;

/// A longer file is no lock file.
const LONGEST: u64 = 64 << 10;

/// Refuses a file that another program has open for writing, or has locked in OpenClaw's way, and a session of a running
/// Claude Code. `file` is the path with all links resolved.
///
/// Cannot detect open files of other users' programs, nor any on systems without `/proc`.
pub(crate) fn refuse_writers(given: &Path, file: &Path) -> Result<(), CliError> {
    refuse(Path::new("/proc"), given, file)
}

/// A program that has the file open for writing, if one is found.
pub(crate) fn writer_of(file: &Path) -> Option<String> {
    let proc = Path::new("/proc");
    open_for_writing(proc, file).map(|pid| name(proc, pid))
}

fn refuse(proc: &Path, given: &Path, file: &Path) -> Result<(), CliError> {
    let what = if let Some(pid) = locked_by(proc, file) {
        format!("is locked by {}; the file is as it was", name(proc, pid))
    } else if let Some(pid) = open_for_writing(proc, file) {
        format!("{} has it open for writing; the file is as it was", name(proc, pid))
    } else if let Some(pid) = claude_code(proc, given, file) {
        format!("{} has this session open; the file is as it was", name(proc, pid))
    } else {
        return Ok(());
    };
    Err(CliError::new(what, "stop the agent first, and start it again afterwards"))
}

/// The first program of this name in the PATH.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|it| is_program(it))
}

pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// The running process that `FILE.lock` names, as OpenClaw writes it.
fn locked_by(proc: &Path, file: &Path) -> Option<u32> {
    let (folder, name) = Folder::of(&beside(file, ".lock")).ok()?;
    let open = folder.open_file(&name, OFlags::RDONLY).ok()?;
    let pid = pid_in(&read(open)?)?;
    (pid != process::id() && proc.join(pid.to_string()).exists()).then_some(pid)
}

fn read(open: fs::File) -> Option<Value> {
    let mut text = Vec::new();
    open.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn pid_in(said: &Value) -> Option<u32> {
    said["pid"].as_u64()?.try_into().ok()
}

/// The running Claude Code with this session: it opens the file only to append to it, and describes its process as
/// `sessions/PID.json` beside its folder `projects`.
fn claude_code(proc: &Path, given: &Path, file: &Path) -> Option<u32> {
    let given = path::absolute(given).ok()?;
    let projects = given.ancestors().chain(file.ancestors()).filter(|it| it.ends_with("projects"));
    let listed = projects.flat_map(|it| fs::read_dir(it.with_file_name("sessions")));
    // The files of its subagents are in a folder with its id.
    let file = file.with_extension("");
    let has = |id: &str| file.iter().any(|part| *part == *id);
    let told = listed.flatten().flatten().filter_map(|it| read(open_regular(&it.path()).ok()?));
    let mut told = told.filter(|it| it["sessionId"].as_str().is_some_and(has));
    // When the process started, as `/proc` says it; of another form, it is not compared.
    let is_running = |it: &Value, pid| is_running(proc, pid, it["procStart"].as_str());
    told.find_map(|it| pid_in(&it).filter(|pid| is_running(&it, *pid)))
}

/// Whether a process still runs: a killed one leaves its file, and another process may have its number.
fn is_running(proc: &Path, pid: u32, started: Option<&str>) -> bool {
    if !proc.join(process::id().to_string()).exists() {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        return pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH));
    }
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat"));
    // What follows the program's name: its state first, and as the 20th its start.
    let stat = stat.unwrap_or_default();
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_whitespace();
    let is_dead = fields.next() == Some("Z");
    let start = fields.nth(18);
    !is_dead && started.is_none_or(|it| start == Some(it))
}

fn open_for_writing(proc: &Path, file: &Path) -> Option<u32> {
    let processes = fs::read_dir(proc).ok()?.flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    let mut others = pids.filter(|pid| *pid != process::id());
    others.find(|pid| {
        let of = proc.join(pid.to_string());
        // Only reads the link: opening the file behind it could block on an unreachable network
        // share.
        let open = fs::read_dir(of.join("fd")).into_iter().flatten().flatten();
        let mut here = open.filter(|open| fs::read_link(open.path()).is_ok_and(|to| to == file));
        here.any(|open| {
            let info = fs::read_to_string(of.join("fdinfo").join(open.file_name()));
            info.is_ok_and(|info| can_write(&info))
        })
    })
}

/// Whether the description of an open file permits writing.
fn can_write(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & ACCESS != READ_ONLY)
}

/// The name of a process, with its number.
fn name(proc: &Path, pid: u32) -> String {
    let name = fs::read_to_string(proc.join(pid.to_string()).join("comm"));
    format!("{} (process {pid})", name.as_deref().map_or("a program", str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A process table of one process that has `file` open with `flags`.
    fn table(file: &Path, flags: &str) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        let of = proc.path().join("71");
        fs::create_dir_all(of.join("fd")).unwrap();
        fs::create_dir_all(of.join("fdinfo")).unwrap();
        symlink(file, of.join("fd/3")).unwrap();
        fs::write(of.join("fdinfo/3"), format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n")).unwrap();
        fs::write(of.join("comm"), "node\n").unwrap();
        proc
    }

    #[test]
    fn who_can_write_the_file_is_named() {
        let file = Path::new("/home/me/a session.jsonl");
        let cli_error = refuse(table(file, "0102001").path(), file, file).unwrap_err();
        assert_eq!(
            cli_error.what,
            "node (process 71) has it open for writing; the file is as it was"
        );
        assert_eq!(refuse(table(file, "0100000").path(), file, file), Ok(()));
        assert_eq!(refuse(table(Path::new("/other"), "0102001").path(), file, file), Ok(()));
        assert_eq!(refuse(Path::new("/there/is/no/proc"), file, file), Ok(()));
    }

    #[test]
    fn a_lock_of_a_living_process_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.jsonl");
        let proc = table(Path::new("/other"), "0");
        fs::write(beside(&file, ".lock"), r#"{"pid":71,"createdAt":"2026-01-01T00:00:00Z"}"#)
            .unwrap();
        let cli_error = refuse(proc.path(), &file, &file).unwrap_err();
        assert_eq!(cli_error.what, "is locked by node (process 71); the file is as it was");
        fs::write(beside(&file, ".lock"), r#"{"pid":72}"#).unwrap();
        assert_eq!(refuse(proc.path(), &file, &file), Ok(()));
        fs::write(beside(&file, ".lock"), "").unwrap();
        assert_eq!(refuse(proc.path(), &file, &file), Ok(()));
    }

    #[test]
    fn a_running_claude_code_is_told_from_one_that_was_killed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("projects/p/7f.jsonl");
        fs::create_dir(home.path().join("sessions")).unwrap();
        let found = |proc: &Path, pid: u32, start: &str| {
            let told = serde_json::json!({"pid": pid, "sessionId": "7f", "procStart": start});
            fs::write(home.path().join("sessions/1.json"), told.to_string()).unwrap();
            claude_code(proc, &file, &file)
        };
        let proc = table(Path::new("/other"), "0");
        fs::create_dir(proc.path().join(process::id().to_string())).unwrap();
        let stat = |state: &str| {
            let stat = format!("71 (a) b) {state}{} 5057752 9 9", " 0".repeat(18));
            fs::write(proc.path().join("71/stat"), stat).unwrap();
        };
        stat("S");
        assert_eq!(found(proc.path(), 71, "5057752"), Some(71));
        assert_eq!(found(proc.path(), 71, "9"), None, "another process has its number");
        assert_eq!(found(proc.path(), 72, "5057752"), None);
        stat("Z");
        assert_eq!(found(proc.path(), 71, "5057752"), None, "a zombie");

        let mut killed = process::Command::new("true").spawn().unwrap();
        killed.wait().unwrap();
        let (without, parent) =
            (Path::new("/there/is/no/proc"), std::os::unix::process::parent_id());
        assert_eq!(found(without, parent, "any"), Some(parent));
        assert_eq!(found(without, killed.id(), "any"), None);
    }
}

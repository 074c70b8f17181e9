//! Names the process that keeps a file locked, where the system tells (`/proc/locks` of Linux).
use std::path::Path;

/// The program that holds a write lock on the database or on the table of locks beside it.
#[cfg(target_os = "linux")]
pub(crate) fn holder(path: &Path) -> Option<String> {
    use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

    let inode = |path: &Path| Some(path.metadata().ok()?.ino());
    // Opening the files instead, and closing them, would release the locks of this process.
    let mut table = path.as_os_str().to_owned();
    table.push("-shm");
    let files = [inode(&PathBuf::from(table)), inode(path)];
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| of_line(line, &files))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    Some(format!("{} (process {pid})", name.as_deref().map_or("a program", str::trim)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn holder(_: &Path) -> Option<String> {
    None
}

/// The process that a line names, if it holds a write lock on one of these files.
#[cfg(target_os = "linux")]
fn of_line(line: &str, files: &[Option<u64>]) -> Option<u32> {
    // 1: POSIX  ADVISORY  WRITE 4711 fd:00:131 120 120
    let mut words = line.split_whitespace().skip_while(|word| *word != "WRITE").skip(1);
    let pid = words.next()?.parse().ok().filter(|pid| *pid != std::process::id())?;
    let inode = words.next()?.rsplit(':').next()?.parse().ok();
    (inode.is_some() && files.contains(&inode)).then_some(pid)
}

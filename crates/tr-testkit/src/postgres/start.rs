//! Starts a server: finds the programs, creates a folder, and waits until it accepts connections.

use super::{Options, Server};
use crate::launch::{
    Folder, LOOK, LOOKS, LastWords, StartError, Tethered, User, find, free_port, path,
};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError},
};

const PROGRAM: &str = "postgres";
const MAKER: &str = "initdb";

/// Debian's folder, with a subfolder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The log line of a server that accepts connections.
const READY: &str = "database system is ready to accept connections";

/// Log texts while processes of a killed predecessor are still ending.
const NOT_YET: [&str; 2] = ["is still in use", "Is another postmaster"];

/// PostgreSQL's programs, and the user that runs them.
#[derive(Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    user: Option<User>,
}

impl Programs {
    fn find() -> Result<Self, StartError> {
        let missing = || StartError::no_program(PROGRAM, "postgresql");
        let mut folders = path();
        let mut versions: Vec<_> = fs::read_dir(DEBIAN).into_iter().flatten().flatten().collect();
        versions.sort_by_key(|version| {
            version.file_name().to_str().and_then(|v| v.parse::<u32>().ok())
        });
        folders.extend(versions.into_iter().rev().map(|version| version.path().join("bin")));
        // Both of one version: `initdb` is beside the server itself.
        let program = find(MAKER, folders).ok_or_else(missing)?;
        let program = program.canonicalize().map_err(|error| StartError::of(MAKER, &error))?;
        let folder = program.parent().ok_or_else(missing)?.to_owned();
        Ok(Self { folder, user: user() })
    }

    fn start(
        &self,
        program: &str,
        args: &[String],
    ) -> Result<(Tethered, Receiver<String>), StartError> {
        Tethered::start(self.folder.join(program).as_os_str(), args, self.user)
            .map_err(|error| StartError::of(program, &error))
    }
}

/// The user that runs PostgreSQL instead of root.
fn user() -> Option<User> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let users = fs::read_to_string("/etc/passwd").ok().filter(|_| is_root)?;
    ["postgres", "nobody"].into_iter().find_map(|name| {
        let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let found = fields.into_iter().find(|fields| fields[0] == name)?;
        Some(User { user: found.get(2)?.parse().ok()?, group: found.get(3)?.parse().ok()? })
    })
}

/// A server with its own folder.
pub(super) fn new(options: Options) -> Result<Server, StartError> {
    let programs = Programs::find()?;
    let folder = Folder::new(PROGRAM)?;
    if let Some(User { user, group }) = programs.user {
        let given = chown(folder.path(), Some(user), Some(group));
        given.map_err(|error| StartError::folder(folder.path(), &error))?;
    }
    fill(&programs, folder.path())?;
    #[cfg(feature = "tls")]
    if let Some(issued) = &options.tls {
        give(issued, folder.path(), programs.user)
            .map_err(|error| StartError::folder(folder.path(), &error))?;
    }
    loop {
        let port = free_port();
        match run(&programs, folder.path(), &options.parameters, port) {
            Ok(process) => {
                return Ok(Server { programs, folder, options, port, process: Some(process) });
            }
            // Another process took the port meanwhile.
            Err(error) if error.says("Address already in use") => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes a certificate beside the data, owned by the same user.
#[cfg(feature = "tls")]
fn give(issued: &crate::tls::Issued, folder: &Path, user: Option<User>) -> std::io::Result<()> {
    for file in issued.write(folder)? {
        if let Some(User { user, group }) = user {
            chown(file, Some(user), Some(group))?;
        }
    }
    Ok(())
}

fn fill(programs: &Programs, folder: &Path) -> Result<(), StartError> {
    let folder = folder.to_string_lossy();
    let args = ["--pgdata", &folder, "--no-sync", "--auth", "trust", "--username", "postgres"];
    let set = ["--encoding", "UTF8", "--locale", "C"];
    let args: Vec<String> = args.into_iter().chain(set).map(Into::into).collect();
    let (_process, lines) = programs.start(MAKER, &args)?;
    let mut log = LastWords::default();
    lines.into_iter().for_each(|line| log.push(line));
    // Its last lines say how to start the server; without this file the folder is not a server's.
    if Path::new(&*folder).join("PG_VERSION").is_file() && log.says("Success") {
        return Ok(());
    }
    Err(StartError::log("initdb failed", log))
}

/// Starts a server in its folder.
pub(super) fn run(
    programs: &Programs,
    folder: &Path,
    parameters: &[(String, String)],
    port: u16,
) -> Result<Tethered, StartError> {
    let args = args(folder, parameters, port);
    let mut tries = 0..LOOKS;
    loop {
        let (process, lines) = programs.start(PROGRAM, &args)?;
        match wait(&lines) {
            Ok(()) => return Ok(process),
            Err(error)
                if NOT_YET.iter().any(|words| error.says(words)) && tries.next().is_some() =>
            {
                // Starts it again; the loop then reads its log again.
            }
            Err(error) => return Err(error),
        }
    }
}

fn args(folder: &Path, parameters: &[(String, String)], port: u16) -> Vec<String> {
    let (folder, port) = (folder.to_string_lossy(), port.to_string());
    let own = [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port),
        ("unix_socket_directories", &folder),
        ("fsync", "off"),
        ("shared_buffers", "16MB"),
        ("log_destination", "stderr"),
        ("logging_collector", "off"),
        ("lc_messages", "C"),
    ];
    let all = parameters.iter().map(|(name, value)| (&**name, &**value));
    let all = own
        .into_iter()
        .chain(all)
        .flat_map(|(name, value)| ["-c".into(), format!("{name}={value}")]);
    ["-D".into(), folder.clone().into_owned()].into_iter().chain(all).collect()
}

/// Waits until it accepts connections.
fn wait(lines: &Receiver<String>) -> Result<(), StartError> {
    let mut log = LastWords::default();
    for _ in 0..LOOKS {
        match lines.recv_timeout(LOOK) {
            Ok(line) if line.contains(READY) => return Ok(()),
            Ok(line) => log.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(StartError::log("postgres ended", log));
            }
        }
    }
    Err(StartError::log("postgres does not get ready", log))
}

//! Starts the process of a server: its options, programs and folder, and the wait until it is ready.

use crate::launch::{self, LOOKS, LogTail, StartError, Tethered, User, find, wait};
#[cfg(feature = "tls")]
use crate::tls::Issued;
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    sync::mpsc::Receiver,
};
use tempfile::TempDir;
use tr_core::setters;

/// The options of a server. By default, commits survive a kill of the process, not of the machine.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    /// Parameters of `postgresql.conf`, each with its value.
    pub(super) parameters: Vec<(String, String)>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Issued>,
}

impl Options {
    setters! {
        /// Sets a parameter of `postgresql.conf`, for example `("max_connections", "5")`.
        ///
        /// `fsync` is off by default: a kill of the process loses no commits, and tests are fast.
        fn set(parameter: &str, value: &str) { parameters.push((parameter.to_owned(), value.to_owned())) }
    }

    /// Offers TLS with this certificate; connections without TLS work, too.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, issued: Issued) -> Self {
        self.tls = Some(issued);
        let files = [
            ("ssl_cert_file", "tls.crt"),
            ("ssl_key_file", "tls.key"),
            ("ssl_ca_file", "tls-authority.crt"),
        ];
        // Beside its data.
        files.into_iter().fold(self.set("ssl", "on"), |this, (name, file)| this.set(name, file))
    }
}

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
    pub(super) fn find() -> Result<Self, StartError> {
        let missing = || StartError::no_program(PROGRAM, "postgresql");
        let mut versions: Vec<_> = fs::read_dir(DEBIAN).into_iter().flatten().flatten().collect();
        versions.sort_by_key(|version| {
            version.file_name().to_str().and_then(|v| v.parse::<u32>().ok())
        });
        let folders = versions.into_iter().rev().map(|version| version.path().join("bin"));
        // Both of one version: `initdb` is beside the server itself.
        let program = find(MAKER, folders).ok_or_else(missing)?;
        let program =
            program.canonicalize().map_err(|error| StartError::of(MAKER.as_ref(), &error))?;
        let folder = program.parent().ok_or_else(missing)?.to_owned();
        Ok(Self { folder, user: user() })
    }

    fn start(
        &self,
        program: &str,
        args: &[String],
    ) -> Result<(Tethered, Receiver<String>), StartError> {
        Tethered::start(&self.folder.join(program), args, self.user)
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

/// The folder of a new server, filled.
pub(super) fn folder(programs: &Programs) -> Result<TempDir, StartError> {
    let folder = launch::folder(PROGRAM)?;
    if let Some(User { user, group }) = programs.user {
        let given = chown(folder.path(), Some(user), Some(group));
        given.map_err(|error| StartError::folder(folder.path(), &error))?;
    }
    fill(programs, folder.path())?;
    Ok(folder)
}

/// Writes a certificate beside the data, owned by the same user.
#[cfg(feature = "tls")]
pub(super) fn give(issued: &Issued, folder: &Path, programs: &Programs) -> Result<(), StartError> {
    let written = issued.write(folder).and_then(|files| match programs.user {
        Some(User { user, group }) => {
            files.into_iter().try_for_each(|file| chown(file, Some(user), Some(group)))
        }
        None => Ok(()),
    });
    written.map_err(|error| StartError::folder(folder, &error))
}

fn fill(programs: &Programs, folder: &Path) -> Result<(), StartError> {
    let folder = folder.to_string_lossy();
    let args = ["--pgdata", &folder, "--no-sync", "--auth", "trust", "--username", "postgres"];
    let set = ["--encoding", "UTF8", "--locale", "C"];
    let args: Vec<String> = args.into_iter().chain(set).map(Into::into).collect();
    let (_process, lines) = programs.start(MAKER, &args)?;
    let mut log = LogTail::default();
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
        let faults = ("postgres ended", "postgres does not get ready");
        match wait(&lines, faults, |log| log.says(READY)) {
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

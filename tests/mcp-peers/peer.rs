//! The servers, and the two ways to them: directly and through the guard.
use std::{
    env,
    ffi::OsString,
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// How a client reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Off,
    Shadow,
    /// As the guard is without options.
    Enforce,
    /// The same, in front of clients over HTTP.
    Listening,
}

/// All ways through the guard.
pub(crate) const GUARDED: [Way; 3] = [Way::Off, Way::Shadow, Way::Enforce];

/// A package of npm's `@modelcontextprotocol` and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) package: &'static str,
    pub(crate) args: Vec<PathBuf>,
}

/// A name that all processes of one session bear on their command lines.
#[derive(Clone, Debug)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("mcp-peer-{}-{number}-", std::process::id()))
    }

    /// The processes that bear it and have not ended.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.parse::<u32>().ok()
        });
        // A process that has ended and is not yet waited for has no command line.
        pids.filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(self.0.len()).any(|part| part == self.0.as_bytes())
        })
        .collect()
    }

    /// Fails if one is left after the process that started them has ended.
    pub(crate) fn assert_gone(&self) {
        let left = self.alive();
        assert!(left.is_empty(), "processes outlive their client: {left:?}");
    }
}

impl Server {
    pub(crate) fn everything() -> Self {
        Self { package: "server-everything", args: Vec::new() }
    }

    pub(crate) fn filesystem(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { package: "server-filesystem", args: folders.into_iter().collect() }
    }

    /// The program and its arguments.
    pub(crate) fn argv(&self, way: Way, mark: &Mark) -> Vec<OsString> {
        let options: Option<&[&str]> = match way {
            Way::Direct => None,
            Way::Off => Some(&["--mode", "off"]),
            Way::Shadow => Some(&["--mode", "shadow"]),
            Way::Enforce => Some(&[]),
            Way::Listening => Some(&["--listen", "127.0.0.1:0"]),
        };
        let mut argv: Vec<OsString> = Vec::new();
        if let Some(options) = options {
            argv.extend([variable("TR_TOOL_GUARD").into(), "mcp".into()]);
            argv.extend(["--records".into(), "memory".into()]);
            argv.extend(options.iter().map(OsString::from));
            argv.push("--".into());
        }
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let packages = variable("TR_PEERS").join("node_modules/@modelcontextprotocol");
        argv.extend([
            "node".into(),
            // Takes the place of the command line once the server runs.
            format!("--title={}", mark.0).into(),
            "--require".into(),
            here.join("still.cjs").into(),
            packages.join(self.package).join("dist/index.js").into(),
        ]);
        argv.extend(self.args.iter().map(OsString::from));
        argv
    }

    /// The command, in an environment that is the same every time.
    pub(crate) fn command(&self, way: Way, mark: &Mark) -> Command {
        let argv = self.argv(way, mark);
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env_clear().env("TZ", "UTC").env("LANG", "C");
        for name in ["PATH", "HOME"] {
            command.envs(env::var_os(name).map(|value| (name, value)));
        }
        command
    }
}

/// What `cargo xtask test` tells us.
pub(crate) fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run cargo xtask test")).into()
}

//! The operator without a terminal: a program that has the operator's token.
use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, process::Command};

/// Lets `tool-guard records settle …` or `forget …` ask no person. Its state folder is `state`.
pub(crate) fn by_token(command: &mut Command, state: &Path) {
    let file = state.join("tool-guard/admin-token");
    if !file.exists() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let made = fs::File::options().write(true).create_new(true).mode(0o600).open(&file);
        writeln!(made.unwrap(), "{}", "7".repeat(64)).unwrap();
    }
    command.env("XDG_STATE_HOME", state).args(["--yes", "--why", "a test", "--token-file"]);
    command.arg(file);
}

//! The facts of this build, for `--version`.
use std::{env::consts, sync::LazyLock};

/// The commit, if the variable `TOOL_GUARD_COMMIT` named it when this was compiled.
const COMMIT: Option<&str> = option_env!("TOOL_GUARD_COMMIT");

/// The version and how it was built, such as `0.1.0 (commit 1a2b3c4, linux x86_64 gnu, release)`.
pub(crate) fn facts() -> &'static str {
    static FACTS: LazyLock<String> = LazyLock::new(|| said(COMMIT));
    &FACTS
}

fn said(commit: Option<&str>) -> String {
    let commit = commit.filter(|it| !it.is_empty());
    let commit = commit.map(|it| format!("commit {it}, ")).unwrap_or_default();
    let libc = match () {
        () if cfg!(target_env = "musl") => " musl",
        () if cfg!(target_env = "gnu") => " gnu",
        () => "",
    };
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (version, os, arch) = (env!("CARGO_PKG_VERSION"), consts::OS, consts::ARCH);
    format!("{version} ({commit}{os} {arch}{libc}, {profile})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_says_what_is_known_of_the_build() {
        let version = env!("CARGO_PKG_VERSION");
        assert!(said(Some("1a2b3c4")).starts_with(&format!("{version} (commit 1a2b3c4, ")));
        for unknown in [None, Some("")] {
            let said = said(unknown);
            assert!(
                said.starts_with(&format!("{version} ({} {}", consts::OS, consts::ARCH)),
                "{said}"
            );
        }
    }
}

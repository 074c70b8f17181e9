//! Which crates a set of features builds, as `cargo tree` says, and what that must be.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::{repo::Repo, shell, test::ALL};

/// The facade, whose features choose the layers.
const FACADE: &str = "tool-reliability";

/// Crates that a program without their layer should not build; our own are watched, too.
const WATCHED: &[&str] = &[
    "aho-corasick",
    "blake3",
    "bytes",
    "http",
    "libsqlite3-sys",
    "opentelemetry",
    "redis",
    "tracing",
];

/// The features of the facade and all of the watched crates that they build, besides tr-core and tr-policy.
const BUILDS: &[(&str, &str)] = &[
    ("", ""),
    ("breaker", "tr-breaker"),
    ("http", "bytes http"),
    ("idempotency", "blake3 bytes tr-idempotency"),
    ("integrity", "blake3 tr-integrity tr-transcript"),
    ("loop-guard", "blake3 tr-loopguard"),
    ("retry", "tr-retry"),
    ("retry,breaker", "tr-breaker tr-retry"),
    ("sqlite", "blake3 bytes libsqlite3-sys tr-idempotency tr-sqlite"),
    ("telemetry", "aho-corasick blake3 opentelemetry tr-telemetry tracing"),
    ("timeout", "tr-timeout"),
    (
        "default",
        "aho-corasick blake3 bytes opentelemetry tr-breaker tr-config tr-idempotency tr-integrity \
         tr-loopguard tr-retry tr-telemetry tr-timeout tr-transcript tr-wire tracing",
    ),
];

/// Fails if a set of features of the facade builds a watched crate that it should not, or lacks one.
pub(crate) fn check(repo: &Repo) -> Result<()> {
    for (features, expected) in BUILDS {
        println!("which crates {FACADE} builds with the features `{features}`");
        let built = crates(repo, FACADE, features)?;
        let expected: BTreeSet<_> = expected.split_whitespace().collect();
        let found = watched(&built);
        ensure!(
            found == expected,
            "{FACADE} with the features `{features}` builds {found:?}, expected {expected:?}: mend its \
             Cargo.toml, or change the row in xtask/src/builds.rs"
        );
    }
    Ok(())
}

/// What reads, writes and carries what passes through the guard.
const CARRIERS: &[&str] = &[
    "hyper",
    "hyper-util",
    "jsonc-parser",
    "libsqlite3-sys",
    "redis",
    "rusqlite",
    "rustls",
    "serde_json",
    "tokio",
    "toml",
];

/// Their features that the tests' guard has, which is built together with all tests, and its users' has not. None changes
/// what code does that does not ask for it; one that might (`serde_json/preserve_order`) must not be among them.
const ADDED: &[&str] = &[
    "hyper-util/client-proxy",
    "hyper-util/default",
    "hyper-util/http2",
    "hyper-util/server",
    "hyper-util/server-auto",
    "hyper-util/service",
    "hyper/http2",
    "serde_json/unbounded_depth",
    "tokio/fs",
    "tokio/rt-multi-thread",
    "tokio/test-util",
];

/// Fails if the tests' guard differs from the one that its users build by more than what is known to be harmless.
pub(crate) fn check_guard(repo: &Repo) -> Result<()> {
    println!("what the tests' tool-guard has more than its users'");
    let users = features(repo, &["--package", "tool-guard"], "normal")?;
    let tests = features(repo, &ALL, "normal,dev")?;
    let mut added = BTreeSet::new();
    for (package, features) in users {
        let more = tests.get(&package).into_iter().flatten().filter(|it| !features.contains(*it));
        let name = package.split(' ').next().unwrap_or_default();
        if !CARRIERS.contains(&name) {
            continue;
        }
        added.extend(more.map(|feature| format!("{name}/{feature}")));
    }
    let known: BTreeSet<_> = ADDED.iter().map(|it| (*it).to_owned()).collect();
    ensure!(
        added == known,
        "new: {:?}, gone: {:?}: if it changes nothing for code that does not ask for it, change `ADDED` in \
         xtask/src/builds.rs",
        added.difference(&known).collect::<Vec<_>>(),
        known.difference(&added).collect::<Vec<_>>(),
    );
    Ok(())
}

/// The features of each package, in all of the ways in which it is built.
fn features(
    repo: &Repo,
    selection: &[&str],
    edges: &str,
) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut tree = repo.cargo();
    tree.args(["tree", "--quiet", "--locked", "--prefix=none", "--format={p}|{f}"]);
    tree.args(selection).arg(format!("--edges={edges}"));
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in shell::read(&mut tree)?.lines() {
        let Some((package, features)) = line.split_once('|') else { continue };
        let package = package.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let features = features.trim_end_matches(" (*)").split(',').filter(|it| !it.is_empty());
        packages.entry(package).or_default().extend(features.map(str::to_owned));
    }
    Ok(packages)
}

/// All crates that `package` and its dependencies build with these features and no others, itself included.
fn crates(repo: &Repo, package: &str, features: &str) -> Result<BTreeSet<String>> {
    let tree = shell::read(repo.cargo().args([
        "tree",
        "--quiet",
        "--locked",
        "--no-default-features",
        "--edges=normal",
        "--prefix=none",
        "--package",
        package,
        "--features",
        features,
    ]))?;
    Ok(packages(&tree))
}

/// Name and version of each package in the output of `cargo tree`, where repeated ones end in `(*)`.
pub fn packages(tree: &str) -> BTreeSet<String> {
    let package = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    tree.lines().map(package).filter(|package| !package.is_empty()).collect()
}

fn watched(built: &BTreeSet<String>) -> BTreeSet<&str> {
    let names = built.iter().filter_map(|package| package.split_whitespace().next());
    let is_ours = |name: &str| name.starts_with("tr-") && !["tr-core", "tr-policy"].contains(&name);
    names.filter(|name| is_ours(name) || WATCHED.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "tool-reliability v0.1.0 (/src/crates/tool-reliability)\n\
                        tr-core v0.1.0 (/src/crates/tr-core)\nblake3 v1.8.2\nsyn v2.0.1\nsyn v3.0.9\n\
                        tr-retry v0.1.0 (/src/crates/tr-retry)\ntr-core v0.1.0 (/src/crates/tr-core) (*)\n\n";

    #[test]
    fn a_crate_counts_once_in_each_of_its_versions() {
        let built = packages(TREE);
        assert_eq!(built.len(), 6);
        assert!(built.contains("syn v2.0.1") && built.contains("syn v3.0.9"));
    }

    #[test]
    fn our_layers_and_what_is_heavy_are_watched() {
        let built = packages(TREE);
        assert_eq!(watched(&built), ["blake3", "tr-retry"].into());
    }
}

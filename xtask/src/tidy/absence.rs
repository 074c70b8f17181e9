//! Invariants of absence: what a crate does not do, said at the top of its lib.rs and checked where a script can.

use super::{Fault, tokens::Look, tree::Tree};

/// Tokens that don't occur in a crate outside its tests, and why.
const CODE: &[(&str, &[&str], &str)] = &[
    (
        "tr-core",
        &["Instant : : now", "spawn"],
        "tr-core takes the time as a value and runs nothing",
    ),
    (
        "tr-policy",
        &["Instant : : now", "spawn"],
        "tr-policy takes the time as a value and runs nothing",
    ),
    (
        "tr-wire",
        &["Instant : : now", "SystemTime", "spawn"],
        "tr-wire takes the time as a value and runs nothing",
    ),
    (
        "tr-config",
        &["std : : fs", "File : : open", "spawn"],
        "tr-config reads the texts that it is given",
    ),
    (
        "tr-breaker",
        &["spawn", "sleep", "sleep_until"],
        "tr-breaker spawns nothing and never sleeps",
    ),
    (
        "tr-sqlite",
        &["tokio : : spawn", "tokio : : time", "SystemTime"],
        "tr-sqlite needs no runtime and reads no wall clock",
    ),
    ("tr-retry", &["HashMap", "BTreeMap", "HashTable", "Store"], "tr-retry stores nothing"),
    ("tool-reliability", &["spawn", "sleep", "sleep_until"], "the facade only orders and switches"),
    ("tr-turn", &["spawn", "spawn_local"], "a turn polls its calls itself"),
];

/// Dependencies that a crate does not have outside its tests, and why.
const DEPENDENCIES: &[(&str, &[&str], &str)] = &[
    (
        "tr-core",
        &["async-std", "futures-executor", "futures-util", "smol", "tokio", "tokio-util"],
        "tr-core has no async runtime",
    ),
    (
        "tr-core",
        &["opentelemetry", "opentelemetry_sdk", "tracing-subscriber"],
        "tr-core exports nothing",
    ),
    (
        "tr-policy",
        &["futures-util", "opentelemetry", "serde_json", "tokio", "tokio-util"],
        "tr-policy has no runtime, exports nothing and reads no JSON",
    ),
    ("tr-retry", &["dashmap", "hashbrown", "moka"], "tr-retry stores nothing"),
];

pub(super) fn code(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, patterns, why) in CODE {
        for (text, tokens) in tree.rust_under(&format!("crates/{name}/src")) {
            for pattern in *patterns {
                for line in tokens.find(pattern, Look::OutsideTests) {
                    let shown = pattern.replace(' ', "");
                    faults.push(text.fault("absence", line, format!("`{shown}`: {why}")));
                }
            }
        }
    }
    faults
}

pub(super) fn dependencies(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, absent, why) in DEPENDENCIES {
        for one in tree.crates.iter().filter(|one| one.name == *name) {
            for dep in one.deps.iter().filter(|dep| !dep.dev && absent.contains(&&*dep.name)) {
                faults.push(one.fault("absence", format!("depends on {}: {why}", dep.name)));
            }
        }
    }
    faults
}

/// Each library says at its top what it knows nothing of.
pub(super) fn said(tree: &Tree) -> Vec<Fault> {
    let is_lib = |path: &str| {
        let folder = path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/src/lib.rs"));
        folder.is_some_and(|folder| !folder.contains('/'))
    };
    tree.texts
        .iter()
        .filter(|text| is_lib(&text.path))
        .filter(|text| !docs(&text.text).to_lowercase().contains("knows nothing of"))
        .map(|text| text.fault("absence", 1, "its docs must say what it knows nothing of"))
        .collect()
}

/// The docs of the file itself, as one line.
fn docs(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("//!")).collect();
    lines.concat().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Crate;

    #[test]
    fn the_breaker_sleeps_and_spawns_in_its_tests_only() {
        let tree = Tree::of(&[
            (
                "crates/tr-breaker/src/a.rs",
                "//! A.\nfn f() { tokio::spawn(g()); }\nfn sleepy() {}\n",
            ),
            (
                "crates/tr-breaker/src/b.rs",
                "//! B.\n#[cfg(test)]\nmod tests { fn f() { sleep(x); } }\n",
            ),
            ("crates/tr-breaker/tests/c.rs", "//! C.\nfn f() { spawn(x); }\n"),
        ]);
        let faults = code(&tree);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!((&*faults[0].path, faults[0].line), ("crates/tr-breaker/src/a.rs", 2));
    }

    #[test]
    fn retry_stores_nothing() {
        let tree =
            Tree::of(&[("crates/tr-retry/src/a.rs", "//! A.\nuse std::collections::HashMap;\n")]);
        assert_eq!(code(&tree).len(), 1);
    }

    #[test]
    fn the_core_reads_no_clock() {
        let tree = Tree::of(&[("crates/tr-core/src/a.rs", "//! A.\nfn f() { Instant::now(); }\n")]);
        assert_eq!(
            code(&tree)[0].what,
            "`Instant::now`: tr-core takes the time as a value and runs nothing"
        );
    }

    #[test]
    fn the_core_has_a_runtime_in_its_tests_only() {
        let count = |core| dependencies(&Tree::with(vec![core])).len();
        assert_eq!(count(Crate::on("tr-core", &["tokio"])), 1);
        assert_eq!(count(Crate::on("tr-core", &["tokio"]).optional()), 1);
        assert_eq!(count(Crate::on("tr-core", &["tokio"]).dev()), 0);
        assert_eq!(count(Crate::on("tr-timeout", &["tokio"])), 0);
    }

    #[test]
    fn a_library_says_what_it_knows_nothing_of() {
        let tree = Tree::of(&[
            ("crates/tr-a/src/lib.rs", "//! Does a. Knows nothing\n//! of b.\n"),
            ("crates/tr-b/src/lib.rs", "//! Does b.\n// knows nothing of a\n"),
            ("crates/tr-a/src/part/lib.rs", "//! A part.\n"),
        ]);
        let faults = said(&tree);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].path, "crates/tr-b/src/lib.rs");
    }
}

//! Which crate may know which.

use super::{
    Fault,
    tokens::Look,
    tree::{Crate, Dep, Tree},
};

/// The layers: one tower `Layer` each, none knows another.
pub(super) const LAYERS: &[&str] = &[
    "tr-breaker",
    "tr-idempotency",
    "tr-integrity",
    "tr-loopguard",
    "tr-retry",
    "tr-telemetry",
    "tr-timeout",
];

/// The contract, and what is read and written of it: for the crates above the layers.
const FORMS: [&str; 3] = ["tr-core", "tr-wire", "tr-config"];

/// What every crate may use for its tests.
const TESTS: [&str; 2] = ["tr-core", "tr-testkit"];

/// Dependencies that are features, off by default, wherever a library uses them.
const ENGINES: &[&str] = &[
    "axum",
    "deadpool-postgres",
    "opentelemetry-otlp",
    "opentelemetry-prometheus",
    "redis",
    "rusqlite",
    "rustls",
    "tokio-postgres",
    "tokio-postgres-rustls",
    "tr-sqlite",
    "tr-tls",
];

/// What an engine's own crate and the binary need not say.
const UNBOUND: &[&str] = &["tool-guard", "tr-sqlite", "tr-tls"];

/// The crates of the workspace that a crate may depend on; `None` if it has no room.
fn below(name: &str) -> Option<Vec<&'static str>> {
    let core = ["tr-core"];
    Some(match name {
        "tr-breaker" | "tr-core" | "tr-retry" => vec!["tr-policy"],
        "tr-policy" | "tr-sqlite" | "tr-tls" | "tr-transcript" => Vec::new(),
        "tr-testkit" => core.into(),
        "tr-idempotency" => vec!["tr-core", "tr-sqlite", "tr-tls"],
        "tr-integrity" => vec!["tr-core", "tr-sqlite", "tr-tls", "tr-transcript"],
        layer if LAYERS.contains(&layer) => core.into(),
        "tr-wire" => core.into(),
        "tr-config" => [LAYERS, &["tr-core", "tr-wire"]].concat(),
        "tool-reliability" => [&FORMS, LAYERS, &["tr-transcript"]].concat(),
        "tr-turn" => [&FORMS[..], &["tool-reliability"]].concat(),
        "tool-guard" => {
            let above = ["tool-reliability", "tr-integrity", "tr-tls", "tr-transcript", "tr-turn"];
            [&FORMS[..], &above].concat()
        }
        _ => return None,
    })
}

/// Dependencies go downward only.
pub(super) fn edges(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for from in tree.crates.iter().filter(|from| from.is_library()) {
        let Some(below) = below(&from.name) else {
            faults.push(from.fault("rooms", "has no room: say in tidy/rooms.rs what it may use"));
            continue;
        };
        for dep in &from.deps {
            let ours = tree.crates.iter().any(|one| one.name == dep.name);
            let to = dep.name.as_str();
            if ours && !below.contains(&to) && !(dep.dev && TESTS.contains(&to)) {
                faults.push(from.fault("rooms", format!("{} may not depend on {to}", from.name)));
            }
        }
    }
    faults
}

/// A library is small until a feature is asked for.
pub(super) fn engines(tree: &Tree) -> Vec<Fault> {
    let is_bound = |one: &&Crate| one.is_library() && !UNBOUND.contains(&&*one.name);
    let mut faults = Vec::new();
    for library in tree.crates.iter().filter(is_bound) {
        for dep in library.deps.iter().filter(|dep| !dep.dev && ENGINES.contains(&&*dep.name)) {
            if !dep.optional || library.on_by_default.contains(&dep.name) {
                faults.push(
                    library.fault(
                        "engines",
                        format!("{} must be a feature, off by default", dep.name),
                    ),
                );
            }
        }
    }
    faults
}

/// No layer's code names another layer.
pub(super) fn names(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for layer in LAYERS {
        for (text, tokens) in tree.rust_under(&format!("crates/{layer}")) {
            for other in LAYERS.iter().filter(|other| *other != layer) {
                for line in tokens.find(&other.replace('-', "_"), Look::Everywhere) {
                    faults.push(text.fault(
                        "names",
                        line,
                        format!("{layer} knows nothing of {other}"),
                    ));
                }
            }
        }
    }
    faults
}

/// The table of crates in `ARCHITECTURE.md` has every crate, with what it is built on.
pub(super) fn drawn(tree: &Tree) -> Vec<Fault> {
    let Some(page) = tree.texts.iter().find(|text| text.path == "ARCHITECTURE.md") else {
        return Vec::new();
    };
    let rows: Vec<_> = page.text.lines().enumerate().filter_map(crates_of_row).collect();
    let mut faults = Vec::new();
    for one in tree.crates.iter().filter(|one| one.is_library()) {
        let ours = |dep: &&Dep| {
            !dep.dev && tree.crates.iter().any(|it| it.name == dep.name && it.is_library())
        };
        let mut deps: Vec<_> = one.deps.iter().filter(ours).map(|dep| &*dep.name).collect();
        deps.sort_unstable();
        deps.dedup();
        match rows.iter().find(|(_, names, _)| names.contains(&&*one.name)) {
            None => faults.push(page.fault(
                "drawn",
                0,
                format!("the table of crates has no row for {}", one.name),
            )),
            Some((_, _, said)) if *said == deps => {}
            Some((line, ..)) => {
                let what = format!(
                    "{} is built on {}",
                    one.name,
                    if deps.is_empty() { "–".into() } else { deps.join(", ") }
                );
                faults.push(page.fault("drawn", *line, what));
            }
        }
    }
    faults
}

/// The line, the crates and what they are built on, of a row of the table.
fn crates_of_row((at, line): (usize, &str)) -> Option<(usize, Vec<&str>, Vec<&str>)> {
    let cells: Vec<_> =
        line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [names, _, deps] = cells[..] else { return None };
    let names: Vec<_> = names.split(", ").collect();
    let mut deps: Vec<_> = deps.split(", ").filter(|dep| *dep != "–").collect();
    deps.sort_unstable();
    let is_crate = |name: &&str| name.starts_with("tr-") || name.starts_with("tool-");
    names.iter().all(is_crate).then_some((at + 1, names, deps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(from: Crate, to: &str) -> bool {
        !edges(&Tree::with(vec![from, Crate::on(to, &[])])).is_empty()
    }

    #[test]
    fn a_layer_depends_on_no_other_layer_even_in_tests() {
        assert!(refused(Crate::on("tr-retry", &["tr-breaker"]), "tr-breaker"));
        assert!(refused(Crate::on("tr-retry", &["tr-breaker"]).dev(), "tr-breaker"));
        assert!(!refused(Crate::on("tr-retry", &["tr-policy"]), "tr-policy"));
    }

    #[test]
    fn the_core_depends_on_nothing_of_ours() {
        assert!(refused(Crate::on("tr-core", &["tr-retry"]), "tr-retry"));
        assert!(!refused(Crate::on("tr-core", &["serde"]), "tr-retry"));
    }

    #[test]
    fn a_layer_reads_no_files_and_no_envelopes() {
        for read in ["tr-wire", "tr-config"] {
            assert!(refused(Crate::on("tr-retry", &[read]), read));
            assert!(refused(Crate::on("tr-core", &[read]).dev(), read));
            assert!(!refused(Crate::on("tool-reliability", &[read]), read));
        }
        assert!(refused(Crate::on("tr-wire", &["tr-config"]), "tr-config"));
    }

    #[test]
    fn the_testkit_is_for_tests_and_knows_the_core_only() {
        for tests in TESTS {
            assert!(refused(Crate::on("tr-retry", &[tests]), tests));
            assert!(!refused(Crate::on("tr-retry", &[tests]).dev(), tests));
        }
        assert!(refused(Crate::on("tr-testkit", &["tr-retry"]).dev(), "tr-retry"));
    }

    #[test]
    fn the_binary_goes_through_the_facade() {
        assert!(refused(Crate::on("tool-guard", &["tr-retry"]), "tr-retry"));
        assert!(!refused(Crate::on("tool-guard", &["tool-reliability"]), "tool-reliability"));
        assert!(refused(Crate::on("tool-reliability", &["tool-guard"]), "tool-guard"));
    }

    #[test]
    fn a_crate_without_a_room_is_told_so() {
        assert_eq!(edges(&Tree::with(vec![Crate::on("tr-new", &[])])).len(), 1);
    }

    #[test]
    fn an_engine_is_optional_and_off() {
        let count = |one| engines(&Tree::with(vec![one])).len();
        assert_eq!(count(Crate::on("tr-idempotency", &["redis"])), 1);
        assert_eq!(count(Crate::on("tr-idempotency", &["redis"]).optional()), 0);
        assert_eq!(count(Crate::on("tr-idempotency", &["redis"]).dev()), 0);
        let mut on = Crate::on("tr-idempotency", &["redis"]).optional();
        on.on_by_default.insert("redis".into());
        assert_eq!(count(on), 1);
    }

    #[test]
    fn a_layer_names_another_in_docs_only() {
        let tree = Tree::of(&[
            ("crates/tr-retry/src/lib.rs", "//! Sits outside `tr_breaker`.\nuse tr_core::Ran;\n"),
            ("crates/tr-retry/tests/all.rs", "//! Both.\nuse tr_breaker::Breaker;\n"),
            ("crates/tool-reliability/src/lib.rs", "//! All.\nuse tr_breaker::Breaker;\n"),
        ]);
        let faults = names(&tree);
        assert_eq!(faults.len(), 1);
        assert_eq!((&*faults[0].path, faults[0].line), ("crates/tr-retry/tests/all.rs", 2));
    }

    #[test]
    fn the_page_of_crates_says_what_each_is_built_on() {
        let with = |row: &str| {
            let mut tree = Tree::of(&[("ARCHITECTURE.md", row)]);
            tree.crates =
                vec![Crate::on("tr-core", &[]), Crate::on("tr-wire", &["tr-core", "serde"])];
            drawn(&tree).iter().map(|fault| (fault.line, fault.what.clone())).collect::<Vec<_>>()
        };
        assert!(with("| tr-core | x | – |\n| tr-wire | y | tr-core |").is_empty());
        let wrong = with("| tr-core | x | – |\n| tr-wire | y | – |");
        assert_eq!(wrong, [(2, "tr-wire is built on tr-core".into())]);
        let absent = with("| tr-core | x | – |");
        assert_eq!(absent, [(0, "the table of crates has no row for tr-wire".into())]);
    }
}

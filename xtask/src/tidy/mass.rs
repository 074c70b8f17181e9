//! How much code each crate may have. A change that needs more raises its crate's row and says why.

use super::{
    Fault,
    arrows::{modules, roots},
    tree::Tree,
};

/// Lines of code outside tests: without blank lines, comments and docs.
const BUDGET: &[(&str, usize)] = &[
    // With mode observe, `config`, which shows each setting with its origin, exporters and `serve`,
    // which reaches its tools over TLS and takes chunks of commands; with MCP over HTTP on either side: the exchanges, the
    // faults of a server at an address, and a command that several clients share. With `install`: the forms of seven
    // clients' files, edited in place; and `doctor`. With `decide`, for hosts that run their tools themselves, on pipes
    // and a socket. A server that crashed is started again; sessions over HTTP that are lost, cut off and resumed at any
    // moment.
    // What a client that reads slowly, leaves or repeats an id holds up, and answers that are written without a copy.
    // The operator's consent: a person at a terminal or a token, and who settled what.
    ("tool-guard", 24550),
    // With streams, the door and the adapter of tools, what a configuration says of each layer, the
    // envelope service, and cancelling, which tr-turn had.
    ("tool-reliability", 5660),
    ("tr-breaker", 2400),
    // Its file has every setting of every layer, the defaults of each, and where tools are; its schema
    // refuses what the reader refuses. With the statuses of an upstream.
    ("tr-config", 2850),
    // With the channel of chunks, what the conformance suites of stores share, and a manifest's `cancellable`.
    ("tr-core", 7890),
    // With who settled a call.
    ("tr-idempotency", 10560),
    ("tr-integrity", 5800),
    // With the tables by which a few bytes tell that a word of a response is no name and no time.
    ("tr-loopguard", 2380),
    ("tr-retry", 1270),
    ("tr-sqlite", 1170),
    // With the metrics of shadow mode.
    ("tr-telemetry", 3170),
    // With laws that say what was expected.
    ("tr-testkit", 3390),
    // With the idle timeout of streams.
    ("tr-timeout", 830),
    ("tr-tls", 180),
    // Out of tr-integrity, which had 19,420 lines with it.
    ("tr-transcript", 12950),
    ("tr-turn", 3150),
    // Requests of either form.
    ("tr-wire", 3010),
];

/// A crate keeps to its row.
pub(super) fn mass(tree: &Tree) -> Vec<Fault> {
    within(tree, BUDGET)
}

fn within(tree: &Tree, budget: &[(&str, usize)]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, lines) in figures(tree) {
        let fault = |what| Fault { path: format!("crates/{name}"), line: 0, rule: "mass", what };
        match budget.iter().find(|(row, _)| *row == name) {
            None => faults.push(fault("has no row in `xtask/src/tidy/mass.rs`".into())),
            Some((_, most)) if lines > *most => faults.push(fault(format!(
                "has {lines} lines of code, {most} at most: write less, or raise its row and say why"
            ))),
            // A row far above its crate is no limit.
            Some((_, most)) if lines + SLACK < *most => {
                faults.push(fault(format!("has {lines} lines of code: lower its row from {most}")));
            }
            Some(_) => {}
        }
    }
    faults
}

/// How far a row may be above its crate.
const SLACK: usize = 1000;

/// Lines of code of each crate, in the files that its root reaches outside tests.
pub(super) fn figures(tree: &Tree) -> Vec<(String, usize)> {
    let figure = |root: String| {
        let name = root.split('/').nth(1)?.to_owned();
        let modules = modules(tree, &root);
        let files = modules.files();
        let lines = tree.rust().filter(|(text, _)| files.contains(&*text.path));
        Some((name, lines.map(|(_, tokens)| tokens.lines_of_code()).sum()))
    };
    roots(tree).into_iter().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_has_no_more_code_than_its_row_and_not_far_less() {
        let code = "fn f() {}\n".repeat(1000);
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", &format!("{code}#[cfg(test)]\nmod model;\n")),
            ("crates/a/src/model.rs", &code),
            ("crates/a/src/tests.rs", &code),
            ("crates/a/tests/b.rs", &code),
            ("xtask/src/main.rs", &code),
        ]);
        for (row, faults) in [(999, 1), (1000, 0), (1000 + SLACK, 0), (1001 + SLACK, 1)] {
            assert_eq!(within(&tree, &[("a", row)]).len(), faults, "{row}");
        }
        assert_eq!(within(&tree, &[]).len(), 1);
    }
}

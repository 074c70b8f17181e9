//! How a file looks: its first line, its length, no boxed futures on the way through, no sleeping tests.

use super::{Fault, tokens::Look, tree::Tree};

/// Lines that one file may have.
const LINES: usize = 400;

/// Every Rust file says first what it does.
pub(super) fn header(tree: &Tree) -> Vec<Fault> {
    tree.rust()
        .filter(|(text, _)| !text.text.starts_with("//! "))
        .map(|(text, _)| text.fault("header", 1, "must begin with `//!` and what the file does"))
        .collect()
}

/// One idea in a file.
pub(super) fn length(tree: &Tree) -> Vec<Fault> {
    tree.rust()
        .map(|(text, _)| (text, text.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES)
        .map(|(text, lines)| text.fault("length", 0, format!("has {lines} lines, {LINES} at most")))
        .collect()
}

/// Where the way to a store goes: I/O, beside which a box is nothing.
const STORES: &[&str] =
    &["src/store", "src/remote", "src/sqlite", "src/redis", "src/postgres", "src/conformance"];

/// A call's way through a layer allocates nothing; the testkit is on no call's way.
pub(super) fn boxed(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let layers = tree.rust().filter(|(text, _)| {
        let inside = text.path.strip_prefix("crates/tr-").and_then(|path| path.split_once('/'));
        inside.is_some_and(|(name, path)| {
            let has_stores = ["idempotency", "integrity"].contains(&name);
            let is_store = has_stores && STORES.iter().any(|it| path.starts_with(it));
            name != "testkit" && path.starts_with("src/") && !is_store
        })
    });
    for (text, tokens) in layers {
        for pattern in ["Box : : pin", "BoxFuture"] {
            for line in tokens.find(pattern, Look::OutsideTests) {
                let what = format!("`{}`: name the future", pattern.replace(' ', ""));
                faults.push(text.fault("boxed", line, what));
            }
        }
    }
    faults
}

/// Tests wait for a condition or pause the clock.
pub(super) fn sleeping(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (text, tokens) in tree.rust() {
        for line in tokens.find("thread : : sleep", Look::InTests) {
            let what = "a test really sleeps: wait for the condition, under a deadline";
            faults.push(text.fault("sleeping", line, what));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(faults: &[Fault]) -> Vec<&str> {
        faults.iter().map(|fault| &*fault.path).collect()
    }

    #[test]
    fn a_file_begins_with_its_docs() {
        let tree = Tree::of(&[
            ("a.rs", "//! Does a.\n"),
            ("b.rs", "// Does b.\n//! Really.\n"),
            ("c.rs", ""),
            ("d.toml", "a = 1"),
        ]);
        assert_eq!(paths(&header(&tree)), ["b.rs", "c.rs"]);
    }

    #[test]
    fn a_file_has_400_lines_at_most() {
        let tree = Tree::of(&[("a.rs", &"\n".repeat(400)), ("b.rs", &"\n".repeat(401))]);
        let faults = length(&tree);
        assert_eq!(paths(&faults), ["b.rs"]);
        assert_eq!(faults[0].what, "has 401 lines, 400 at most");
    }

    #[test]
    fn a_layer_boxes_no_future_outside_its_tests() {
        let code = "fn f() -> BoxFuture<()> { Box::pin(g()) }";
        let test = format!("#[cfg(test)]\nmod tests {{ {code} }}");
        let tree = Tree::of(&[
            ("crates/tr-retry/src/a.rs", code),
            ("crates/tr-retry/src/b.rs", &test),
            ("crates/tr-retry/tests/c.rs", code),
            ("crates/tool-guard/src/d.rs", code),
            ("crates/tr-testkit/src/e.rs", code),
        ]);
        assert_eq!(paths(&boxed(&tree)), ["crates/tr-retry/src/a.rs"; 2]);
    }

    #[test]
    fn a_test_does_not_sleep() {
        let code = "fn f() { std::thread::sleep(x); }";
        let tree = Tree::of(&[("crates/a/tests/a.rs", code), ("crates/a/src/a.rs", code)]);
        assert_eq!(paths(&sleeping(&tree)), ["crates/a/tests/a.rs"]);
    }
}

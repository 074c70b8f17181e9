//! `cargo bench -- OPTIONS` reaches every target that is a bench: only criterion's understand the options.

use toml::{Table, Value};

use super::{Fault, tree::Tree};

/// Libraries and programs of the workspace say that they are no benches.
pub(super) fn benched(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for one in &tree.crates {
        let has = |file: &str| {
            let path = format!("{}/src/{file}", one.folder);
            tree.texts.iter().any(|text| text.path == path)
        };
        let manifest = format!("{}/Cargo.toml", one.folder);
        let manifest = tree.texts.iter().find(|text| text.path == manifest);
        let manifest: Table = manifest.and_then(|it| it.text.parse().ok()).unwrap_or_default();
        let bins = manifest.get("bin").and_then(Value::as_array);
        let is_off = |target: &Value| target.get("bench").and_then(Value::as_bool) == Some(false);
        let lib_is_off = !has("lib.rs") || manifest.get("lib").is_some_and(is_off);
        let bins_are_off = !has("main.rs") || bins.is_some();
        if !lib_is_off || !bins_are_off || !bins.into_iter().flatten().all(is_off) {
            faults
                .push(one.fault("benched", "needs `bench = false` in `[lib]` and each `[[bin]]`"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::{super::tree::Crate, *};

    fn faults(manifest: &str, source: &str) -> usize {
        let mut tree = Tree::of(&[("crates/a/Cargo.toml", manifest), (source, "//! Code.\n")]);
        tree.crates = vec![Crate::on("a", &[])];
        benched(&tree).len()
    }

    #[test]
    fn libraries_and_programs_are_no_benches() {
        assert_eq!(faults("", "crates/a/src/lib.rs"), 1);
        assert_eq!(faults("[lib]\nbench = false", "crates/a/src/lib.rs"), 0);
        assert_eq!(faults("[lib]\nname = \"a\"", "crates/a/src/lib.rs"), 1);
        assert_eq!(faults("", "crates/a/src/main.rs"), 1);
        assert_eq!(faults("[[bin]]\nname = \"a\"\nbench = false", "crates/a/src/main.rs"), 0);
        assert_eq!(faults("[[bin]]\nname = \"a\"", "crates/a/src/other.rs"), 1);
        assert_eq!(faults("", "crates/a/tests/a.rs"), 0);
    }
}

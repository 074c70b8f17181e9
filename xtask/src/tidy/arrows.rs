//! Imports go one way: no files of a crate import each other, and a layer stands on few floors.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fault, modules::Modules, rooms::LAYERS, tree::Tree};

/// Floors that a layer's crate may have: the files of its longest chain of imports.
const FLOORS: usize = 8;

/// The rooms of the program, and the rooms that each may know, beside its own.
const ROOMS: [(&str, &[&str]); 5] = [
    ("tools", &[]),
    ("wire", &["tools"]),
    ("engine", &["tools", "wire"]),
    ("servers", &["tools", "wire", "engine"]),
    ("doors", &["tools", "wire", "engine"]),
];

/// What all rooms of the program use; it is no room's.
const TOOLS: [&str; 8] =
    ["connect", "export", "files", "front", "secrets", "signals", "supervise", "terminal"];

/// Crates whose files are not in order yet. An entry goes when its crate keeps to the rule.
const PENDING: &[(&str, &str)] = &[];

type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// No circles of imports, and few floors.
pub(super) fn arrows(tree: &Tree) -> Vec<Fault> {
    let found = all(tree);
    let in_crate = |fault: &Fault, (rule, name): &(&str, &str)| {
        fault.rule == *rule && fault.path.starts_with(&format!("crates/{name}/"))
    };
    let is_there = |name: &str| tree.crates.iter().any(|one| one.name == name);
    let kept = PENDING
        .iter()
        .filter(|entry| is_there(entry.1) && !found.iter().any(|fault| in_crate(fault, entry)));
    let kept: Vec<_> = kept
        .map(|(rule, name)| Fault {
            path: format!("crates/{name}"),
            line: 0,
            rule,
            what: "keeps to the rule: take its entry in `xtask/src/tidy/arrows.rs` away".into(),
        })
        .collect();
    let is_new = |fault: &Fault| !PENDING.iter().any(|entry| in_crate(fault, entry));
    found.into_iter().filter(is_new).chain(kept).collect()
}

fn all(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for root in roots(tree) {
        let modules = modules(tree, &root);
        let arrows = modules.arrows();
        for circle in circles(&arrows) {
            let files = circle.iter().map(|file| inside(file)).collect::<Vec<_>>().join(", ");
            let what = format!("{} files import each other: {files}", circle.len());
            faults.push(Fault { path: circle[0].into(), line: 0, rule: "circle", what });
        }
        if root == "crates/tool-guard/src/main.rs" {
            faults.extend(rooms(&arrows));
        }
        let layer = LAYERS.iter().any(|layer| root == format!("crates/{layer}/src/lib.rs"));
        let chain = longest(&arrows);
        if layer && chain.len() > FLOORS {
            let files = chain.iter().map(|file| inside(file)).collect::<Vec<_>>().join(" → ");
            let what = format!("stands on {} floors, {FLOORS} at most: {files}", chain.len());
            faults.push(Fault { path: root.clone(), line: 0, rule: "floors", what });
        }
    }
    faults
}

/// In the program, a room knows the rooms below it only, and stands on few floors; its folders make no circles.
fn rooms(arrows: &Arrows<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let (mut inner, mut folders) = (Arrows::new(), Arrows::new());
    for (from, to) in arrows.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to))) {
        if folder(from) != folder(to) {
            folders.entry(folder(from)).or_default().insert(folder(to));
            folders.entry(folder(to)).or_default();
        }
        let Some((name, below)) = ROOMS.iter().find(|(name, _)| *name == room(from)) else {
            continue;
        };
        if *name == room(to) {
            inner.entry(from).or_insert_with(BTreeSet::new).insert(to);
            inner.entry(to).or_default();
        } else if !below.contains(&room(to)) {
            let what = format!("{name} may not know {}", inside(to));
            faults.push(Fault { path: from.into(), line: 0, rule: "rooms", what });
        }
    }
    for circle in circles(&folders) {
        let what = format!("folders import each other: {}", circle.join(", "));
        faults.push(Fault { path: "crates/tool-guard/src".into(), line: 0, rule: "circle", what });
    }
    for (name, _) in ROOMS.iter().skip(1) {
        let of_room = inner.iter().filter(|(file, _)| room(file) == *name);
        let chain = longest(&of_room.map(|(file, to)| (*file, to.clone())).collect());
        if chain.len() > FLOORS {
            let files = chain.iter().map(|file| inside(file)).collect::<Vec<_>>().join(" → ");
            let what =
                format!("{name} stands on {} floors, {FLOORS} at most: {files}", chain.len());
            faults.push(Fault { path: chain[0].into(), line: 0, rule: "floors", what });
        }
    }
    faults
}

/// The first folder of a file, or the file's own name.
fn folder(path: &str) -> &str {
    let inside = inside(path);
    inside.split_once('/').map_or(inside.trim_end_matches(".rs"), |(folder, _)| folder)
}

fn room(path: &str) -> &str {
    let folder = folder(path);
    if TOOLS.contains(&folder) { "tools" } else { folder }
}

/// The figures of each target: files, circles, the largest one, floors.
pub(super) fn figures(tree: &Tree) -> Vec<(String, [usize; 4])> {
    let figures = roots(tree).into_iter().map(|root| {
        let modules = modules(tree, &root);
        let arrows = modules.arrows();
        let circles = circles(&arrows);
        let largest = circles.iter().map(Vec::len).max().unwrap_or_default();
        let figures = [arrows.len(), circles.len(), largest, longest(&arrows).len()];
        (root, figures)
    });
    figures.collect()
}

/// The imports inside each circle of a target, one line each.
pub(super) fn inner(tree: &Tree, only: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for root in roots(tree).into_iter().filter(|root| root.contains(only)) {
        let modules = modules(tree, &root);
        let arrows = modules.arrows();
        for circle in circles(&arrows) {
            lines.push(format!("{root}: {} files", circle.len()));
            for from in &circle {
                let to = arrows[from].iter().filter(|to| circle.contains(to)).map(|to| inside(to));
                let to = to.collect::<Vec<_>>().join(", ");
                lines.push(format!("  {} → {to}", inside(from)));
            }
        }
        let chain = longest(&arrows).iter().map(|file| inside(file)).collect::<Vec<_>>();
        lines.push(format!("{root}: longest chain {}: {}", chain.len(), chain.join(" → ")));
    }
    lines
}

pub(super) fn roots(tree: &Tree) -> Vec<String> {
    let is_root = |path: &&str| {
        let parts: Vec<_> = path.split('/').collect();
        matches!(parts[..], ["crates", _, "src", "lib.rs" | "main.rs"])
    };
    tree.texts.iter().map(|text| &*text.path).filter(is_root).map(str::to_owned).collect()
}

pub(super) fn modules(tree: &Tree, root: &str) -> Modules {
    let read =
        |path: &str| tree.texts.iter().find(|text| text.path == path).map(|text| text.text.clone());
    Modules::of(root, &read)
}

/// A path without its crate's folder.
fn inside(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, inside)| inside)
}

/// Sets of files of which each reaches all others.
fn circles<'a>(arrows: &Arrows<'a>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<_, _> = arrows.keys().map(|file| (*file, reached(arrows, file))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (file, below) in &reach {
        if below.contains(file) && !seen.contains(file) {
            let back = |other: &&&str| reach.get(**other).is_some_and(|it| it.contains(file));
            let circle: Vec<_> = below.iter().filter(back).copied().collect();
            seen.extend(circle.iter().copied());
            circles.push(circle);
        }
    }
    circles
}

fn reached<'a>(arrows: &Arrows<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for to in arrows.get(file).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

/// The longest chain of imports; a circle counts as one file.
fn longest<'a>(arrows: &Arrows<'a>) -> Vec<&'a str> {
    let mut known = BTreeMap::new();
    let circles = circles(arrows);
    let chains = arrows.keys().map(|file| chain(file, arrows, &circles, &mut known));
    chains.max_by_key(Vec::len).unwrap_or_default()
}

fn chain<'a>(
    file: &'a str,
    arrows: &Arrows<'a>,
    circles: &[Vec<&'a str>],
    known: &mut BTreeMap<&'a str, Vec<&'a str>>,
) -> Vec<&'a str> {
    if let Some(chain) = known.get(file) {
        return chain.clone();
    }
    let circle = circles.iter().find(|circle| circle.contains(&file));
    let members = circle.map_or_else(|| vec![file], Clone::clone);
    let below = members.iter().flat_map(|member| arrows.get(member).into_iter().flatten());
    let below: BTreeSet<_> = below.copied().filter(|to| !members.contains(to)).collect();
    let mut longest = Vec::new();
    for to in below {
        let found = chain(to, arrows, circles, known);
        if found.len() > longest.len() {
            longest = found;
        }
    }
    longest.insert(0, members[0]);
    for member in members {
        known.insert(member, longest.clone());
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(texts: &[(&str, &str)]) -> Vec<String> {
        all(&Tree::of(texts)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let found = faults(&[
            ("crates/a/src/lib.rs", "mod one; mod two;"),
            ("crates/a/src/one.rs", "use crate::two::Two; struct One;"),
            ("crates/a/src/two.rs", "struct Two(super::one::One);"),
        ]);
        assert_eq!(
            found,
            ["crates/a/src/one.rs: 2 files import each other: one.rs, two.rs [circle]"]
        );
    }

    #[test]
    fn a_re_export_is_followed_to_the_file_that_defines() {
        let found = faults(&[
            ("crates/a/src/lib.rs", "mod one; pub use one::One; mod two; pub use two::*;"),
            ("crates/a/src/one.rs", "pub struct One;"),
            ("crates/a/src/two.rs", "use crate::One; pub struct Two(One);"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_child_that_uses_what_its_parent_defines_makes_a_circle_if_the_parent_uses_it() {
        let child = ("crates/a/src/one/two.rs", "use super::One; pub fn two(_: One) {}");
        let uses = [
            ("crates/a/src/lib.rs", "mod one;"),
            ("crates/a/src/one.rs", "mod two; struct One; fn f() { two::two(One) }"),
            child,
        ];
        assert_eq!(faults(&uses).len(), 1);
        let only_lists = [
            ("crates/a/src/lib.rs", "mod one;"),
            ("crates/a/src/one.rs", "mod two; pub use two::two; struct One;"),
            child,
        ];
        assert!(faults(&only_lists).is_empty());
    }

    #[test]
    fn macros_bodies_and_aliases_are_seen_and_tests_are_not() {
        let lib = ("crates/a/src/lib.rs", "mod one; mod two;");
        let one = ("crates/a/src/one.rs", "use crate::two; pub fn one() { two::two() }");
        for (two, circles) in [
            ("pub fn two() { println!(\"{}\", crate::one::one()) }", 1),
            ("pub fn two() {} #[cfg(test)] mod tests { use crate::one::one; }", 0),
            ("pub fn two() {} #[cfg(test)] fn f() { crate::one::one() }", 0),
            ("pub fn two() { use crate::one as other; other::one() }", 1),
        ] {
            let texts = [lib, one, ("crates/a/src/two.rs", two)];
            assert_eq!(faults(&texts).len(), circles, "{two}");
        }
    }

    #[test]
    fn doors_and_servers_do_not_know_each_other() {
        let main = "mod doors; mod engine; mod files; mod mcp; mod servers;";
        let found = |doors: &str, engine: &str| {
            faults(&[
                ("crates/tool-guard/src/main.rs", main),
                ("crates/tool-guard/src/doors.rs", doors),
                ("crates/tool-guard/src/engine.rs", engine),
                ("crates/tool-guard/src/files.rs", "pub struct File;"),
                ("crates/tool-guard/src/mcp.rs", "use crate::{doors::Door, servers::Server};"),
                ("crates/tool-guard/src/servers.rs", "pub struct Server; use crate::files::File;"),
            ])
        };
        let door = "use crate::engine::Engine; pub struct Door;";
        let engine = "use crate::files::File; pub struct Engine;";
        assert!(found(door, engine).is_empty());
        for (doors, engine) in [
            ("use crate::servers::Server; pub struct Door;", engine),
            (door, "use crate::servers::Server; pub struct Engine;"),
        ] {
            let found = found(doors, engine);
            assert!(found.iter().any(|it| it.contains("may not know servers.rs")), "{found:?}");
        }
    }

    #[test]
    fn a_layer_stands_on_eight_floors() {
        let layer = |floors: usize| {
            let lib: String = (1..=floors).map(|n| format!("mod f{n};")).collect();
            let mut texts = vec![("crates/tr-retry/src/lib.rs".to_owned(), lib)];
            for n in 1..=floors {
                let next = if n < floors {
                    format!("use crate::f{}::X as Y;", n + 1)
                } else {
                    String::new()
                };
                texts.push((
                    format!("crates/tr-retry/src/f{n}.rs"),
                    format!("{next} pub struct X;"),
                ));
            }
            let texts: Vec<_> = texts.iter().map(|(path, text)| (&**path, &**text)).collect();
            faults(&texts)
        };
        assert!(layer(8).is_empty());
        assert!(layer(9)[0].contains("stands on 9 floors, 8 at most: f1.rs → f2.rs"));
    }
}

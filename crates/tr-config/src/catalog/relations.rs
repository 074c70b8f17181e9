//! References between the tools of a catalog: known names, and no dependency cycles.
use super::build::{TOOLS, refuse};
use crate::graph::{self, Cycle, Edge};
use std::collections::HashMap;
use tr_core::ToolId;
use tr_wire::{
    EnvelopeFault,
    read::{At, Faults},
};

/// A tool of the catalog and the tools that it names.
#[derive(Default)]
pub(super) struct Declared {
    /// The catalog's name for it.
    pub(super) key: Box<str>,
    /// `None` for a tool whose faults hide its identity.
    pub(super) id: Option<ToolId>,
    pub(super) depends_on: Vec<Box<str>>,
    pub(super) alternatives: Vec<Box<str>>,
}

/// The labels of tools.
type Labels = Vec<Box<str>>;

/// Resolves the references of each tool, and reports those that are invalid. Gives the labels of the tools
/// that each one depends on, and of its alternatives.
pub(super) fn relate(tools: &[Declared], faults: &mut Faults) -> Vec<(Labels, Labels)> {
    refuse_twins(tools, faults);
    let names = Names::of(tools);
    let mut edges = Vec::with_capacity(tools.len());
    let related = tools.iter().enumerate().map(|(own, tool)| {
        let at = At::Member(&TOOLS, &tool.key);
        let mut find_all =
            |key, references| names.find_all(own, references, &At::Member(&at, key), faults);
        let needs = find_all("depends_on", &tool.depends_on);
        let stand_ins = find_all("alternatives", &tool.alternatives);
        let labels =
            |found: &[Edge<usize>]| found.iter().map(|edge| label(&tools[edge.to])).collect();
        let related = (labels(&needs), labels(&stand_ins));
        edges.push(needs);
        related
    });
    let related = related.collect();
    refuse_cycles(tools, &edges, faults);
    related
}

fn label(tool: &Declared) -> Box<str> {
    tool.id.as_ref().map_or_else(|| tool.key.clone(), |id| id.label().into())
}

fn refuse_twins(tools: &[Declared], faults: &mut Faults) {
    let mut seen: HashMap<&ToolId, &Declared> = HashMap::with_capacity(tools.len());
    for tool in tools {
        let Some(id) = &tool.id else { continue };
        match seen.get(id) {
            Some(first) => {
                let found = format!("{id}, which is also declared as {:?}", first.key);
                refuse(&At::Member(&TOOLS, &tool.key), "each tool once", &found, faults);
            }
            None => drop(seen.insert(id, tool)),
        }
    }
}

struct Names<'a> {
    keys: HashMap<&'a str, usize>,
    labels: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn of(tools: &'a [Declared]) -> Self {
        let keys = tools.iter().enumerate().map(|(i, tool)| (&*tool.key, i)).collect();
        let labels =
            tools.iter().enumerate().filter_map(|(i, tool)| Some((tool.id.as_ref()?.label(), i)));
        Self { keys, labels: labels.collect() }
    }

    /// Looks up the catalog's name first, then the tool's own.
    fn find(&self, name: &str) -> Option<usize> {
        self.keys.get(name).or_else(|| self.labels.get(name)).copied()
    }

    /// The tools that `references` name, each with its index among them.
    fn find_all(
        &self,
        own: usize,
        references: &[Box<str>],
        at: &At<'_>,
        faults: &mut Faults,
    ) -> Vec<Edge<usize>> {
        let mut found: Vec<Edge<usize>> = Vec::with_capacity(references.len());
        for (i, reference) in references.iter().enumerate() {
            let at = At::Element(at, i);
            match self.find(reference) {
                None => {
                    let known = "the name of a tool of this catalog";
                    let fault = EnvelopeFault::new(at.to_string(), known, format!("{reference:?}"));
                    faults.push(fault.meant(reference, self.keys.keys().copied()));
                }
                Some(to) if to == own => {
                    refuse(&at, "the name of another tool", "its own name", faults);
                }
                Some(to) if found.iter().any(|edge| edge.to == to) => {
                    refuse(&at, "each tool once", "a duplicate", faults);
                }
                Some(to) => found.push(Edge { to, at: i }),
            }
        }
        found
    }
}

fn refuse_cycles(tools: &[Declared], edges: &[Vec<Edge<usize>>], faults: &mut Faults) {
    for Cycle { edge, nodes } in graph::walk(edges).cycles {
        let names: Vec<_> = nodes.iter().map(|tool| &*tools[*tool].key).collect();
        // The edge leads from the last tool to the first, which stands at the end again.
        let at = At::Member(&TOOLS, names[names.len() - 2]);
        let at = At::Member(&at, "depends_on");
        refuse(&At::Element(&at, edge.at), "no dependency cycle", &names.join(" → "), faults);
    }
}

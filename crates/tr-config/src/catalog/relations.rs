//! References between the tools of a catalogue: known names, and no dependency cycles.
use super::{
    build::{fault, refuse},
    form::References,
    shape::SourceLocation,
};
use crate::graph::{self, Cycle, Edge};
use std::collections::HashMap;
use tr_core::ToolId;
use tr_wire::read::Faults;

/// A tool of the catalogue and the tools that it names.
#[derive(Default)]
pub(super) struct Declared {
    /// The catalogue's name for it.
    pub(super) key: Box<str>,
    /// `None` for a tool whose faults hide its identity.
    pub(super) id: Option<ToolId>,
    pub(super) location: SourceLocation,
    pub(super) depends_on: References,
    pub(super) alternatives: References,
}

/// The labels of the tools that one tool names.
#[derive(Default)]
pub(super) struct Related {
    pub(super) depends_on: Vec<Box<str>>,
    pub(super) alternatives: Vec<Box<str>>,
}

/// Resolves the references of each tool, and reports those that are invalid.
pub(super) fn relate(tools: &[Declared], faults: &mut Faults) -> Vec<Related> {
    refuse_twins(tools, faults);
    let names = Names::of(tools);
    let mut edges = Vec::with_capacity(tools.len());
    let related = tools.iter().enumerate().map(|(own, tool)| {
        let needs = names.find_all(own, &tool.depends_on, faults);
        let stand_ins = names.find_all(own, &tool.alternatives, faults);
        let labels = |found: &[Edge<&SourceLocation>]| {
            found.iter().map(|edge| label(&tools[edge.to])).collect()
        };
        let related = Related { depends_on: labels(&needs), alternatives: labels(&stand_ins) };
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
    let mut in_order: Vec<_> = tools.iter().collect();
    in_order.sort_by_key(|tool| tool.location.offset);
    for tool in in_order {
        let Some(id) = &tool.id else { continue };
        match seen.get(id) {
            Some(first) => {
                let found = format!("{id}, which is also declared as {:?}", first.key);
                refuse(&tool.location, "each tool once", &found, faults);
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

    /// Looks up the catalogue's name first, then the tool's own.
    fn find(&self, name: &str) -> Option<usize> {
        self.keys.get(name).or_else(|| self.labels.get(name)).copied()
    }

    fn find_all<'r>(
        &self,
        own: usize,
        references: &'r References,
        faults: &mut Faults,
    ) -> Vec<Edge<&'r SourceLocation>> {
        let mut found: Vec<Edge<&'r SourceLocation>> = Vec::with_capacity(references.len());
        for reference in references {
            let location = &reference.location;
            match self.find(&reference.value) {
                None => {
                    let known = "the name of a tool of this catalogue";
                    let fault = fault(location, known, &format!("{:?}", reference.value));
                    faults.push(fault.meant(&reference.value, self.keys.keys().copied()));
                }
                Some(to) if to == own => {
                    refuse(location, "the name of another tool", "its own name", faults);
                }
                Some(to) if found.iter().any(|edge| edge.to == to) => {
                    refuse(location, "each tool once", "a duplicate", faults);
                }
                Some(to) => found.push(Edge { to, at: location }),
            }
        }
        found
    }
}

fn refuse_cycles(tools: &[Declared], edges: &[Vec<Edge<&SourceLocation>>], faults: &mut Faults) {
    for Cycle { edge, nodes } in graph::walk(edges).cycles {
        let names: Vec<_> = nodes.iter().map(|tool| &*tools[*tool].key).collect();
        refuse(edge.at, "no dependency cycle", &names.join(" → "), faults);
    }
}

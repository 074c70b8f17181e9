//! How tools of a catalogue hang together: names that exist, and no circles.
use super::{
    build::{fault, refuse},
    form::References,
    shape::Spot,
};
use crate::{
    ToolId,
    wire::{
        fault::{Fault, Faults},
        suggest::closest,
    },
};
use std::collections::HashMap;

/// A tool of the catalogue and the tools that it names.
pub(super) struct Declared {
    /// The catalogue's name for it.
    pub(super) key: Box<str>,
    /// `None` for a tool with faults that hide who it is.
    pub(super) id: Option<ToolId>,
    pub(super) spot: Spot,
    pub(super) depends_on: References,
    pub(super) alternatives: References,
}

/// The labels of the tools that one tool names.
#[derive(Default)]
pub(super) struct Related {
    pub(super) depends_on: Vec<Box<str>>,
    pub(super) alternatives: Vec<Box<str>>,
}

/// Finds the tools that are named, and reports what cannot be: each tool's in turn.
pub(super) fn relate(tools: &[Declared], faults: &mut Faults) -> Vec<Related> {
    refuse_twins(tools, faults);
    let names = Names::of(tools);
    let mut edges = Vec::with_capacity(tools.len());
    let related = tools.iter().enumerate().map(|(own, tool)| {
        let needs = names.find_all(own, &tool.depends_on, faults);
        let stand_ins = names.find_all(own, &tool.alternatives, faults);
        let labels = |found: &[Edge<'_>]| found.iter().map(|edge| label(&tools[edge.to])).collect();
        let related = Related { depends_on: labels(&needs), alternatives: labels(&stand_ins) };
        edges.push(needs);
        related
    });
    let related = related.collect();
    refuse_circles(tools, &edges, faults);
    related
}

fn label(tool: &Declared) -> Box<str> {
    tool.id.as_ref().map_or_else(|| tool.key.clone(), |id| id.label().into())
}

fn refuse_twins(tools: &[Declared], faults: &mut Faults) {
    let mut seen: HashMap<&ToolId, &Declared> = HashMap::with_capacity(tools.len());
    let mut in_order: Vec<_> = tools.iter().collect();
    in_order.sort_by_key(|tool| tool.spot.offset);
    for tool in in_order {
        let Some(id) = &tool.id else { continue };
        match seen.get(id) {
            Some(first) => {
                let found = format!("{id}, which {:?} is too", first.key);
                refuse(&tool.spot, "each tool once", &found, faults);
            }
            None => drop(seen.insert(id, tool)),
        }
    }
}

/// One tool's need of another.
struct Edge<'a> {
    to: usize,
    spot: &'a Spot,
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

    /// By the catalogue's name, else by the tool's own.
    fn find(&self, name: &str) -> Option<usize> {
        self.keys.get(name).or_else(|| self.labels.get(name)).copied()
    }

    fn find_all<'r>(
        &self,
        own: usize,
        references: &'r References,
        faults: &mut Faults,
    ) -> Vec<Edge<'r>> {
        let mut found: Vec<Edge<'r>> = Vec::with_capacity(references.len());
        for reference in references {
            let spot = &reference.spot;
            match self.find(&reference.value) {
                None => faults.push(self.unknown(&reference.value, spot)),
                Some(to) if to == own => {
                    refuse(spot, "the name of another tool", "its own", faults);
                }
                Some(to) if found.iter().any(|edge| edge.to == to) => {
                    refuse(spot, "each tool once", "a tool for the second time", faults);
                }
                Some(to) => found.push(Edge { to, spot }),
            }
        }
        found
    }

    fn unknown(&self, name: &str, spot: &Spot) -> Fault {
        let known = "the name of a tool of this catalogue";
        let fault = fault(spot, known, &format!("{name:?}"));
        match closest(name, self.keys.keys().copied()) {
            Some(like) => fault.hint(format!("did you mean {like:?}?")),
            None => fault,
        }
    }
}

/// Walks along the needs, without recursion: a chain may be as long as the catalogue.
fn refuse_circles(tools: &[Declared], edges: &[Vec<Edge<'_>>], faults: &mut Faults) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; tools.len()];
    for start in 0..tools.len() {
        // Each entry: a tool on the way, and which of its needs comes next.
        let mut way = Vec::new();
        if marks[start] == Mark::New {
            marks[start] = Mark::Open;
            way.push((start, 0));
        }
        while let Some((tool, next)) = way.last_mut() {
            let Some(edge) = edges[*tool].get(*next) else {
                marks[*tool] = Mark::Done;
                way.pop();
                continue;
            };
            *next += 1;
            match marks[edge.to] {
                Mark::Done => {}
                Mark::New => {
                    marks[edge.to] = Mark::Open;
                    way.push((edge.to, 0));
                }
                Mark::Open => {
                    let circle = way.iter().map(|(tool, _)| *tool).skip_while(|t| *t != edge.to);
                    let names: Vec<_> =
                        circle.chain([edge.to]).map(|tool| &*tools[tool].key).collect();
                    refuse(edge.spot, "no circle of dependencies", &names.join(" → "), faults);
                }
            }
        }
    }
}

//! How much work a schema can make of one value, before it is compiled.
//!
//! The validator remembers what it found only where a reference leads back to a part that it is in,
//! and only of objects and arrays. All else it visits as often as the schema leads there: a definition
//! that two branches name is visited twice, and one that thirty such pairs lead to, 2³⁰ times. So this
//! counts, for each part of the schema, the visits that one visit to it makes of one value. A count
//! that depends on itself grows with each level of the value.
use serde_json::{Map, Value};
use std::{
    collections::{BTreeSet, HashMap},
    mem, ptr,
};

/// A visit to a part makes at most so many, of any one value and those on the way to it.
const MOST_VISITS: u64 = 4_000;
/// Parts that lead from one to the next.
const MOST_DEEP: usize = 256;
/// Those of them for one and the same value: each is on the stack, for each level of the value.
const MOST_HIGH: u64 = 48;
/// How long it is counted.
const MOST_STEPS: u32 = 200_000;

/// Why the work that a schema makes has no bound.
pub(super) fn unbounded(schema: &Value) -> Option<&'static str> {
    let graph = Graph::of(schema);
    let mut counts = Counts::default();
    let named = graph.parts.iter().flat_map(|part| &part.edges).filter(|edge| edge.by_reference);
    let firsts: BTreeSet<usize> = named.map(|edge| edge.to).chain([0]).collect();
    let mut each = firsts.into_iter().map(|part| {
        counts.seen.clear();
        counts.count(&graph, (Kind::High, part))?;
        counts.count(&graph, (Kind::Walk, part))
    });
    each.find_map(Result::err)
}

/// Where a keyword applies its schema, as seen from the value that it is in.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// To the same value.
    Here,
    /// To one property or item only, which no other of these is applied to.
    OneBelow,
    /// To properties or items that others may be applied to as well.
    Below,
}

impl Place {
    /// Of a keyword with schemas in it.
    pub(super) fn of(key: &str, inner: &Value) -> Option<Self> {
        Some(match key {
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
            | "dependencies" => Self::Here,
            "properties" | "prefixItems" => Self::OneBelow,
            "items" if inner.is_array() => Self::OneBelow,
            "patternProperties"
            | "additionalProperties"
            | "additionalItems"
            | "items"
            | "contains"
            | "propertyNames"
            | "unevaluatedProperties"
            | "unevaluatedItems" => Self::Below,
            _ => return None,
        })
    }
}

struct Edge {
    to: usize,
    place: Place,
    by_reference: bool,
}

#[derive(Default)]
struct Part {
    edges: Vec<Edge>,
    /// It asks what other keywords have evaluated.
    marks: bool,
}

struct Graph<'s> {
    root: &'s Value,
    /// The parts, the document that each is in, and their indices by address.
    found: Vec<(&'s Value, &'s Value)>,
    index: HashMap<*const Value, usize>,
    parts: Vec<Part>,
    names: Names<'s>,
}

/// The parts that references can name other than by a pointer, each with its document.
#[derive(Default)]
struct Names<'s> {
    ids: Vec<(&'s str, &'s Value)>,
    anchors: Vec<(&'s str, &'s Value, &'s Value)>,
    recursive: Vec<&'s Value>,
}

impl<'s> Names<'s> {
    fn collect(&mut self, value: &'s Value, mut document: &'s Value) {
        match value {
            Value::Object(map) => {
                if let Some(id) = id(map) {
                    self.ids.push((id, value));
                    document = value;
                }
                for (key, inner) in map {
                    match inner {
                        Value::String(name) if key == "$anchor" || key == "$dynamicAnchor" => {
                            self.anchors.push((name, value, document));
                        }
                        // Drafts 4 to 7 write an anchor as an id.
                        Value::String(name) if key.ends_with("id") && name.starts_with('#') => {
                            self.anchors.push((&name[1..], value, document));
                        }
                        Value::Bool(true) if key == "$recursiveAnchor" => {
                            self.recursive.push(value);
                        }
                        _ => self.collect(inner, document),
                    }
                }
            }
            Value::Array(all) => all.iter().for_each(|inner| self.collect(inner, document)),
            _ => {}
        }
    }
}

/// The id that makes a part a document of its own.
fn id(map: &Map<String, Value>) -> Option<&str> {
    let id = map.get("$id").or_else(|| map.get("id"))?.as_str()?;
    (!id.starts_with('#')).then_some(id)
}

impl<'s> Graph<'s> {
    fn of(root: &'s Value) -> Self {
        let mut names = Names::default();
        names.collect(root, root);
        let mut graph = Self { root, found: vec![], index: HashMap::new(), parts: vec![], names };
        graph.part(root, root);
        while let Some(&(value, document)) = graph.found.get(graph.parts.len()) {
            let part = graph.read(value, document);
            graph.parts.push(part);
        }
        graph
    }

    fn part(&mut self, value: &'s Value, document: &'s Value) -> usize {
        let next = self.found.len();
        let at = *self.index.entry(ptr::from_ref(value)).or_insert(next);
        if at == next {
            self.found.push((value, document));
        }
        at
    }

    fn read(&mut self, value: &'s Value, document: &'s Value) -> Part {
        let mut part = Part::default();
        let Value::Object(map) = value else { return part };
        let document = if id(map).is_some() { value } else { document };
        for (key, inner) in map {
            let place = match &**key {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let Value::String(reference) = inner else { continue };
                    let targets = match &**key {
                        "$recursiveRef" => self.recursive_targets(),
                        _ => self.targets(reference, document),
                    };
                    for (target, document) in targets {
                        let to = self.part(target, document);
                        part.edges.push(Edge { to, place: Place::Here, by_reference: true });
                    }
                    continue;
                }
                key => {
                    part.marks |= key.starts_with("unevaluated");
                    let Some(place) = Place::of(key, inner) else { continue };
                    place
                }
            };
            let many = matches!(
                &**key,
                "dependentSchemas" | "dependencies" | "properties" | "patternProperties"
            );
            let schemas: Vec<&Value> = match inner {
                Value::Object(map) if many => map.values().collect(),
                Value::Array(all) => all.iter().collect(),
                one => vec![one],
            };
            for schema in schemas.into_iter().filter(|schema| schema.is_object()) {
                let to = self.part(schema, document);
                part.edges.push(Edge { to, place, by_reference: false });
            }
        }
        part
    }

    /// What a reference can mean: all parts that it may name, where that depends on the way there.
    fn targets(&self, reference: &str, document: &'s Value) -> Vec<(&'s Value, &'s Value)> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
        let documents: Vec<&Value> = if base.is_empty() {
            vec![document]
        } else {
            let last = |id: &str| id.trim_end_matches('#').rsplit('/').next().map(str::to_owned);
            let named = self.names.ids.iter().filter(|(id, _)| last(id) == last(base));
            named.map(|(_, document)| *document).collect()
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            let inner = documents.iter();
            inner.filter_map(|inner| Some((inner.pointer(&fragment)?, *inner))).collect()
        } else {
            let anchors = self.names.anchors.iter().filter(|(name, ..)| **name == *fragment);
            anchors.map(|(_, part, document)| (*part, *document)).collect()
        }
    }

    fn recursive_targets(&self) -> Vec<(&'s Value, &'s Value)> {
        let marked = self.names.recursive.iter().map(|part| (*part, *part));
        marked.chain([(self.root, self.root)]).collect()
    }
}

/// What is counted of a part.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Kind {
    /// The visits to see whether it holds.
    Walk,
    /// Those of them that stay at the value.
    Here,
    /// The visits to find what its keywords have evaluated.
    Mark,
    /// The parts that lead from one to the next, at the value.
    High,
}

#[derive(Default)]
struct Counts {
    known: HashMap<(Kind, usize), u64>,
    /// What was counted on a path from the same first part, and depends on it: the validator, too,
    /// compiles a part once, on the first path to it.
    seen: HashMap<(Kind, usize), u64>,
    /// What is being counted, from the first on.
    path: Vec<(Kind, usize)>,
    /// The first on the path that what was counted since led back to.
    back: usize,
    steps: u32,
}

impl Counts {
    /// # Errors
    /// If it has no bound.
    fn count(&mut self, graph: &Graph<'_>, of: (Kind, usize)) -> Result<u64, &'static str> {
        if let Some(known) = self.known.get(&of) {
            return Ok(*known);
        }
        if let Some(seen) = self.seen.get(&of) {
            self.back = 0;
            return Ok(*seen);
        }
        self.steps += 1;
        if self.steps > MOST_STEPS || self.path.len() > MOST_DEEP {
            return Err("its parts refer to one another in too many ways");
        }
        let (depth, before) = (self.path.len(), mem::replace(&mut self.back, usize::MAX));
        self.path.push(of);
        let visits = self.sum(graph, of)?;
        self.path.pop();
        if visits > MOST_VISITS || of.0 == Kind::High && visits > MOST_HIGH {
            return Err("its parts refer to one another too often");
        }
        // What leads back to an earlier one depends on the way there.
        if self.back >= depth {
            self.known.insert(of, visits);
            self.back = usize::MAX;
        } else {
            self.seen.insert(of, visits);
        }
        self.back = self.back.min(before);
        Ok(visits)
    }

    fn sum(&mut self, graph: &Graph<'_>, (kind, at): (Kind, usize)) -> Result<u64, &'static str> {
        let part = &graph.parts[at];
        let (mut sum, mut most) = (1, 0);
        if part.marks && kind == Kind::Walk {
            sum += self.next(graph, (Kind::Mark, at), false)?;
        }
        for edge in &part.edges {
            let is_here = edge.place == Place::Here;
            if kind == Kind::High && is_here {
                most = most.max(self.next(graph, (kind, edge.to), false)?);
            } else if kind == Kind::Walk || kind == Kind::Mark && is_here {
                let visits = self.next(graph, (Kind::Walk, edge.to), edge.by_reference)?;
                match edge.place {
                    Place::OneBelow => most = most.max(visits),
                    Place::Here | Place::Below => sum += visits,
                }
            }
            if matches!(kind, Kind::Here | Kind::Mark) && is_here {
                sum += self.next(graph, (kind, edge.to), false)?;
            }
        }
        Ok(sum + most)
    }

    fn next(
        &mut self,
        graph: &Graph<'_>,
        of: (Kind, usize),
        by_reference: bool,
    ) -> Result<u64, &'static str> {
        match self.path.iter().position(|on| *on == of) {
            None => self.count(graph, of),
            // Remembered, except of a value that is no object or array.
            Some(at) if by_reference => {
                self.back = self.back.min(at);
                self.count(graph, (Kind::Here, of.1))
            }
            Some(_) => Err("a part of it refers to itself for one and the same value"),
        }
    }
}

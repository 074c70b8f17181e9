//! Validates a draft: known names, no dependency cycles, a tool for every required call.
use super::{
    Body, Call, Candidate, Draft, MAX_CALLS, Need, Node, Plan, PlanError, Tools,
    limits::check_timeout,
    names::{self, is_blank},
    read,
};
use crate::{json::below, template::Template};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use tr_config::graph::{self, Edge, Walk};
use tr_core::{Json, ToolId, ToolManifest, canonical::Pointer};
use tr_wire::{
    EnvelopeFault,
    read::{Faults, Kind, Source},
};

impl Plan {
    /// Reads a plan in JSON, and checks it.
    ///
    /// # Errors
    /// Lists every mistake with its JSON pointer. No call has started.
    pub fn from_json(text: &str, tools: &Tools) -> Result<Self, PlanError> {
        let mut faults = Faults::of(text);
        let draft = read::draft(text, &mut faults);
        plan(&draft, tools, faults)
    }
}

impl Draft {
    /// Validates the draft.
    ///
    /// # Errors
    /// Lists every mistake with the JSON pointer that it has in the written form. No call has
    /// started.
    pub fn check(&self, tools: &Tools) -> Result<Plan, PlanError> {
        plan(self, tools, Faults::of(""))
    }
}

/// Checks the whole draft, after the faults of its text.
fn plan(draft: &Draft, tools: &Tools, mut faults: Faults) -> Result<Plan, PlanError> {
    names::check(draft, &mut faults);
    draft.limits.check(&mut faults);
    let count = draft.calls.len();
    // A draft that could not be read has no calls, and has a fault already.
    if count > MAX_CALLS || (count == 0 && faults.is_empty()) {
        faults.add("/calls", "1 to 10000 calls", count.to_string());
        return Err(PlanError::new(faults));
    }
    let manifests = tools.by_label();
    let names = Names::of(&draft.calls, &mut faults);
    let mut nodes = Vec::with_capacity(count);
    let mut edges = Vec::with_capacity(count);
    for (own, call) in draft.calls.iter().enumerate() {
        let parent = below("/calls", own);
        let manifest = manifests.get(&*call.tool).copied();
        let candidates = candidates(call, manifest, tools, &manifests, &parent, &mut faults);
        edges.push(names.needs(own, call, manifest, &candidates, &parent, &mut faults));
        check_timeout(call.timeout, &parent, "timeout_ms", &mut faults);
        check_timeout(call.attempt_timeout, &parent, "attempt_timeout_ms", &mut faults);
        nodes.push(node(call, manifest, candidates));
    }
    check_defaults(&draft.calls, &edges, &names, &mut faults);
    for (own, needs) in edges.iter().enumerate() {
        let defaults: HashMap<_, _> =
            draft.calls[own].defaults.iter().map(|(of, value)| (&**of, value)).collect();
        for Edge { to, .. } in needs {
            let default = defaults.get(draft.calls[*to].name()).copied().cloned();
            nodes[own].needs.push(Need { of: *to, default });
            nodes[*to].needed_by.push(own);
        }
    }
    let Walk { cycles, order, .. } = graph::walk(&edges);
    for cycle in &cycles {
        let names: Vec<_> = cycle.nodes.iter().map(|call| draft.calls[*call].name()).collect();
        faults.add(&*cycle.edge.at, "no dependency cycle", names.join(" → "));
    }
    if cycles.is_empty() {
        check_values(&nodes, &mut faults);
        check_candidates(&nodes, &order, &mut faults);
    }
    if !faults.is_empty() {
        return Err(PlanError::new(faults));
    }
    let Draft { turn, session, agent, limits, calls: _ } = draft;
    let (turn, session, agent) = (turn.clone(), session.clone(), agent.clone());
    Ok(Plan(Arc::new(Body { turn, session, agent, limits: *limits, nodes })))
}

fn node(call: &Call, manifest: Option<&Arc<ToolManifest>>, candidates: Vec<Candidate>) -> Node {
    let manifest = manifest.map(|manifest| &**manifest);
    let value = || manifest.and_then(|manifest| manifest.default_value.clone());
    Node {
        name: call.name().into(),
        tool: (&*call.tool).into(),
        candidates,
        needs: Vec::new(),
        needed_by: Vec::new(),
        required: call.required.unwrap_or_else(|| manifest.is_some_and(|tool| tool.required)),
        default_value: call.default_value.clone().or_else(value),
        priority: call
            .priority
            .unwrap_or_else(|| manifest.map(|tool| tool.priority).unwrap_or_default()),
        timeout: call.timeout,
        attempt_timeout: call.attempt_timeout,
        idempotency_key: call.idempotency_key.clone(),
        cancellation_id: call.cancellation_id.clone(),
    }
}

/// The available candidate tools of a call.
fn candidates(
    call: &Call,
    manifest: Option<&Arc<ToolManifest>>,
    tools: &Tools,
    manifests: &HashMap<&str, &Arc<ToolManifest>>,
    parent: &str,
    faults: &mut Faults,
) -> Vec<Candidate> {
    let given = call.params.clone().unwrap_or_else(Json::empty_object);
    let own = params(&given, &below(parent, "params"), faults);
    let mut seen = HashSet::from([&*call.tool]);
    let mut wanted = vec![(&*call.tool, own.clone())];
    match (&call.alternatives, manifest) {
        (Some(all), _) => {
            for (i, one) in all.iter().enumerate() {
                let at = format!("{parent}/alternatives/{i}");
                let of_its_own =
                    one.params.as_ref().map(|own| params(own, &below(&at, "params"), faults));
                if seen.insert(&one.tool) {
                    wanted.push((&one.tool, of_its_own.unwrap_or_else(|| own.clone())));
                } else if !is_blank(&one.tool) {
                    let found = format!("{:?} again", one.tool);
                    faults.add(at, "each tool once", found);
                }
            }
        }
        (None, Some(manifest)) => {
            let others = manifest.alternatives.iter().filter(|label| seen.insert(label));
            wanted.extend(others.map(|label| (&**label, own.clone())));
        }
        (None, None) => {}
    }
    let wanted = wanted.into_iter().map(|(label, params)| {
        let manifest = manifests.get(label).copied().cloned();
        let tool = manifest.as_ref().map_or_else(|| ToolId::new(label), |m| m.tool.clone());
        let declared = manifest.as_ref().and_then(|manifest| manifest.effect).or(call.effect);
        let effect = (declared.unwrap_or(tools.undeclared_effect()), declared.is_some());
        Candidate { tool, label: label.into(), manifest, effect, params }
    });
    wanted.filter(|candidate| tools.offers(&candidate.tool)).collect()
}

fn params(params: &Json, at: &str, faults: &mut Faults) -> Template {
    let kind = Source::Json(params.as_raw()).kind();
    if kind != Kind::Object {
        faults.add(at, "an object", kind.name());
    }
    Template::of(params, at, faults)
}

struct Names<'d> {
    calls: HashMap<&'d str, usize>,
    in_order: Vec<&'d str>,
    tools: HashMap<&'d str, Vec<usize>>,
}

impl<'d> Names<'d> {
    fn of(calls: &'d [Call], faults: &mut Faults) -> Self {
        let in_order = calls.iter().map(Call::name).collect();
        let mut names = Self { calls: HashMap::new(), in_order, tools: HashMap::new() };
        for (own, call) in calls.iter().enumerate() {
            names.tools.entry(&call.tool).or_default().push(own);
            if is_blank(call.name()) {
                continue;
            }
            if let Some(first) = names.calls.insert(call.name(), own) {
                names.calls.insert(call.name(), first);
                let found = format!("{:?}, as /calls/{first} is", call.name());
                let at = format!("/calls/{own}/name");
                let fault = EnvelopeFault::new(at, "a unique name", found);
                faults.push(fault.hint("give calls of one tool different names"));
            }
        }
        names
    }

    /// The dependencies of a call: its own `depends_on`, the sources of its params, and its
    /// manifest's.
    fn needs(
        &self,
        own: usize,
        call: &Call,
        manifest: Option<&Arc<ToolManifest>>,
        candidates: &[Candidate],
        parent: &str,
        faults: &mut Faults,
    ) -> Vec<Edge<String>> {
        let mut needs: Vec<Edge<String>> = Vec::new();
        let mut seen = HashSet::new();
        for (i, name) in call.after.iter().enumerate() {
            let at = format!("{parent}/depends_on/{i}");
            match self.find(own, name, &at, faults) {
                Some(to) if seen.insert(to) => needs.push(Edge { to, at }),
                Some(_) => {
                    let found = format!("{name:?} again");
                    faults.add(at, "each call once", found);
                }
                None => {}
            }
        }
        let sources = candidates.iter().flat_map(|candidate| candidate.params.sources());
        for name in sources.map(|(name, _)| name).collect::<BTreeSet<_>>() {
            let at = below(parent, "params");
            if let Some(to) = self.find(own, name, &at, faults)
                && seen.insert(to)
            {
                needs.push(Edge { to, at });
            }
        }
        let tools = manifest.into_iter().flat_map(|manifest| &manifest.depends_on);
        for to in tools.filter_map(|tool| self.tools.get(&**tool)).flatten() {
            if *to != own && seen.insert(*to) {
                needs.push(Edge { to: *to, at: below(parent, "tool") });
            }
        }
        needs.sort_by_key(|need| need.to);
        needs
    }

    fn find(&self, own: usize, name: &str, at: &str, faults: &mut Faults) -> Option<usize> {
        const EXPECTED: &str = "the name of another call";
        match self.calls.get(name) {
            Some(to) if *to != own => return Some(*to),
            Some(_) => faults.add(at, EXPECTED, "the call itself"),
            None if is_blank(name) => {}
            None => {
                let fault = EnvelopeFault::new(at, EXPECTED, format!("{name:?}"));
                faults.push(fault.meant(name, self.in_order.iter().copied()));
            }
        }
        None
    }
}

/// A default has to be for a dependency.
fn check_defaults(
    calls: &[Call],
    edges: &[Vec<Edge<String>>],
    names: &Names<'_>,
    faults: &mut Faults,
) {
    for (own, call) in calls.iter().enumerate() {
        let mut seen = HashSet::new();
        for (of, _) in &call.defaults {
            let at = below(&format!("/calls/{own}/defaults"), of);
            let needed = |to: &usize| edges[own].iter().any(|edge| edge.to == *to);
            if !names.calls.get(&**of).is_some_and(needed) {
                faults.add(at, "the name of a call that this one needs", format!("{of:?}"));
            } else if !seen.insert(&**of) {
                faults.add(at, "each call once", format!("{of:?} again"));
            }
        }
    }
}

/// A value that params take from a result has to exist in its default value, too.
fn check_values(nodes: &[Node], faults: &mut Faults) {
    for (own, node) in nodes.iter().enumerate() {
        let mut seen: HashSet<(&str, &Pointer)> = HashSet::new();
        for (name, pointer) in
            node.candidates.iter().flat_map(|candidate| candidate.params.sources())
        {
            let Some(need) = node.needs.iter().find(|need| *nodes[need.of].name == *name) else {
                continue;
            };
            let value = need.default.as_ref().or(nodes[need.of].default_value.as_ref());
            let missing = value.is_some_and(|value| pointer.find(value.as_raw()).is_none());
            if missing && seen.insert((name, pointer)) {
                let at = match need.default {
                    Some(_) => below(&format!("/calls/{own}/defaults"), name),
                    None => format!("/calls/{}/default_value", need.of),
                };
                let expected = format!("a default with a value at {pointer}");
                let found = format!("none there, and /calls/{own}/params uses it");
                faults.add(at, expected, found);
            }
        }
    }
}

/// A required call has to have a tool, and so have its dependencies without defaults.
fn check_candidates(nodes: &[Node], order: &[usize], faults: &mut Faults) {
    let mut has_tool = vec![true; nodes.len()];
    for own in order {
        let node = &nodes[*own];
        let is_met = |need: &&Need| {
            has_tool[need.of] || need.default.is_some() || nodes[need.of].default_value.is_some()
        };
        let unmet = node.needs.iter().find(|need| !is_met(need)).map(|need| need.of);
        has_tool[*own] = !node.candidates.is_empty() && unmet.is_none();
        if has_tool[*own] || !node.required {
            continue;
        }
        let parent = format!("/calls/{own}");
        let (at, found) = match unmet {
            Some(of) => (parent, format!("its dependency {:?} without a tool", nodes[of].name)),
            None => (below(&parent, "tool"), format!("{:?}, which is not available", node.tool)),
        };
        faults.add(at, "an available tool for a required call", found);
    }
}

//! Reports names in a plan that are empty or only white space.
use super::Draft;
use crate::json::below;
use std::collections::HashSet;
use tr_wire::read::Faults;

pub(super) fn is_blank(name: &str) -> bool {
    name.trim().is_empty()
}

/// Reports each invalid name, except those whose text has a fault already.
pub(super) fn check(draft: &Draft, faults: &mut Faults) {
    let reported = faults.iter().map(|fault| fault.pointer().into()).collect();
    let mut names = Names { reported, faults };
    names.optional(&draft.turn, "/turn", "a name");
    names.optional(&draft.session, "/session", "a name");
    names.optional(&draft.agent, "/agent", "a name");
    for (own, call) in draft.calls.iter().enumerate() {
        let parent = below("/calls", own);
        names.check(&call.tool, &parent, "tool", "the name of a tool");
        // A call without a name has its tool's name.
        if let Some(name) = call.name.as_ref().filter(|name| **name != call.tool) {
            names.check(name, &parent, "name", "a name");
        }
        for (i, name) in call.after.iter().enumerate() {
            names.check(name, &below(&parent, "depends_on"), i, "the name of another call");
        }
        for (i, one) in call.alternatives.iter().flatten().enumerate() {
            let all = below(&parent, "alternatives");
            match one.params {
                Some(_) => names.check(&one.tool, &below(&all, i), "tool", "the name of a tool"),
                None => names.check(&one.tool, &all, i, "the name of a tool, or an object"),
            }
        }
        for (name, member) in
            [(&call.idempotency_key, "idempotency_key"), (&call.cancellation_id, "cancellation_id")]
        {
            names.optional(name, &below(&parent, member), "a name");
        }
    }
}

struct Names<'f> {
    /// The pointers that have a fault already.
    reported: HashSet<Box<str>>,
    faults: &'f mut Faults,
}

impl Names<'_> {
    fn check(
        &mut self,
        name: &str,
        parent: &str,
        member: impl std::fmt::Display,
        expected: &'static str,
    ) {
        if is_blank(name) && !self.reported.contains(parent) {
            self.fault(name, below(parent, member), expected);
        }
    }

    fn optional(&mut self, name: &Option<Box<str>>, at: &str, expected: &'static str) {
        if let Some(name) = name.as_deref().filter(|name| is_blank(name)) {
            self.fault(name, at.to_owned(), expected);
        }
    }

    fn fault(&mut self, name: &str, at: String, expected: &'static str) {
        if !self.reported.contains(&*at) {
            let found = if name.is_empty() { "an empty string" } else { "white space" };
            self.faults.add(at, expected, found);
        }
    }
}

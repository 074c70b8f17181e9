//! Reports names in a plan that are empty or only white space.
use super::Draft;
use crate::json::below;
use std::{collections::HashSet, fmt::Display};
use tr_wire::read::Faults;

pub(super) fn is_blank(name: &str) -> bool {
    name.trim().is_empty()
}

/// Reports each invalid name, except those whose text, or whose parent's, has a fault already.
pub(super) fn check(draft: &Draft, faults: &mut Faults) {
    let reported: HashSet<Box<str>> = faults.iter().map(|fault| fault.pointer().into()).collect();
    let mut check =
        |name: Option<&str>, parent: &str, member: &dyn Display, expected: &'static str| {
            let Some(name) = name.filter(|name| is_blank(name)) else { return };
            let at = below(parent, member);
            if !reported.contains(parent) && !reported.contains(&*at) {
                let found = if name.is_empty() { "an empty string" } else { "white space" };
                faults.add(at, expected, found);
            }
        };
    check(draft.turn.as_deref(), "", &"turn", "a name");
    check(draft.session.as_deref(), "", &"session", "a name");
    check(draft.agent.as_deref(), "", &"agent", "a name");
    for (own, call) in draft.calls.iter().enumerate() {
        let parent = below("/calls", own);
        check(Some(&call.tool), &parent, &"tool", "the name of a tool");
        // A call without a name has its tool's name.
        let name = call.name.as_deref().filter(|name| *name != &*call.tool);
        check(name, &parent, &"name", "a name");
        for (i, name) in call.after.iter().enumerate() {
            check(Some(name), &below(&parent, "depends_on"), &i, "the name of another call");
        }
        for (i, one) in call.alternatives.iter().flatten().enumerate() {
            let all = below(&parent, "alternatives");
            match one.params {
                Some(_) => check(Some(&one.tool), &below(&all, i), &"tool", "the name of a tool"),
                None => check(Some(&one.tool), &all, &i, "the name of a tool, or an object"),
            }
        }
        check(call.idempotency_key.as_deref(), &parent, &"idempotency_key", "a name");
        check(call.cancellation_id.as_deref(), &parent, &"cancellation_id", "a name");
    }
}

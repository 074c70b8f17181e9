//! Exceptions from the rules, each with its reason.

use super::Fault;

/// One file that may break one rule.
#[derive(Debug)]
pub(super) struct Allowed {
    rule: &'static str,
    path: &'static str,
    why: &'static str,
}

pub(super) const ALLOWED: &[Allowed] = &[
    Allowed {
        rule: "boxed",
        path: "crates/tr-idempotency/src/run.rs",
        why: "a driver can outlive its caller, so it lives in a recycled cell that a task can take",
    },
    Allowed {
        rule: "boxed",
        path: "crates/tr-retry/src/future.rs",
        why: "the timers of a wait, named `Sleep`s, made only after an attempt has failed",
    },
    Allowed {
        rule: "boxed",
        path: "crates/tr-timeout/src/future.rs",
        why: "the timer of a deadline, a named `Sleep`, made only while a tool is not ready",
    },
    Allowed {
        rule: "boxed",
        path: "crates/tr-timeout/src/wait.rs",
        why: "the timer of the wait for readiness, a named `Sleep`, made only while a tool is not ready",
    },
    Allowed {
        rule: "boxed",
        path: "crates/tr-turn/src/cancel.rs",
        why: "a withdrawal is the caller's own type, and made once per attempt of a turn",
    },
    Allowed {
        rule: "unfinished",
        path: "fuzz/targets/mcp_lines.rs",
        why: "a program has no library: the target takes its readers, and not what else uses them",
    },
    Allowed {
        rule: "unfinished",
        path: "fuzz/targets/sidecars.rs",
        why: "a program has no library: the target takes its readers, and not what else uses them",
    },
    Allowed {
        rule: "unfinished",
        path: "tests/kills/bank.rs",
        why: "it shares the readers of HTTP with `tests/mcp-http`, and needs only some",
    },
    Allowed {
        rule: "unfinished",
        path: "tests/kills/main.rs",
        why: "it shares the readers of HTTP with `tests/mcp-http`, and needs only some",
    },
    Allowed {
        rule: "phrases",
        path: "crates/tr-testkit/src/postgres/start.rs",
        why: "PostgreSQL may run as the unprivileged system user of that name",
    },
    Allowed {
        rule: "phrases",
        path: "xtask/src/tidy/phrases.rs",
        why: "it lists the phrases, and its tests plant them",
    },
];

impl Allowed {
    pub(super) fn covers(&self, fault: &Fault) -> bool {
        self.rule == fault.rule && self.path == fault.path
    }
}

/// Exceptions that nothing needs any more.
pub(super) fn stale(found: &[Fault], allowed: &[Allowed]) -> Vec<Fault> {
    allowed
        .iter()
        .filter(|entry| !found.iter().any(|fault| entry.covers(fault)))
        .map(|entry| Fault {
            path: entry.path.into(),
            line: 0,
            rule: "allow",
            what: format!("keeps to `{}`: take its exception ({}) away", entry.rule, entry.why),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{faults, shape, tree::Tree};

    const EXCEPTION: Allowed = Allowed { rule: "header", path: "src/main.rs", why: "generated" };

    #[test]
    fn an_exception_covers_its_file_and_rule_only() {
        let tree = Tree::of(&[("src/main.rs", "fn main() {}"), ("src/other.rs", "fn f() {}")]);
        let left = faults(&tree, &[shape::header], &[EXCEPTION]);
        assert_eq!(left.iter().map(|fault| &*fault.path).collect::<Vec<_>>(), ["src/other.rs"]);
    }

    #[test]
    fn an_exception_without_a_fault_is_a_fault() {
        let tree = Tree::of(&[("src/main.rs", "//! Good.\n")]);
        let left = faults(&tree, &[shape::header], &[EXCEPTION]);
        assert_eq!(left.len(), 1);
        assert_eq!(
            left[0].to_string(),
            "src/main.rs: keeps to `header`: take its exception (generated) away [allow]"
        );
    }
}

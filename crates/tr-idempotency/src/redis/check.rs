//! Whether a server keeps the promises, by what it says of itself.
use super::Durability;
use std::fmt::Write as _;

/// The first version whose scripts can be let pass when the memory is full.
const MAJOR: u64 = 7;

/// What the owner of the server takes upon himself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accepted {
    pub(super) eviction: bool,
    pub(super) no_persistence: bool,
}

/// Reads the server's `INFO`: warnings, or all reasons not to use it.
pub(super) fn check(
    info: &str,
    durability: Durability,
    accepted: Accepted,
) -> Result<Vec<String>, String> {
    let field = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());

    let version = field("redis_version").unwrap_or("unknown");
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    if major.is_none_or(|major| major < MAJOR) {
        faults.push(format!("its version is {version}: use {MAJOR}.0 or later"));
    }

    if field("role") != Some("master") {
        faults.push(
            "it is a replica, and refuses writes: give the address of the primary, or one that \
             follows it"
                .into(),
        );
    }

    if field("cluster_enabled") == Some("1") {
        faults.push(
            "it is a node of a cluster, and keeps a part of the keys only: use a server that keeps \
             all of them"
                .into(),
        );
    }

    let policy = field("maxmemory_policy").unwrap_or("unknown");
    if policy != "noeviction" {
        let fault = format!(
            "`maxmemory-policy` is {policy}, so it may forget a call in flight, which then runs \
             twice: set it to noeviction"
        );
        if number("maxmemory") == Some(0) {
            warnings.push(format!("{fault}, or never set `maxmemory`"));
        } else if accepted.eviction {
            warnings.push(fault);
        } else {
            faults.push(format!("{fault} (or accept that: `evicting_at_my_own_risk`)"));
        }
    }

    // What is saved now and then is told from what is never saved by its last save only.
    if field("aof_enabled") != Some("1") && !accepted.no_persistence {
        warnings.push(
            "it does not write each change to its disk (`appendonly no`), so a restart forgets \
             calls, which then may run twice: set `appendonly yes` (or accept that: \
             `forgetting_on_restart`)"
                .into(),
        );
    }

    if let Durability::Wait { replicas, .. } = durability {
        let have = number("connected_slaves").unwrap_or(0);
        if have < u64::from(replicas.get()) {
            faults.push(format!(
                "{have} replicas follow it, and each write is to wait for {replicas}: start the \
                 replicas"
            ));
        }
    } else if number("connected_slaves").is_some_and(|replicas| replicas > 0) {
        warnings.push(
            "it has replicas and writes do not wait for them, so a failover may forget calls, \
             which then may run twice: use `Durability::Wait`"
                .into(),
        );
    }

    if faults.is_empty() {
        return Ok(warnings);
    }
    let mut all = String::from("this server cannot keep records:");
    for fault in &faults {
        let _ = write!(all, "\n- {fault}");
    }
    Err(all)
}

//! Checks by `INFO` whether a server can keep records.
use super::durability::Durability;

/// The first version with script flags, which let some scripts run when the memory is full.
const MAJOR: u64 = 7;

/// The risks that the user accepts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accepted {
    pub(super) eviction: bool,
    pub(super) no_persistence: bool,
}

/// Reads the server's `INFO`: returns warnings, or every reason not to use the server. They say what to do
/// at the server and name no method: programs show them to people.
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
        faults.push(format!("version {version} is too old: use {MAJOR}.0 or later"));
    }

    if field("role") != Some("master") {
        faults.push(
            "it is a replica and refuses writes: use the address of the primary, or its sentinels"
                .into(),
        );
    }

    if field("cluster_enabled") == Some("1") {
        faults.push(
            "it is a cluster node and keeps only a part of the keys: use a server that keeps \
             all of them"
                .into(),
        );
    }

    let policy = field("maxmemory_policy").unwrap_or("unknown");
    if policy != "noeviction" {
        let fault = format!(
            "`maxmemory-policy` is {policy}, so it may evict a call in flight, which then runs \
             twice: set it to `noeviction`"
        );
        if number("maxmemory") == Some(0) {
            warnings.push(format!("{fault}, or never set `maxmemory`"));
        } else if accepted.eviction {
            warnings.push(fault);
        } else {
            faults.push(fault);
        }
    }

    // `INFO` does not tell periodic snapshots from no persistence.
    if field("aof_enabled") != Some("1") && !accepted.no_persistence {
        warnings.push(
            "it does not write each change to its disk (`appendonly no`), so a restart loses \
             calls, which then may run twice: set `appendonly yes`"
                .into(),
        );
    }

    if let Durability::Wait { replicas, .. } = durability {
        let have = number("connected_slaves").unwrap_or(0);
        if have < u64::from(replicas.get()) {
            faults.push(format!(
                "{have} replicas are connected, and each write waits for {replicas}: start the \
                 replicas"
            ));
        }
    } else if number("connected_slaves").is_some_and(|replicas| replicas > 0) {
        warnings.push(
            "writes do not wait for its replicas, so a failover may lose calls, \
             which then may run twice: promote only a replica that has all writes"
                .into(),
        );
    }

    if faults.is_empty() {
        return Ok(warnings);
    }
    Err(format!("this Redis server cannot keep records:\n- {}", faults.join("\n- ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "redis_version:7.0.15\r\nrole:master\r\ncluster_enabled:0\r\n\
                        maxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\
                        connected_slaves:0\r\n";

    fn with(field: &str, value: &str) -> String {
        let of = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        let lines = GOOD.lines().map(|line| {
            if of(line) == field { format!("{field}:{value}") } else { line.to_owned() }
        });
        lines.collect::<Vec<_>>().join("\r\n")
    }

    #[test]
    fn a_good_server_is_neither_refused_nor_warned_of() {
        assert_eq!(check(GOOD, Durability::Local, Accepted::default()), Ok(Vec::new()));
    }

    #[test]
    fn what_breaks_the_promise_is_refused_and_what_may_is_warned_of() {
        let check = |info: &str| check(info, Durability::Local, Accepted::default());
        for (field, value) in
            [("redis_version", "6.2.14"), ("role", "slave"), ("cluster_enabled", "1")]
        {
            let refused = check(&with(field, value)).unwrap_err();
            assert_eq!(refused.lines().count(), 2, "{refused}");
        }
        for (field, value) in
            [("maxmemory_policy", "volatile-lru"), ("aof_enabled", "0"), ("connected_slaves", "1")]
        {
            let warned = check(&with(field, value)).unwrap();
            assert_eq!(warned.len(), 1, "{field}");
            let names_a_method =
                ["my_own_risk", "on_restart", "::"].map(|it| warned[0].contains(it));
            assert_eq!(names_a_method, [false; 3], "{warned:?}");
        }
        assert_eq!(check("").unwrap_err().lines().count(), 4);
    }
}

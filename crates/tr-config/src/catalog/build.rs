//! From the written form to manifests.
use super::{
    endpoint::Endpoint,
    form::{Breaker, Keys, Tool},
    shape::End,
};
use tr_core::{
    BreakerHint, DedupeScope, Effect, RetryOverride, ToolId, ToolManifest, Verdict,
    canonical::{Builder, Rules},
    manifest::OutcomeCheck,
};
use tr_wire::read::{At, Faults, Shape as _};

/// The places of the tools and of their defaults.
pub(super) const TOOLS: At<'static> = At::Member(&At::Root, "tools");
pub(super) const DEFAULTS: At<'static> = At::Member(&At::Root, "defaults");

pub(super) fn refuse(at: &At<'_>, expected: &'static str, found: &str, faults: &mut Faults) {
    faults.add(at.to_string(), expected, found);
}

/// Removes settings that cannot be defaults, and reports them.
pub(super) fn check_defaults(defaults: &mut Tool, faults: &mut Faults) {
    const EACH: &str = "settings for several tools";
    for (key, what, is_there) in [
        ("name", "a name", defaults.name.take().is_some()),
        ("action", "an action", defaults.action.take().is_some()),
        ("input_schema", "a schema", defaults.input_schema.take().is_some()),
        ("default_value", "a value", defaults.default_value.take().is_some()),
        ("check", "a check", defaults.check.take().is_some()),
        ("url", "an address", defaults.url.take().is_some()),
        ("method", "a method", defaults.method.take().is_some()),
        ("headers", "headers", defaults.headers.take().is_some()),
        ("command", "a command", defaults.command.take().is_some()),
    ] {
        if is_there {
            refuse(&At::Member(&DEFAULTS, key), EACH, what, faults);
        }
    }
    for (key, names) in
        [("depends_on", defaults.depends_on.take()), ("alternatives", defaults.alternatives.take())]
    {
        for i in 0..names.map_or(0, |names| names.len()) {
            let at = At::Member(&DEFAULTS, key);
            refuse(&At::Element(&at, i), EACH, "the name of a tool", faults);
        }
    }
    gather_retry(defaults, &DEFAULTS, faults);
}

/// Moves what a tool says of its retries outside of `retry` into it.
fn gather_retry(tool: &mut Tool, at: &At<'_>, faults: &mut Faults) {
    let retry = &mut tool.retry;
    let mut merge = |key, is_twice| {
        if is_twice {
            let found = "a setting that `retry` has too";
            refuse(&At::Member(at, key), "each setting once", found, faults);
        }
    };
    merge("max_attempts", put(retry, |retry| &mut retry.attempts, tool.max_attempts.take()));
    merge("initial_delay_ms", put(retry, |retry| &mut retry.base, tool.initial_delay.take()));
    merge("max_delay_ms", put(retry, |retry| &mut retry.cap, tool.max_delay.take()));
}

/// Puts a setting into a table, and returns whether the table had it.
fn put<T>(
    retry: &mut Option<RetryOverride>,
    of: fn(&mut RetryOverride) -> &mut Option<T>,
    said: Option<T>,
) -> bool {
    said.is_some_and(|said| of(retry.get_or_insert_default()).replace(said).is_some())
}

/// A tool with the defaults where it says nothing.
pub(super) fn with_defaults(
    mut tool: Tool,
    key: &str,
    defaults: &Tool,
    faults: &mut Faults,
) -> Tool {
    let at = At::Member(&TOOLS, key);
    gather_retry(&mut tool, &at, faults);
    let place = |is_own| if is_own { &at } else { &DEFAULTS };
    let breaker = place(tool.breaker.as_ref().is_some_and(|it| it.state.is_some()));
    let keys = place(tool.keys.as_ref().is_some_and(|it| it.scope.is_some()));
    let server_key = place(tool.keys.as_ref().is_some_and(|it| it.server_key.is_some()));
    let has_ttl = tool.keys.as_ref().is_some_and(|it| it.server_key_ttl.is_some());
    let mut tool = Tool::or(tool, defaults.clone());
    if tool.keys.as_ref().is_some_and(|keys| keys.server_key.is_some()) {
        let at = At::Member(server_key, "keys");
        let at = At::Member(&at, "server_key");
        if *tool.effect.get_or_insert(Effect::Mutating) != Effect::Mutating {
            let expected = "a tool with effect = \"mutating\": others are repeated without a key";
            refuse(&at, expected, "another effect", faults);
        }
        if tool.retry_safe == Some(false) {
            refuse(&at, "a tool that may be repeated", "`retry_safe = false`", faults);
        }
    } else if has_ttl {
        let at = At::Member(&at, "keys");
        refuse(&At::Member(&at, "server_key_ttl"), "a tool with a `server_key`", "none", faults);
    }
    if let Some(check) = &tool.check {
        refuse_check(check, &tool, &At::Member(&at, "check"), faults);
    }
    if let Some(Breaker { state: Some(_), hint: Some(hint), .. }) = &tool.breaker
        && matches!(hint, BreakerHint::Dependency | BreakerHint::Global)
    {
        let at = At::Member(breaker, "breaker");
        let found = "a breaker that `hint` shares with other tools";
        refuse(&At::Member(&at, "state"), "a state of the tool's own breaker", found, faults);
    }
    if tool.keys.as_ref().and_then(|keys| keys.scope) == Some(DedupeScope::Global)
        && tool.effect != Some(Effect::ReadOnly)
    {
        let found = format!("{:?}, which is not declared so", identity(key, &tool).label());
        let at = At::Member(keys, "keys");
        let expected = "`session`, or a tool with effect = \"read_only\"";
        refuse(&At::Member(&at, "scope"), expected, &found, faults);
    }
    tool
}

/// Reports what a check cannot show.
fn refuse_check(check: &OutcomeCheck, tool: &Tool, at: &At<'_>, faults: &mut Faults) {
    if tool.effect.is_some_and(|effect| effect != Effect::Mutating) {
        let expected = "a tool with effect = \"mutating\": others are repeated without a check";
        refuse(at, expected, "another effect", faults);
    }
    if check.matches.is_empty() {
        refuse(&At::Member(at, "match"), "at least one member", "none", faults);
    }
    let server_key = tool.keys.as_ref().and_then(|keys| keys.server_key.as_ref());
    if check.not_before.is_none()
        && !check.matches.iter().any(|(_, param)| Some(param) == server_key)
    {
        let expected = "the place of an element's time, or a `match` with the `server_key`";
        refuse(&At::Member(at, "not_before"), expected, "neither", faults);
    }
}

/// The identity of a declared tool.
pub(super) fn identity(key: &str, tool: &Tool) -> ToolId {
    let name = tool.name.as_ref().map_or(key, |name| name);
    ToolId::from_parts(tool.namespace.as_deref(), name, tool.action.as_deref())
}

/// Where the calls of a tool go, if that is said.
pub(super) fn endpoint(tool: &mut Tool, at: &At<'_>, faults: &mut Faults) -> Option<Endpoint> {
    let (url, command) = (tool.url.take(), tool.command.take());
    if url.is_some() && command.is_some() {
        refuse(&At::Member(at, "command"), "either `url` or `command`", "both", faults);
    }
    if let Some(url) = url {
        let method = tool.method.take().unwrap_or_default();
        let headers = tool.headers.take().unwrap_or_default();
        return Some(Endpoint::Http { url, method, headers });
    }
    for (key, is_there) in [("method", tool.method.is_some()), ("headers", tool.headers.is_some())]
    {
        if is_there {
            refuse(&At::Member(at, key), "a tool with a `url`", "none", faults);
        }
    }
    command.map(Endpoint::Command)
}

/// The manifest of a tool, without its references to others.
pub(super) fn manifest(id: ToolId, tool: Tool) -> ToolManifest {
    let mut manifest = ToolManifest::new(id);
    manifest.effect = tool.effect;
    manifest.capabilities = tool.capabilities.unwrap_or_default();
    manifest.input_schema = tool.input_schema;
    manifest.timeout = tool.timeout;
    manifest.idle_timeout = tool.idle_timeout;
    manifest.retry = tool.retry;
    manifest.retry_safe = tool.retry_safe;
    manifest.cancellable = tool.cancellable.unwrap_or(false);
    let breaker = tool.breaker.unwrap_or_default();
    manifest.breaker_hint = breaker.hint;
    manifest.breaker.consecutive = breaker.consecutive;
    manifest.breaker.failure_rate = breaker.failure_rate;
    manifest.breaker.cooldown = breaker.cooldown;
    manifest.breaker.order = breaker.state;
    manifest.loops = tool.loops.unwrap_or_default();
    manifest.ttls = tool.ttl.unwrap_or_default();
    // A tool's own entries come first, because the first match wins.
    for (code, end) in tool.classification.into_iter().flatten() {
        let is_first = manifest.classification.iter().all(|(known, _)| *known != code);
        if end == End::NotRun && is_first {
            manifest.not_run.push(code.clone());
        }
        let verdict = match end {
            End::Permanent => Verdict::Permanent,
            End::Transient | End::NotRun => Verdict::TRANSIENT,
        };
        manifest.classification.push((code, verdict));
    }
    let mut keys = tool.keys.unwrap_or_default();
    manifest.scope = keys.scope.unwrap_or_default();
    manifest.identity = keys.identity.take().unwrap_or_default();
    manifest.late = keys.late;
    manifest.server_key = keys.server_key.clone();
    manifest.server_key_ttl = keys.server_key_ttl.unwrap_or(manifest.server_key_ttl);
    manifest.rules = rules(keys);
    manifest.check = tool.check;
    manifest.shown_in_records = tool.records.and_then(|it| it.show).unwrap_or_default();
    manifest.dependency = tool.dependency;
    manifest.required = tool.required.unwrap_or(false);
    manifest.default_value = tool.default_value;
    manifest.priority = tool.priority.unwrap_or_default();
    manifest.silent_failures = tool.silent_failures.unwrap_or(true);
    manifest.null_is_success = tool.null_is_success.unwrap_or_default();
    for name in tool.sensitive.into_iter().flatten() {
        if !manifest.sensitive.contains(&name) {
            manifest.sensitive.push(name);
        }
    }
    manifest
}

fn rules(keys: Keys) -> Rules {
    let mut rules = Rules::builder();
    rules = match keys.keep_volatile {
        Some(true) => rules.keep_volatile(),
        Some(false) => rules.drop_volatile(),
        None => rules,
    };
    let dropped = keys.volatile.into_iter().flatten().chain(keys.server_key);
    rules = dropped.fold(rules, Builder::drop_at);
    let loose = keys.any_whitespace.into_iter().flatten();
    loose.fold(rules, Builder::loose_whitespace_at).build().expect("pointers lead inside")
}

//! From the written form to manifests.
use super::{
    endpoint::Endpoint,
    form::{Keys, Tool},
    shape::{At, End, SourceLocation},
};
use tr_core::{
    BreakerHint, DedupeScope, Effect, RetryOverride, ToolId, ToolManifest,
    canonical::{Builder, Rules},
};
use tr_wire::{
    EnvelopeFault,
    read::{Faults, Shape as _},
};

pub(crate) fn fault(
    location: &SourceLocation,
    expected: &'static str,
    found: &str,
) -> EnvelopeFault {
    EnvelopeFault::new(&*location.pointer, expected, found).at(location.offset)
}

pub(crate) fn refuse(
    location: &SourceLocation,
    expected: &'static str,
    found: &str,
    faults: &mut Faults,
) {
    faults.push(fault(location, expected, found));
}

/// Removes settings that cannot be defaults, and reports them.
pub(super) fn check_defaults(defaults: &mut Tool, faults: &mut Faults) {
    const EACH: &str = "settings for several tools";
    let own = [
        ("a name", take(&mut defaults.name)),
        ("an action", take(&mut defaults.action)),
        ("a schema", take(&mut defaults.input_schema)),
        ("a value", take(&mut defaults.default_value)),
        ("an address", take(&mut defaults.url)),
        ("a method", take(&mut defaults.method)),
        ("headers", take(&mut defaults.headers)),
        ("a command", take(&mut defaults.command)),
    ];
    for (what, location) in own {
        if let Some(location) = location {
            refuse(&location, EACH, what, faults);
        }
    }
    for at in [defaults.depends_on.take(), defaults.alternatives.take()].iter().flatten().flatten()
    {
        refuse(&at.location, EACH, "the name of a tool", faults);
    }
    gather_retry(defaults, faults);
}

fn take<T>(said: &mut Option<At<T>>) -> Option<SourceLocation> {
    said.take().map(|at| at.location)
}

/// Moves what a tool says of its retries outside of `retry` into it.
fn gather_retry(tool: &mut Tool, faults: &mut Faults) {
    let retry = &mut tool.retry;
    merge(retry, |retry| &mut retry.attempts, tool.max_attempts.take(), faults);
    merge(retry, |retry| &mut retry.base, tool.initial_delay.take(), faults);
    merge(retry, |retry| &mut retry.cap, tool.max_delay.take(), faults);
}

/// Moves a setting into a table, unless the table has it.
fn merge<T>(
    retry: &mut Option<RetryOverride>,
    of: fn(&mut RetryOverride) -> &mut Option<T>,
    said: Option<At<T>>,
    faults: &mut Faults,
) {
    let Some(At { value, location }) = said else { return };
    if of(retry.get_or_insert_default()).replace(value).is_some() {
        refuse(&location, "each setting once", "a setting that `retry` has too", faults);
    }
}

/// A tool with the defaults where it says nothing.
pub(super) fn with_defaults(mut tool: Tool, defaults: &Tool, faults: &mut Faults) -> Tool {
    gather_retry(&mut tool, faults);
    Tool::or(tool, defaults.clone())
}

/// The identity of a declared tool.
pub(super) fn identity(key: &str, tool: &Tool) -> ToolId {
    let name = tool.name.as_ref().map_or(key, |name| &name.value);
    let action = tool.action.as_ref().map(|action| &*action.value);
    ToolId::from_parts(tool.namespace.as_deref(), name, action)
}

/// Where the calls of a tool go, if that is said.
pub(super) fn endpoint(tool: &mut Tool, faults: &mut Faults) -> Option<Endpoint> {
    let (url, command) = match (tool.url.take(), tool.command.take()) {
        (Some(url), Some(command)) => {
            refuse(&command.location, "either `url` or `command`", "both", faults);
            (Some(url), None)
        }
        either => either,
    };
    if url.is_none() {
        for location in [take(&mut tool.method), take(&mut tool.headers)].into_iter().flatten() {
            refuse(&location, "a tool with a `url`", "none", faults);
        }
    }
    if let Some(At { value: url, .. }) = url {
        let method = tool.method.take().map(|method| method.value).unwrap_or_default();
        let headers = tool.headers.take().map(|headers| headers.value).unwrap_or_default();
        return Some(Endpoint::Http { url, method, headers });
    }
    Some(Endpoint::Command(command?.value))
}

/// The manifest of a tool, without its references to others.
pub(super) fn manifest(id: ToolId, tool: Tool, faults: &mut Faults) -> ToolManifest {
    let mut manifest = ToolManifest::new(id);
    manifest.effect = tool.effect;
    manifest.capabilities = tool.capabilities.into_iter().flatten().collect();
    manifest.input_schema = tool.input_schema.map(|schema| schema.value);
    manifest.timeout = tool.timeout;
    manifest.idle_timeout = tool.idle_timeout;
    manifest.retry = tool.retry;
    manifest.retry_safe = tool.retry_safe;
    manifest.cancellable = tool.cancellable.unwrap_or(false);
    let breaker = tool.breaker.unwrap_or_default();
    manifest.breaker_hint = breaker.hint;
    if let Some(At { location, .. }) = &breaker.state
        && matches!(breaker.hint, Some(BreakerHint::Dependency | BreakerHint::Global))
    {
        let found = "a breaker that `hint` shares with other tools";
        refuse(location, "a state of the tool's own breaker", found, faults);
    }
    manifest.breaker.consecutive = breaker.consecutive;
    manifest.breaker.failure_rate = breaker.failure_rate;
    manifest.breaker.cooldown = breaker.cooldown;
    manifest.breaker.order = breaker.state.map(|state| state.value);
    let loops = tool.loops.unwrap_or_default();
    manifest.loops.max_identical = loops.max_identical;
    manifest.loops.max_failures_per_turn = loops.max_failures_per_turn;
    manifest.loops.repeats = loops.repeats;
    manifest.loops.poll = loops.poll.unwrap_or(false);
    manifest.loops.loop_key = loops.loop_key;
    manifest.ttls = tool.ttl.unwrap_or_default();
    // A tool's own entries come first, because the first match wins.
    for (code, end) in tool.classification.into_iter().flatten() {
        let is_first = manifest.classification.iter().all(|(known, _)| *known != code);
        if end == End::NotRun && is_first {
            manifest.not_run.push(code.clone());
        }
        manifest.classification.push((code, end.into()));
    }
    let keys = tool.keys.unwrap_or_default();
    if let Some(At { value: DedupeScope::Global, location }) = &keys.scope
        && manifest.effect != Some(Effect::ReadOnly)
    {
        let found = format!("{:?}, which is not declared so", manifest.tool.label());
        refuse(location, "`session`, or a tool with effect = \"read_only\"", &found, faults);
    }
    manifest.scope = keys.scope.as_ref().map(|scope| scope.value).unwrap_or_default();
    manifest.rules = rules(keys);
    manifest.shown_in_records = tool.records.and_then(|it| it.show).unwrap_or_default();
    manifest.dependency = tool.dependency;
    manifest.required = tool.required.unwrap_or(false);
    manifest.default_value = tool.default_value.map(|value| value.value);
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
    rules = keys.volatile.into_iter().flatten().fold(rules, Builder::drop_at);
    let loose = keys.any_whitespace.into_iter().flatten();
    loose.fold(rules, Builder::loose_whitespace_at).build().expect("pointers lead inside")
}

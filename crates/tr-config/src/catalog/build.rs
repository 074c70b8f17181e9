//! From the written form to manifests.
use super::{
    endpoint::Endpoint,
    form::{Breaker, Keys, Loops, Retry, Tool, Ttl},
    shape::{At, End, SourceLocation},
};
use std::time::Duration;
use tr_core::{
    BreakerHint, DedupeScope, Effect, RetryOverride, ToolId, ToolManifest,
    canonical::{Builder, Pointer, Rules},
    manifest::{BreakerOverride, LoopOverride, TtlOverride},
};
use tr_wire::{
    EnvelopeFault,
    read::{Faults, Percent},
};

pub(crate) fn fault(
    location: &SourceLocation,
    expected: &'static str,
    found: &str,
) -> EnvelopeFault {
    let fault = EnvelopeFault::new(&*location.pointer, expected, found);
    match location.offset {
        Some(offset) => fault.at(offset),
        None => fault,
    }
}

pub(crate) fn refuse(
    location: &SourceLocation,
    expected: &'static str,
    found: &str,
    faults: &mut Faults,
) {
    faults.push(fault(location, expected, found));
}

fn place<T>(said: &Option<At<T>>) -> Option<&SourceLocation> {
    said.as_ref().map(|at| &at.location)
}

/// Reports settings that cannot be defaults.
pub(super) fn check_defaults(defaults: &Tool, faults: &mut Faults) {
    const EACH: &str = "settings for several tools";
    let own = [
        ("a name", place(&defaults.name)),
        ("an action", place(&defaults.action)),
        ("a schema", place(&defaults.input_schema)),
        ("a value", place(&defaults.default_value)),
        ("an address", place(&defaults.url)),
        ("a method", place(&defaults.method)),
        ("headers", place(&defaults.headers)),
        ("a command", place(&defaults.command)),
    ];
    for (what, location) in own {
        if let Some(location) = location {
            refuse(location, EACH, what, faults);
        }
    }
    for at in [&defaults.depends_on, &defaults.alternatives].into_iter().flatten().flatten() {
        refuse(&at.location, EACH, "the name of a tool", faults);
    }
    default_retry(defaults, faults);
}

/// The identity of a declared tool.
pub(super) fn identity(key: &str, tool: &Tool, defaults: &Tool) -> ToolId {
    let namespace = tool.namespace.as_deref().or(defaults.namespace.as_deref());
    let name = tool.name.as_ref().map_or(key, |name| &name.value);
    ToolId::from_parts(namespace, name, tool.action.as_ref().map(|action| &*action.value))
}

/// Where the calls of a tool go, if that is said.
pub(super) fn endpoint(tool: &mut Tool, faults: &mut Faults) -> Option<Endpoint> {
    let method = tool.method.take();
    let headers = tool.headers.take();
    let (url, command) = match (tool.url.take(), tool.command.take()) {
        (Some(url), Some(command)) => {
            refuse(&command.location, "either `url` or `command`", "both", faults);
            (Some(url), None)
        }
        either => either,
    };
    if url.is_none() {
        for location in [place(&method), place(&headers)].into_iter().flatten() {
            refuse(location, "a tool with a `url`", "none", faults);
        }
    }
    if let Some(At { value: url, .. }) = url {
        let method = method.map(|method| method.value).unwrap_or_default();
        let headers = headers.map(|headers| headers.value).unwrap_or_default();
        return Some(Endpoint::Http { url, method, headers });
    }
    Some(Endpoint::Command(command?.value))
}

/// The manifest of a tool, without its references to others.
pub(super) fn manifest(
    id: ToolId,
    tool: Tool,
    defaults: &Tool,
    faults: &mut Faults,
) -> ToolManifest {
    let mut manifest = ToolManifest::new(id);
    let capabilities = tool.capabilities.or_else(|| defaults.capabilities.clone());
    manifest.effect = tool.effect.or(defaults.effect);
    manifest.capabilities = capabilities.into_iter().flatten().collect();
    manifest.input_schema = tool.input_schema.map(|schema| schema.value);
    manifest.timeout = millis(tool.timeout_ms.or(defaults.timeout_ms));
    manifest.idle_timeout = millis(tool.idle_timeout_ms.or(defaults.idle_timeout_ms));
    let flat = (tool.max_attempts, tool.initial_delay_ms, tool.max_delay_ms);
    let own = retry(tool.retry, flat, faults);
    manifest.retry = or(own, default_retry(defaults, faults));
    manifest.retry_safe = tool.retry_safe.or(defaults.retry_safe);
    manifest.cancellable = tool.cancellable.or(defaults.cancellable).unwrap_or(false);
    let hint = |breaker: Option<&Breaker>| breaker?.hint;
    manifest.breaker_hint = hint(tool.breaker.as_ref()).or_else(|| hint(defaults.breaker.as_ref()));
    let state = |breaker: Option<&Breaker>| breaker?.state.clone();
    if let Some(At { location, .. }) =
        state(tool.breaker.as_ref()).or_else(|| state(defaults.breaker.as_ref()))
        && matches!(manifest.breaker_hint, Some(BreakerHint::Dependency | BreakerHint::Global))
    {
        let found = "a breaker that `hint` shares with other tools";
        refuse(&location, "a state of the tool's own breaker", found, faults);
    }
    manifest.breaker = breaker(tool.breaker, defaults.breaker.as_ref());
    manifest.loops = loops(tool.loops, defaults.loops.as_ref());
    manifest.ttls = ttls(tool.ttl, defaults.ttl.as_ref());
    // A tool's own entries come first, because the first match wins.
    let ends = [tool.classification.as_ref(), defaults.classification.as_ref()];
    for (code, end) in ends.into_iter().flatten().flatten() {
        let is_first = manifest.classification.iter().all(|(known, _)| known != code);
        if *end == End::NotRun && is_first {
            manifest.not_run.push(code.clone());
        }
        manifest.classification.push((code.clone(), (*end).into()));
    }
    let scope = |keys: Option<&Keys>| keys?.scope.clone();
    let own = scope(tool.keys.as_ref()).or_else(|| scope(defaults.keys.as_ref()));
    if let Some(At { value: DedupeScope::Global, location }) = &own
        && manifest.effect != Some(Effect::ReadOnly)
    {
        let found = format!("{:?}, which is not declared so", manifest.tool.label());
        refuse(location, "`session`, or a tool with effect = \"read_only\"", &found, faults);
    }
    manifest.scope = own.map(|scope| scope.value).unwrap_or_default();
    manifest.rules = rules(tool.keys, defaults.keys.as_ref());
    manifest.dependency = tool.dependency.or_else(|| defaults.dependency.clone());
    manifest.required = tool.required.or(defaults.required).unwrap_or(false);
    manifest.default_value = tool.default_value.map(|value| value.value);
    manifest.priority = tool.priority.or(defaults.priority).unwrap_or_default();
    manifest.silent_failures = tool.silent_failures.or(defaults.silent_failures).unwrap_or(true);
    manifest.null_is_success =
        tool.null_is_success.or(defaults.null_is_success).unwrap_or_default();
    manifest.sensitive = tool.sensitive.unwrap_or_default();
    for name in defaults.sensitive.iter().flatten() {
        if !manifest.sensitive.contains(name) {
            manifest.sensitive.push(name.clone());
        }
    }
    manifest
}

const fn millis(millis: Option<u64>) -> Option<Duration> {
    match millis {
        Some(millis) => Some(Duration::from_millis(millis)),
        None => None,
    }
}

pub(crate) type FlatRetry = (Option<At<u32>>, Option<At<u64>>, Option<At<u64>>);

/// The retry override of a tool, including the flat members beside `retry`.
pub(crate) fn retry(
    own: Option<Retry>,
    flat: FlatRetry,
    faults: &mut Faults,
) -> Option<RetryOverride> {
    let is_there = own.is_some() || flat.0.is_some() || flat.1.is_some() || flat.2.is_some();
    let mut own = own.unwrap_or_default();
    merge(&mut own.attempts, flat.0, faults);
    merge(&mut own.base_ms, flat.1, faults);
    merge(&mut own.cap_ms, flat.2, faults);
    let mut jitter = own.jitter;
    let percent = own
        .jitter_percent
        .map(|at| At { value: Percent::to_either_side(at.value), location: at.location });
    merge(&mut jitter, percent, faults);
    is_there.then(|| RetryOverride {
        attempts: own.attempts,
        base: millis(own.base_ms),
        multiplier: own.multiplier,
        cap: millis(own.cap_ms),
        jitter,
        max_elapsed: millis(own.max_elapsed_ms),
        only_codes: own.only_codes.map(Vec::into_boxed_slice),
    })
}

fn merge<T>(place: &mut Option<T>, other: Option<At<T>>, faults: &mut Faults) {
    let Some(other) = other else { return };
    if place.replace(other.value).is_some() {
        refuse(&other.location, "each setting once", "a setting that `retry` has too", faults);
    }
}

fn default_retry(defaults: &Tool, faults: &mut Faults) -> Option<RetryOverride> {
    let Tool { retry: own, max_attempts, initial_delay_ms, max_delay_ms, .. } = defaults.clone();
    retry(own, (max_attempts, initial_delay_ms, max_delay_ms), faults)
}

pub(crate) fn or(
    own: Option<RetryOverride>,
    default: Option<RetryOverride>,
) -> Option<RetryOverride> {
    let (Some(own), Some(default)) = (&own, &default) else { return own.or(default) };
    Some(RetryOverride {
        attempts: own.attempts.or(default.attempts),
        base: own.base.or(default.base),
        multiplier: own.multiplier.or(default.multiplier),
        cap: own.cap.or(default.cap),
        jitter: own.jitter.or(default.jitter),
        max_elapsed: own.max_elapsed.or(default.max_elapsed),
        only_codes: own.only_codes.clone().or_else(|| default.only_codes.clone()),
    })
}

fn breaker(own: Option<Breaker>, default: Option<&Breaker>) -> BreakerOverride {
    let (own, default) = (own.unwrap_or_default(), default.cloned().unwrap_or_default());
    let mut changes = BreakerOverride::default();
    changes.consecutive = own.consecutive.or(default.consecutive);
    changes.failure_rate = own.failure_rate.or(default.failure_rate);
    changes.cooldown = millis(own.cooldown_ms.or(default.cooldown_ms));
    changes.order = own.state.or(default.state).map(|state| state.value);
    changes
}

fn loops(own: Option<Loops>, default: Option<&Loops>) -> LoopOverride {
    let (own, default) = (own.unwrap_or_default(), default.cloned().unwrap_or_default());
    let mut changes = LoopOverride::default();
    changes.max_identical = own.max_identical.or(default.max_identical);
    changes.max_failures_per_turn = own.max_failures_per_turn.or(default.max_failures_per_turn);
    changes.repeats = own.repeats.or(default.repeats);
    changes.poll = own.poll.or(default.poll).unwrap_or(false);
    changes.loop_key = own.loop_key.or(default.loop_key);
    changes
}

fn ttls(own: Option<Ttl>, default: Option<&Ttl>) -> TtlOverride {
    let (own, default) = (own.unwrap_or_default(), default.cloned().unwrap_or_default());
    let mut changes = TtlOverride::default();
    changes.done = millis(own.done_ms.or(default.done_ms));
    changes.failed = millis(own.failed_ms.or(default.failed_ms));
    changes.inflight = millis(own.inflight_ms.or(default.inflight_ms));
    changes.unknown = millis(own.unknown_ms.or(default.unknown_ms));
    changes
}

fn rules(own: Option<Keys>, default: Option<&Keys>) -> Rules {
    let (own, default) = (own.unwrap_or_default(), default.cloned().unwrap_or_default());
    let mut rules = Rules::builder();
    rules = match own.keep_volatile.or(default.keep_volatile) {
        Some(true) => rules.keep_volatile(),
        Some(false) => rules.drop_volatile(),
        None => rules,
    };
    rules = pointers(own.volatile.or(default.volatile)).fold(rules, Builder::drop_at);
    let loose = pointers(own.any_whitespace.or(default.any_whitespace));
    rules = loose.fold(rules, Builder::loose_whitespace_at);
    rules.build().expect("pointers lead inside")
}

fn pointers(all: Option<Vec<Pointer>>) -> impl Iterator<Item = Pointer> {
    all.into_iter().flatten()
}

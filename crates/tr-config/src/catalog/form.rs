//! The form of a catalogue, as it is written.
use super::endpoint::Method;
use super::shape::{
    Added, Address, Anywhere, COUNTED, DAY, End, Inside, Jitter, JitterPercent, Period, Program,
    RECORDED, Share,
};
use std::time::Duration;
use tr_core::{
    BreakerHint, DedupeScope, Effect, Json, Priority, RetryOverride,
    canonical::Pointer,
    manifest::{BreakerOrder, Capability, LoopOverride, OutcomeCheck, TtlOverride},
};
use tr_wire::read::{
    Any, AnySpan, Count, Factor, Flag, Lenient, List, Map, Name, OrDefault, Record, Span, Text,
    Word, object,
};

object! { strict
    /// What is known of an agent's tools.
    struct Catalog {
        ignored "$schema";
        /// The effect of tools that declare none; `mutating` by default.
        "undeclared_effect" => undeclared_effect: Option<Effect>, Lenient<Word<Effect>> = "mutating";
        /// Defaults for the tools under `tools`. Tools that are not listed use the sections of the
        /// stack.
        "defaults" => defaults: Option<Tool>, Lenient<Tool>;
        /// The tools, each by a name that the others use for it.
        "tools" => tools: Option<Tools>, Lenient<Map<Lenient<Tool>>>;
    }
}

/// The tools by name; those that could not be read are only names.
pub(crate) type Tools = Vec<(Box<str>, Option<Tool>)>;

object! { strict
    /// What is known of one tool. What is absent is unknown, and left as the layers have it.
    struct Tool {
        /// The tool's own name; the catalogue's name for it where it is absent.
        "name" => name: Option<Box<str>>, Lenient<Name>;
        /// The namespace in which the name is unique, such as `agents.tools.messaging`.
        "namespace" => namespace: Option<Box<str>>, Lenient<Name>;
        /// The action within the tool: `message` with `read` and `message` with `send` are two.
        "action" => action: Option<Box<str>>, Lenient<Name>;
        /// Its effect.
        "effect" => effect: Option<Effect>, Lenient<Word<Effect>>;
        /// What it can do. The layers use `idempotency` and `own_retries`; `streaming` and `caching`
        /// are for programs that ask: any tool may stream to callers that take chunks, and no layer
        /// caches answers.
        "capabilities" => capabilities: Option<Vec<Capability>>, Lenient<List<Word<Capability>>>;
        /// JSON Schema of its params.
        "input_schema" => input_schema: Option<Json>, Lenient<Record>;
        /// How long one attempt may take, in milliseconds.
        "timeout_ms" => timeout: Option<Duration>, Lenient<Span<1, DAY>>;
        /// How long an answer in chunks may wait for its next chunk, in milliseconds.
        "idle_timeout_ms" => idle_timeout: Option<Duration>, Lenient<Span<1, DAY>>;
        /// Changes to the retry policy.
        "retry" => retry: Option<RetryOverride>, Lenient<Retry>;
        /// Attempts in all, the first included; belongs into `retry`.
        "max_attempts" => max_attempts: Option<u32>, Lenient<Count<1000>>;
        /// The first delay, in milliseconds; belongs into `retry`.
        "initial_delay_ms" => initial_delay: Option<Duration>, Lenient<AnySpan<0>>;
        /// No delay is longer, in milliseconds; belongs into `retry`.
        "max_delay_ms" => max_delay: Option<Duration>, Lenient<AnySpan<0>>;
        /// Whether a repeat is safe although an earlier attempt may have run.
        "retry_safe" => retry_safe: Option<bool>, Lenient<Flag>;
        /// Whether `tool-guard mcp` cancels a call that may change something when a client without a
        /// session stops waiting for it; the call is of unknown outcome then. False: it goes on.
        "cancellable" => cancellable: Option<bool>, Lenient<Flag>;
        /// Changes to the breaker.
        "breaker" => breaker: Option<Breaker>, Lenient<Breaker>;
        /// Changes to loop detection.
        "loops" => loops: Option<LoopOverride>, Lenient<Loops>;
        /// How long records of its calls are kept.
        "ttl" => ttl: Option<TtlOverride>, Lenient<Ttl>;
        /// How errors with these codes end, whatever else is known of them.
        "classification" => classification: Option<Vec<(Box<str>, End)>>, Lenient<Added<Map<Word<End>>>>;
        /// How a tool that only reads shows whether a call ran whose outcome is unknown.
        "check" => check: Option<OutcomeCheck>, Lenient<Check>;
        /// What the records of its calls show.
        "records" => records: Option<Records>, Lenient<Records>;
        /// How keys and digests are made.
        "keys" => keys: Option<Keys>, Lenient<Keys>;
        /// The dependency that it uses, for a breaker shared with other tools.
        "dependency" => dependency: Option<Box<str>>, Lenient<Name>;
        /// The tools whose results it needs within a turn.
        "depends_on" => depends_on: Option<Vec<Box<str>>>, Lenient<List<Name>>;
        /// Whether a turn fails without it.
        "required" => required: Option<bool>, Lenient<Flag>;
        /// What its dependents get if it fails.
        "default_value" => default_value: Option<Json>, Lenient<Any>;
        /// Tools that can stand in for it, best first.
        "alternatives" => alternatives: Option<Vec<Box<str>>>, Lenient<List<Name>>;
        /// Which calls a turn starts first.
        "priority" => priority: Option<Priority>, Lenient<Word<Priority>>;
        /// Whether its answers are looked into for failures: `ok: false`, an `error`, an exit code
        /// other than 0, `null`; true.
        "silent_failures" => silent_failures: Option<bool>, Lenient<Flag>;
        /// Whether `null` is the success of a tool that has nothing to say; false.
        "null_is_success" => null_is_success: Option<bool>, Lenient<Flag>;
        /// Names of params and result fields whose values no log, span or admin page may show.
        "sensitive" => sensitive: Option<Vec<Box<str>>>, Lenient<Added<List<Name>>>;
        /// Where `tool-guard serve` sends its calls, as JSON: an address that begins with `https://` or
        /// `http://`.
        "url" => url: Option<Box<str>>, Lenient<Address>;
        /// The method of these requests; `POST`.
        "method" => method: Option<Method>, Lenient<Word<Method>>;
        /// Headers of these requests. `${NAME}` stands for a variable of the environment.
        "headers" => headers: Option<Headers>, Lenient<Map<Text>>;
        /// The command that `tool-guard serve` runs for each call: its params are on the standard input,
        /// and what it prints is its answer.
        "command" => command: Option<Vec<Box<str>>>, Lenient<Program>;
    }
}

/// Names and values.
pub(crate) type Headers = Vec<(Box<str>, Box<str>)>;

object! { strict
    /// Changes to the retry policy.
    struct Retry for RetryOverride {
        /// Attempts in all, the first included.
        "attempts" => attempts: Option<u32>, Lenient<Count<1000>>;
        /// Ceiling of the first delay, in milliseconds.
        "base_ms" => base: Option<Duration>, Lenient<AnySpan<0>>;
        /// Factor from one ceiling to the next.
        "multiplier" => multiplier: Option<f64>, Lenient<Factor>;
        /// No ceiling grows past this, in milliseconds.
        "cap_ms" => cap: Option<Duration>, Lenient<AnySpan<0>>;
        /// The delay is drawn between these shares of the ceiling: `[0, 1]` is full jitter.
        "jitter" => jitter: Option<(f64, f64)>, Lenient<Jitter>;
        /// No attempt starts later than this after the first, in milliseconds.
        "max_elapsed_ms" => max_elapsed: Option<Duration>, Lenient<AnySpan<0>>;
        /// Only these codes are retried; empty means all that are transient.
        "only_codes" => only_codes: Option<Vec<Box<str>>>, Lenient<List<Name>>;
        also {
            /// The same, as the largest deviation of a delay to either side.
            "jitter_percent" => jitter, Lenient<JitterPercent>;
        }
    }
}

object! { strict
    /// Changes to the breaker.
    struct Breaker {
        /// Failures in a row that open it.
        "consecutive" => consecutive: Option<u32>, Lenient<Count<10_000>>;
        /// The share of failures that opens it.
        "failure_rate" => failure_rate: Option<f64>, Lenient<Share>;
        /// How long it stays open, in milliseconds.
        "cooldown_ms" => cooldown: Option<Duration>, Lenient<Span<1, COUNTED>>;
        /// Which calls share it, unless a call sets it itself. By default the tool's calls whose params
        /// name the same origin share one, and those that name none.
        "hint" => hint: Option<BreakerHint>, Lenient<Word<BreakerHint>>;
        /// What holds for the tool's own breaker, whatever its calls do: `forced_open` refuses all of
        /// them, `disabled` counts and refuses none, `shadow` decides and reports, and refuses none.
        "state" => state: Option<BreakerOrder>, Lenient<Word<BreakerOrder>>;
    }
}

object! { strict
    /// Changes to loop detection.
    struct Loops for LoopOverride {
        /// Identical failing calls that end it.
        "max_identical" => max_identical: Option<u32>, Lenient<Count<1000>>;
        /// Failures of any kind in a turn after which this tool is not called any more, or the model
        /// is warned.
        "max_failures_per_turn" => max_failures_per_turn: Option<u32>, Lenient<Count<1000>>;
        /// Calls of this tool in a turn, after which it is not called any more.
        "calls_per_turn" => calls_per_turn: Option<u32>, Lenient<Count<100_000>>;
        /// Calls of this tool in a session, after which it is not called any more.
        "calls_per_session" => calls_per_session: Option<u32>, Lenient<Count<100_000>>;
        /// The number of identical calls with the same answer that causes a warning.
        "repeats" => repeats: Option<u32>, Lenient<Count<100_000>>;
        /// Identical calls are polling, not a loop.
        "poll" => poll: Option<bool>, Lenient<Flag>;
        /// The params that make a call's identity.
        "loop_key" => loop_key: Option<Vec<Box<str>>>, Lenient<List<Name>>;
    }
}

object! { strict
    /// How long records are kept, in milliseconds.
    struct Ttl for TtlOverride {
        /// Of successes.
        "done_ms" => done: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// Of failures.
        "failed_ms" => failed: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// Of calls that run.
        "inflight_ms" => inflight: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// Of mutating calls of unknown outcome.
        "unknown_ms" => unknown: Option<Duration>, Lenient<Span<1, RECORDED>>;
    }
}

object! { strict
    /// How another tool of the same server shows whether a call ran: by exactly one element of an array in its answer that
    /// agrees with the call's params and is not older than the call.
    struct Check for OutcomeCheck {
        /// The tool that is asked; it must only read.
        "tool" => tool: Box<str>, Name;
        /// Its arguments, each with its place in the call's params, such as `{ order = "/order_id" }`.
        "args" => args: Vec<(Box<str>, Pointer)>, OrDefault<Map<Inside>>;
        /// Where in the answer the array is, such as `/payments`: in `structuredContent`, else in its one text, read as JSON.
        "found" => found: Pointer, Anywhere;
        /// Members of an element, by name or as JSON pointers, each with the place of the same value in the call's params.
        "match" => matches: Vec<(Box<str>, Pointer)>, Map<Inside>;
        /// Where in an element the time is when it came to be, such as `/created_at`. It may be absent only if `match` has the
        /// tool's `server_key`, which no other call has.
        "not_before" => not_before: Option<Pointer>, Lenient<Inside>;
        /// That long after the call, an answer without a match says that it did not run, such as `"30s"`. Without it
        /// absence says nothing.
        "absent_after" => absent_after: Option<Duration>, Lenient<Period>;
    }
}

object! { strict
    /// What the records of a tool's calls show.
    struct Records {
        /// The params whose values a person reads who settles a call of unknown outcome, such as `/order_id`.
        "show" => show: Option<Vec<Pointer>>, Lenient<List<Inside>>;
    }
}

object! { strict
    /// How keys and digests are made.
    struct Keys {
        /// The params that say what is wanted, such as `/order_id`: calls that agree in all of them are one call,
        /// whatever their ids. With other params it is a conflict; after a failure it runs.
        "identity" => identity: Option<Vec<Pointer>>, Lenient<List<Inside>>;
        /// How long after a success an equal call gets its answer and does not run, such as `"60s"`. Not at all by default.
        "late" => late: Option<Duration>, Lenient<Period>;
        /// The param by which the server itself recognizes a repeat, such as `/idempotency_key`: `mcp` makes the key if it is
        /// absent, and sends it again if the call comes again while its outcome is unknown.
        "server_key" => server_key: Option<Pointer>, Lenient<Inside>;
        /// How long the server recognizes it: `"24h"` by default, which is the most.
        "server_key_ttl" => server_key_ttl: Option<Duration>, Lenient<Period>;
        /// Params that differ between calls without changing their meaning.
        "volatile" => volatile: Option<Vec<Pointer>>, Lenient<List<Inside>>;
        /// Params that say how a call travels (`retryCount`, `traceparent`, …) count for this tool. Over MCP they count unless this is `false`.
        "keep_volatile" => keep_volatile: Option<bool>, Lenient<Flag>;
        /// Strings in which white space is insignificant.
        "any_whitespace" => any_whitespace: Option<Vec<Pointer>>, Lenient<List<Inside>>;
        /// Whose calls a key matches: those of the same session and actor, or everybody's (`global`, for
        /// tools that are declared read-only).
        "scope" => scope: Option<DedupeScope>, Lenient<Word<DedupeScope>>;
    }
}

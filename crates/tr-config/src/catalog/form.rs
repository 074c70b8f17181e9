//! The form of a catalog, as it is written.
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
        /// The effect of tools that declare none.
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
        /// The tool's own name. Default: its name in the catalog.
        "name" => name: Option<Box<str>>, Lenient<Name>;
        /// The namespace in which the name is unique, such as `agents.tools.messaging`.
        "namespace" => namespace: Option<Box<str>>, Lenient<Name>;
        /// The action within the tool: `message` with `read` and `message` with `send` are two.
        "action" => action: Option<Box<str>>, Lenient<Name>;
        /// Its effect.
        "effect" => effect: Option<Effect>, Lenient<Word<Effect>>;
        /// What it can do. `own_retries`: the stack does not retry it. `idempotency`: `tool-guard serve` and
        /// `turn` send it a key. `streaming`: its command in `serve` prints chunks. `caching` is for programs
        /// that ask.
        "capabilities" => capabilities: Option<Vec<Capability>>, Lenient<List<Word<Capability>>>;
        /// JSON Schema of its params.
        "input_schema" => input_schema: Option<Json>, Lenient<Record>;
        /// How long one attempt may take, in milliseconds.
        "timeout_ms" => timeout: Option<Duration>, Lenient<Span<1, DAY>>;
        /// How long an answer in chunks may wait for its next chunk, in milliseconds.
        "idle_timeout_ms" => idle_timeout: Option<Duration>, Lenient<Span<1, DAY>>;
        /// Changes to the retry policy.
        "retry" => retry: Option<RetryOverride>, Lenient<Retry>;
        /// Another name of `retry.attempts`; set only one.
        "max_attempts" => max_attempts: Option<u32>, Lenient<Count<1000>>;
        /// Another name of `retry.base_ms`; set only one.
        "initial_delay_ms" => initial_delay: Option<Duration>, Lenient<AnySpan<0>>;
        /// Another name of `retry.cap_ms`; set only one.
        "max_delay_ms" => max_delay: Option<Duration>, Lenient<AnySpan<0>>;
        /// Whether a repeat is safe although an earlier attempt may have run.
        "retry_safe" => retry_safe: Option<bool>, Lenient<Flag>;
        /// `tool-guard mcp` cancels a mutating call when a client without a session stops waiting; its
        /// outcome is unknown then. Default: it goes on.
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
        /// Look for failures in its answers: `ok: false`, an `error`, an exit code other than 0, `null`.
        /// Default: true.
        "silent_failures" => silent_failures: Option<bool>, Lenient<Flag>;
        /// `null` is a success. Default: false.
        "null_is_success" => null_is_success: Option<bool>, Lenient<Flag>;
        /// Names of params and result fields whose values no log, span or admin page may show.
        "sensitive" => sensitive: Option<Vec<Box<str>>>, Lenient<Added<List<Name>>>;
        /// The address to which `tool-guard serve` sends its calls, as JSON.
        "url" => url: Option<Box<str>>, Lenient<Address>;
        /// The method of these requests; `POST`.
        "method" => method: Option<Method>, Lenient<Word<Method>>;
        /// Headers of these requests. `${NAME}` stands for a variable of the environment.
        "headers" => headers: Option<Headers>, Lenient<Map<Text>>;
        /// The command that `tool-guard serve` runs: params on standard input, the answer on standard output.
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
        /// The shares of the ceiling between which a delay is drawn. `[0, 1]`: full jitter.
        "jitter" => jitter: Option<(f64, f64)>, Lenient<Jitter>;
        /// No attempt starts later than this after the first, in milliseconds.
        "max_elapsed_ms" => max_elapsed: Option<Duration>, Lenient<AnySpan<0>>;
        /// The codes to retry. Empty: all transient ones.
        "only_codes" => only_codes: Option<Vec<Box<str>>>, Lenient<List<Name>>;
        also {
            /// The same, as a deviation to either side.
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
        /// Which calls share it. Default: the tool's calls with the same origin in their params, or none.
        "hint" => hint: Option<BreakerHint>, Lenient<Word<BreakerHint>>;
        /// The tool's own breaker: `forced_open` refuses all calls, `disabled` none, `shadow` decides and
        /// reports only.
        "state" => state: Option<BreakerOrder>, Lenient<Word<BreakerOrder>>;
    }
}

object! { strict
    /// Changes to loop detection.
    struct Loops for LoopOverride {
        /// Identical failing calls that end it.
        "max_identical" => max_identical: Option<u32>, Lenient<Count<1000>>;
        /// Failures in a turn after which this tool is refused, or the model warned.
        "max_failures_per_turn" => max_failures_per_turn: Option<u32>, Lenient<Count<1000>>;
        /// Calls of this tool in a turn; later ones are refused.
        "calls_per_turn" => calls_per_turn: Option<u32>, Lenient<Count<100_000>>;
        /// Calls of this tool in a session; later ones are refused.
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
        /// How long successes are replayed, in milliseconds.
        "done_ms" => done: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// How long failures are replayed, in milliseconds.
        "failed_ms" => failed: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// The lease of a call in flight, in milliseconds.
        "inflight_ms" => inflight: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// How long a mutating call of unknown outcome blocks repeats, in milliseconds.
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
        /// Members of an element, each with the place of the same value in the call's params.
        "match" => matches: Vec<(Box<str>, Pointer)>, Map<Inside>;
        /// Where an element has its time of creation, such as `/created_at`. Required unless `match` has the
        /// tool's `server_key`.
        "not_before" => not_before: Option<Pointer>, Lenient<Inside>;
        /// After this time, such as `"30s"`, no match means that the call did not run. Default: it means
        /// nothing.
        "absent_after" => absent_after: Option<Duration>, Lenient<Period>;
    }
}

object! { strict
    /// What the records of a tool's calls show.
    struct Records {
        /// The params that a person who settles a call of unknown outcome sees, such as `/order_id`.
        "show" => show: Option<Vec<Pointer>>, Lenient<List<Inside>>;
    }
}

object! { strict
    /// How keys and digests are made.
    struct Keys {
        /// The params that name the call, such as `/order_id`: calls that agree in them are one call. Other
        /// params are then a conflict, but run after a failure.
        "identity" => identity: Option<Vec<Pointer>>, Lenient<List<Inside>>;
        /// How long after a success an equal call gets its answer and does not run, such as `"60s"`. Default:
        /// 0.
        "late" => late: Option<Duration>, Lenient<Period>;
        /// The param by which the server recognizes a repeat, such as `/idempotency_key`. `mcp` adds the key
        /// if it is absent, and sends it again with a repeat of a call of unknown outcome.
        "server_key" => server_key: Option<Pointer>, Lenient<Inside>;
        /// How long the server recognizes it. Default and most: `"24h"`.
        "server_key_ttl" => server_key_ttl: Option<Duration>, Lenient<Period>;
        /// Params that differ between calls without changing their meaning.
        "volatile" => volatile: Option<Vec<Pointer>>, Lenient<List<Inside>>;
        /// Params such as `retryCount` and `traceparent` count. Default: over MCP only.
        "keep_volatile" => keep_volatile: Option<bool>, Lenient<Flag>;
        /// Strings in which white space is insignificant.
        "any_whitespace" => any_whitespace: Option<Vec<Pointer>>, Lenient<List<Inside>>;
        /// Whose calls a key matches: of the session and actor, or all (`global`, for read-only tools).
        "scope" => scope: Option<DedupeScope>, Lenient<Word<DedupeScope>>;
    }
}

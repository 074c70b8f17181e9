//! `[loops]`.
use crate::catalog::shape::RECORDED;
use std::time::Duration;
use tr_loopguard::Signals;
use tr_wire::read::{
    Count, Flag, Integer, Kind, Lenient, List, Name, Size, Span, Word, object, shape, words,
};

object! { strict
    /// Changes to the loop guard.
    pub struct LoopConfig sets tr_loopguard::Builder {
        /// Whether loops are looked for.
        "enabled" => enabled: Option<bool>, Lenient<Flag> = true;
        /// What the loop guard does about a loop.
        "mode" => mode: Option<tr_loopguard::Mode>, Lenient<Word<Mode>> = "block";
        /// Identical failing calls that end a loop.
        "max_identical" => max_identical_failures: Option<u32>, Lenient<Count<1000>> = 2;
        /// Failures of any kind that end a turn. For callers without turns they only cause a warning, except
        /// in `strict`.
        "max_failures_per_turn" => max_failures_per_turn: Option<u32>, Lenient<Count<1000>> = 5;
        /// Calls in a turn after which `block` and `strict` refuse all. For callers without turns, one ends
        /// after `memory_ms` without a call. Default: no limit.
        "calls_per_turn" => calls_per_turn: Option<u32>, Lenient<Count<MOST>>;
        /// The same in a session. Default: no limit.
        "calls_per_session" => calls_per_session: Option<u32>, Lenient<Count<MOST>>;
        /// How long a failure counts for callers without turns, in milliseconds.
        "memory_ms" => memory: Option<Duration>, Lenient<Span<1, RECORDED>> = 60_000;
        /// How many turns are kept, the newest.
        "max_turns" => max_turns: Option<usize>, Lenient<Size<1_000_000>> = 10_000;
        /// Look for repeated answers, endless polls and cycles, too: warn at a threshold, refuse at twice.
        /// `tool-guard mcp` does in `note` and `block`, and only warns.
        "signals" => signals: Option<Option<Signals>>, Lenient<SignalsShape> = false;
        beside {
            /// A file for malformed calls, as JSON lines with their model; `~/` is the home folder. Default:
            /// none.
            "log_path" => log_path: Option<Box<str>>, Lenient<Name>;
        }
    }
}

/// The most that a signal can count.
pub(crate) const MOST: u32 = 100_000;

object! { strict
    /// Signals of loops without failures: from how many on the model is warned.
    pub struct LoopSignals sets Signals {
        /// Identical calls with the same answer.
        "repeats" => repeats: Option<u32>, Lenient<Integer<2, MOST>> = 10;
        /// Identical calls with the same failure that does not count against the turn.
        "failing_repeats" => failing_repeats: Option<u32>, Lenient<Integer<2, MOST>> = 5;
        /// Rounds of a cycle of 2 to 5 calls with the same answers.
        "rounds" => rounds: Option<u32>, Lenient<Integer<2, MOST>> = 3;
        /// Failures of a tool in a row with the same error and other params.
        "same_error" => same_error: Option<u32>, Lenient<Integer<2, MOST>> = 3;
        /// The pause before a call that counts as waiting, in milliseconds.
        "pace_ms" => pace: Option<Duration>, Lenient<Span<1, RECORDED>> = 10_000;
        /// How long a polled answer may stay the same, in milliseconds.
        "quiet_ms" => quiet: Option<Duration>, Lenient<Span<1, RECORDED>> = 3_600_000;
        /// Count transient failures, too.
        "count_transient" => count_transient: Option<bool>, Lenient<Flag> = false;
        /// Refuse calls at twice a threshold; else only warn.
        "refuse" => refuse: Option<bool>, Lenient<Flag> = true;
        /// Members of answers to ignore, besides times, durations and request ids.
        "volatile" => volatile: Option<Vec<Box<str>>>, Lenient<List<Name>> = [];
        beside {
            /// Whether they are looked for.
            "enabled" => enabled: Option<bool>, Lenient<Flag> = true;
        }
    }
}

shape! {
    /// Signals, or only whether they are looked for.
    pub(crate) SignalsShape => Option<Signals>, "true, false, or an object with thresholds",
    |node, faults| match node.source.kind() {
        Kind::Bool => Flag::read(node, faults).map(|enabled| enabled.then(Signals::default)),
        Kind::Object => LoopSignals::read(node, faults).map(|said| {
            (said.enabled != Some(false)).then(|| said.apply(Signals::default()))
        }),
        _ => node.refuse(Self::expected(), faults),
    },
    |generator| { "anyOf": [(Flag::schema(generator)), (LoopSignals::schema(generator))] }
}

words! {
    Mode for tr_loopguard::Mode { Off = "off", Note = "note", Block = "block", Strict = "strict" }
}

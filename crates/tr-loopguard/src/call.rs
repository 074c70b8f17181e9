//! What is known of a call, and what is decided about it.
use std::time::Instant;

/// Identifies a call by tool and args.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHash(pub(crate) u64);

/// Identifies a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolHash(pub(crate) u64);

/// Identifies an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorHash(pub(crate) u64);

/// Whether a failure counts, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It is transient.
    None,
    /// It depends on state that a call may change.
    Passing,
    /// It depends on the args alone.
    Lasting,
}

/// The limit that a call has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    /// The calls that were made.
    pub(crate) calls: u32,
    /// Whether it is the tool's own.
    pub(crate) of_tool: bool,
    /// Whether it is that of the session.
    pub(crate) of_session: bool,
}

/// What to do about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing.
    Continue,
    /// The same call failed the same way this many times, and is not executed again.
    LoopDetected(u32),
    /// The same call failed the same way this many times, and may be repeated.
    Repeated(u32),
    /// This many calls failed.
    HardCap(u32),
    /// The turn, or the session, has had as many calls as it may.
    CallLimit(ReachedLimit),
    /// A signal was detected.
    Signal(Signal),
}

/// The rule of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// One call keeps getting the same response.
    Repeat,
    /// A cycle of this many calls repeats with the same responses.
    Cycle(u8),
    /// A tool fails with the same error and different args.
    SameError,
    /// A polled result does not change.
    Quiet,
}

impl Rule {
    /// The name for observers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Cycle(_) => "cycle",
            Self::SameError => "same_error",
            Self::Quiet => "quiet",
        }
    }
}

/// A signal and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub(crate) rule: Rule,
    pub(crate) count: u32,
}

/// A call before it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestedCall {
    pub(crate) call: CallHash,
    pub(crate) tool: ToolHash,
    /// Whether the tool is declared as polled.
    pub(crate) poll: bool,
    /// The tool's own threshold of equal successes, if it has one.
    pub(crate) repeats: Option<u32>,
    pub(crate) at: Instant,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) asked: RequestedCall,
    pub(crate) end: End,
    /// Whether the tool changes nothing.
    pub(crate) read_only: bool,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With a response that has this hash, or cannot be compared; `pending` if the response says
    /// that a job has not ended.
    Success { answer: Option<u64>, pending: bool },
    /// With this error.
    Failure(ErrorHash),
}

//! What loop detection reads of a call and writes for the model.
use crate::End;
use std::borrow::Cow;

/// What loop detection reads of a call, and the feedback that a model gets about a failure. Apart
/// from the two policies, since it keeps a part of the request until the call ends.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what loop detection reads of a `{Req}` that ends in a `{Res}`",
    label = "no `LoopPolicy<{Req}, {Res}>` here",
    note = "write `impl tr_core::LoopPolicy<{Req}, {Res}> for {Self}` beside your request type",
    note = "for a type of another crate give the layer a policy of your own: `.policy(MyPolicy)`"
)]
pub trait LoopPolicy<Req, Res> {
    /// What is kept of a call until it ends, so that its args are hashed only if it fails.
    type Subject: Send + 'static;

    /// Keeps what loop detection may need.
    fn subject(&self, req: &Req) -> Self::Subject;

    /// Session, turn and tool of the call.
    fn details<'r>(&self, subject: &'r Self::Subject) -> LoopRef<'r>;

    /// Whether the tool has a limit of its own for the number of its calls; `false` by default.
    fn limits_calls(&self, subject: &Self::Subject) -> bool {
        let _ = subject;
        false
    }

    /// A hash of the normalised args, volatile fields left out; of the tool's loop key alone, where
    /// it has one.
    fn args_hash(&self, subject: &Self::Subject) -> u64;

    /// The failure's text as the model sees it; `None` for a success, and for a call that its
    /// caller has cancelled.
    fn failure<'r>(&self, end: End<'r, Res>) -> Option<Cow<'r, str>>;

    /// Whether this failure is known to be temporary; `false` by default.
    fn is_transient(&self, end: End<'_, Res>) -> bool {
        let _ = end;
        false
    }

    /// Whether this failure depends on the args alone, also where
    /// [its text](crate::classify::is_deterministic) does not say so: they fail a schema; `false`
    /// by default.
    fn is_invalid(&self, end: End<'_, Res>) -> bool {
        let _ = end;
        false
    }

    /// A success's text as the model sees it, to be compared with that of the same call before.
    /// `None`, the default: it cannot be compared, and counts as another one each time.
    fn success<'r>(&self, res: &'r Res) -> Option<Cow<'r, str>> {
        let _ = res;
        None
    }

    /// Adds `note` to what the model sees of this response.
    fn add_note(&self, res: &mut Res, note: &str);
}

/// What loop detection needs of a call. Fields are added in minor versions.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LoopRef<'r> {
    /// The turn.
    pub turn: TurnRef<'r>,
    /// The tool, as the model names it.
    pub tool: &'r str,
    /// The args as JSON text, where there are any: only their shape is ever logged.
    pub text: Option<&'r str>,
    /// The provider whose model made the call, where it is known.
    pub provider: Option<&'r str>,
    /// The model that made the call, where it is known.
    pub model: Option<&'r str>,
    /// The id that the model gave to the call.
    pub tool_call_id: Option<&'r str>,
    /// The tool only reads: its successes change nothing.
    pub read_only: bool,
    /// The tool is made to be asked again and again.
    pub poll: bool,
    /// How many identical failures this tool is allowed, where that is its own matter.
    pub max_identical: Option<u32>,
    /// How many failures of the turn this tool is called in spite of, where that is its own matter.
    pub max_failures_per_turn: Option<u32>,
    /// How many calls of this tool a turn may have.
    pub calls_per_turn: Option<u32>,
    /// How many calls of this tool a session may have.
    pub calls_per_session: Option<u32>,
    /// How often this tool may give one answer to one call before that is remarked, where that is
    /// its own matter.
    pub repeats: Option<u32>,
}

impl<'r> LoopRef<'r> {
    /// Only the turn and the tool are known, and the tool may change something; what else is known
    /// is set on it.
    ///
    /// ```
    /// use tr_core::{LoopRef, TurnRef};
    ///
    /// let mut call = LoopRef::new(TurnRef::default(), "search");
    /// call.read_only = true;
    /// ```
    #[must_use]
    pub fn new(turn: TurnRef<'r>, tool: &'r str) -> Self {
        Self { turn, tool, ..Self::default() }
    }
}

/// Which turn of which session. Both may be unknown: then calls of one layer instance share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TurnRef<'r> {
    /// The session.
    pub session: Option<&'r str>,
    /// The turn.
    pub turn: Option<&'r str>,
}

//! Cancels calls and turns.
use std::{collections::HashMap, pin::Pin, sync::Arc};
use tokio_util::sync::CancellationToken;
use tr_core::Cancellation;

/// Cancels calls of a turn by their cancellation ids, or the whole turn. A clone is another handle.
#[derive(Clone, Debug)]
pub struct Canceller {
    pub(crate) turn: CancellationToken,
    pub(crate) calls: Arc<HashMap<Box<str>, CancellationToken>>,
}

impl Canceller {
    /// Cancels the calls with this cancellation id, which is the call's name by default. Running
    /// calls are dropped, waiting calls never start. `false` if the plan has no such id.
    #[must_use = "`false` says that nothing was cancelled"]
    pub fn cancel(&self, id: &str) -> bool {
        let token = self.calls.get(id);
        token.inspect(|token| token.cancel()).is_some()
    }

    /// Cancels all calls that have not ended. The turn ends at once, with the results so far.
    pub fn cancel_turn(&self) {
        self.turn.cancel();
    }
}

/// The token that a call carries, so that inner layers can observe its cancellation.
#[derive(Debug)]
pub(crate) struct Token(pub(crate) CancellationToken);

impl Cancellation for Token {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.0.clone().cancelled_owned())
    }
}

//! The running calls that can be cancelled by an id.
//!
//! An entry is removed when its call is answered. If the caller is gone before, it lives as long as any
//! copy of the call, since one that runs to its end for its record can still be cancelled; it is removed
//! with the last copy, at whatever await that is dropped.
use std::{
    collections::HashMap,
    future::pending,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll},
};
use tokio::{sync::watch, task::coop};
use tr_core::{
    Cancellation, FailureInfo, Ran, Verdict, call::CallContext, debug_parts, internal::lock,
};

/// As many calls with a `cancellationId` run as the service allows. The tool did not run. Transient, code
/// `overloaded`.
#[derive(Debug, thiserror::Error)]
#[error(
    "the call did not run: {most} calls that can be cancelled are running already; repeat it later"
)]
pub struct TooManyCancellable {
    most: usize,
    #[source]
    info: FailureInfo,
}

/// Whose call it is, and its id. Another caller's ids are other ids.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    tenant: Option<Box<str>>,
    workspace: Option<Box<str>>,
    session: Option<Box<str>>,
    actor: Option<Box<str>>,
    id: Box<str>,
}

impl Name {
    fn new(context: &CallContext, id: &str) -> Self {
        let CallContext { tenant, workspace, session, actor, .. } = context.clone();
        Self { tenant, workspace, session, actor, id: id.into() }
    }
}

/// Cancels running calls by their `cancellationId`. A clone is another handle of the same calls.
#[derive(Clone)]
pub struct Canceller(Arc<Running>);

/// The calls that are running.
pub(super) struct Running {
    table: Mutex<Table>,
    most: usize,
}

#[derive(Default)]
struct Table {
    /// Several calls may have one id.
    calls: HashMap<Name, Vec<(u64, Weak<Token>)>>,
    count: usize,
    next: u64,
}

impl Canceller {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Running { table: Mutex::default(), most }))
    }

    /// How many calls may run at a time.
    pub(super) fn most(&self) -> usize {
        self.0.most
    }

    /// Cancels the running calls with this id that were made on behalf of `context`, of which tenant,
    /// workspace, session and actor count; returns how many these are. A call that comes later is
    /// another call, whatever its id.
    ///
    /// A cancelled call ends as `cancelled`. The attempt that is running is dropped, so the tool may have
    /// run; a keyed call is recorded as `unknown` then, and none follows. A call that only waits for
    /// another caller's run of its key leaves that run alone.
    #[must_use = "0 says that nothing was cancelled"]
    pub fn cancel(&self, context: &CallContext, id: &str) -> usize {
        let calls = lock(&self.0.table).calls.get(&Name::new(context, id)).cloned();
        // Outside of the lock: the last copy of a call takes it when it goes.
        let tokens = calls.iter().flatten().filter_map(|(_, token)| token.upgrade());
        tokens.inspect(|token| _ = token.cancelled.send_replace(true)).count()
    }

    /// How many calls that can be cancelled are running.
    #[must_use]
    pub fn running(&self) -> usize {
        lock(&self.0.table).count
    }

    /// Enters a call.
    pub(super) fn enter(
        &self,
        context: &CallContext,
        id: &str,
    ) -> Result<Arc<Token>, TooManyCancellable> {
        let mut table = lock(&self.0.table);
        let most = self.0.most;
        if table.count >= most {
            let info = FailureInfo::new("overloaded", Ran::No, Verdict::TRANSIENT).by_layer();
            return Err(TooManyCancellable { most, info });
        }
        let (name, number) = (Name::new(context, id), table.next);
        table.next += 1;
        table.count += 1;
        let token = Arc::new(Token {
            running: self.0.clone(),
            name: name.clone(),
            number,
            cancelled: watch::Sender::new(false),
        });
        table.calls.entry(name).or_default().push((number, Arc::downgrade(&token)));
        Ok(token)
    }
}

debug_parts! { Canceller, |it| running = it.running() }

/// One running call, as it carries it.
pub(super) struct Token {
    running: Arc<Running>,
    name: Name,
    number: u64,
    cancelled: watch::Sender<bool>,
}

impl Token {
    /// Its call is over.
    pub(super) fn leave(&self) {
        let mut table = lock(&self.running.table);
        let Some(calls) = table.calls.get_mut(&self.name) else { return };
        let before = calls.len();
        calls.retain(|(number, _)| *number != self.number);
        let (is_empty, left) = (calls.is_empty(), before - calls.len());
        if is_empty {
            table.calls.remove(&self.name);
        }
        table.count -= left;
    }
}

impl Cancellation for Token {
    fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    fn cancelled(&self) -> Cancelled {
        let mut changes = self.cancelled.subscribe();
        Box::pin(async move {
            if changes.wait_for(|is| *is).await.is_err() {
                // The call is gone: it was never cancelled.
                pending::<()>().await;
            }
        })
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.leave();
    }
}

debug_parts! { Token, |it| cancelled = it.is_cancelled() }

/// What may stop a call; nothing if it has no id to be cancelled by.
pub(super) struct Stop {
    by: Option<(Arc<Token>, Cancelled)>,
    begun: bool,
}

type Cancelled = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Stop {
    pub(super) fn new(token: Option<Arc<Token>>) -> Self {
        let by = token.map(|token| {
            let cancelled = token.cancelled();
            (token, cancelled)
        });
        Self { by, begun: false }
    }

    /// Polls the call until it ends or is cancelled: then `None`. One that was cancelled before does not
    /// begin. Inner layers hear of it first, because they know whether the tool ran.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        if !mem::replace(&mut self.begun, true) && self.is_there(cx) {
            return Poll::Ready(None);
        }
        let mut end = call(cx);
        if end.is_pending() && self.is_there(cx) {
            end = call(cx);
            if end.is_pending() {
                return Poll::Ready(None);
            }
        }
        end.map(Some)
    }

    /// Whether the call was cancelled.
    fn is_there(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((token, cancelled)) = &mut self.by else { return false };
        // Unconstrained, so that a call which uses up the task's budget does not block its
        // cancellation.
        token.is_cancelled()
            || Pin::new(&mut coop::unconstrained(cancelled.as_mut())).poll(cx).is_ready()
    }

    /// The call is over.
    pub(super) fn end(&mut self) {
        if let Some((token, _)) = self.by.take() {
            token.leave();
        }
    }
}

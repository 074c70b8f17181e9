//! The innermost room: what a tool gives back, in the contract's words.
use pin_project_lite::pin_project;
use std::{
    error::Error,
    fmt,
    future::Future,
    iter,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{
    BoxError, Facts, Ran, ToolCall, ToolManifest, ToolOutcome, classify, code, facts,
    wire::Normaliser,
};
use tr_loopguard::Noted;

/// Applies [`Adapter`].
#[derive(Clone, Copy, Debug)]
pub struct AdapterLayer {
    normalises: bool,
    looks: bool,
    counts: bool,
}

impl AdapterLayer {
    /// Around the bare tool.
    #[must_use]
    pub const fn new() -> Self {
        Self { normalises: true, looks: true, counts: true }
    }

    /// Whether failures are classified here; they are by default. If not, the tool's own outcomes
    /// pass as they are, and its own errors are put aside for the caller: the layers judge them as
    /// well as they can without the `classification` of the tool's manifest.
    #[must_use]
    pub const fn normalise(mut self, normalises: bool) -> Self {
        self.normalises = normalises;
        self
    }

    /// Whether answers are looked into for failures ([`Normaliser`]); they are by default, unless
    /// their tool's manifest has them not to, or failures are not normalised at all.
    #[must_use]
    pub const fn silent_failures(mut self, looks: bool) -> Self {
        self.looks = looks;
        self
    }

    /// Counts no runs: what stands inside runs no tool.
    pub(crate) const fn uncounted(mut self) -> Self {
        self.counts = false;
        self
    }
}

impl Default for AdapterLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for AdapterLayer {
    type Service = Adapter<S>;

    fn layer(&self, inner: S) -> Adapter<S> {
        let Self { normalises, looks, counts } = *self;
        Adapter { inner, normalises, looks, counts }
    }
}

/// Classifies each failure once, where the tool's manifest is at hand, so that all layers see the
/// same verdict: errors, failures that an outcome has, and those that look like answers. Any other
/// success passes untouched.
#[derive(Clone, Copy, Debug)]
pub struct Adapter<S> {
    inner: S,
    normalises: bool,
    looks: bool,
    counts: bool,
}

impl<S> Service<ToolCall> for Adapter<S>
where
    S: Service<ToolCall, Response = ToolOutcome>,
    S::Error: Into<BoxError>,
{
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = AdapterFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        // A copy of the call is a count that only this call touches; a manifest's is everybody's.
        let of = call.parts().manifest.is_some().then(|| call.clone());
        if self.counts {
            call.note_run();
        }
        let normalises = self.normalises;
        let looks = self.looks && normalises;
        AdapterFuture { inner: self.inner.call(call), of, normalises, looks }
    }
}

pin_project! {
    /// The response of an [`Adapter`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct AdapterFuture<F> {
        #[pin]
        inner: F,
        of: Option<ToolCall>,
        normalises: bool,
        looks: bool,
    }
}

impl<F, E> Future for AdapterFuture<F>
where
    F: Future<Output = Result<ToolOutcome, E>>,
    E: Into<BoxError>,
{
    type Output = Result<ToolOutcome, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let manifest = this.of.as_ref().and_then(ToolCall::manifest);
        Poll::Ready(match ready!(this.inner.poll(cx)) {
            Ok(outcome) if outcome.error().is_none() => {
                Ok(match normaliser(*this.looks, manifest) {
                    Some(normaliser) => normaliser.judge(outcome, manifest),
                    None => outcome,
                })
            }
            end if !*this.normalises => end.map_err(|error| put_aside(error.into())),
            Ok(outcome) => Ok(judged(outcome, manifest)),
            Err(error) => Err(tool_failed(error.into(), manifest)),
        })
    }
}

/// By which the answers of this tool are looked into, if they are.
#[inline]
fn normaliser(looks: bool, manifest: Option<&ToolManifest>) -> Option<Normaliser> {
    let normaliser = Normaliser::default();
    match manifest {
        _ if !looks => None,
        Some(tool) if !tool.silent_failures => None,
        Some(tool) if tool.null_is_success => Some(normaliser.null_is_success()),
        _ => Some(normaliser),
    }
}

/// The outcome with its verdict on it.
#[cold]
fn judged(mut outcome: ToolOutcome, manifest: Option<&ToolManifest>) -> ToolOutcome {
    if let Some(error) = &mut outcome.parts_mut().error {
        classify::stamp(error, manifest);
    }
    outcome
}

/// The error with facts in its chain.
#[cold]
fn tool_failed(error: BoxError, manifest: Option<&ToolManifest>) -> BoxError {
    let overrules = manifest.is_some_and(|tool| !tool.classification.is_empty());
    let said = facts(&*error).map(Facts::code);
    // A tool's word for a key of its own: a repeat of this call is another one.
    let is_its_own_key = said == Some(code::IDEMPOTENCY_IN_FLIGHT);
    if said.is_some() && !overrules && !is_its_own_key {
        return error;
    }
    let mut found = classify::error(&*error);
    found.end.exhausted |= is_its_own_key;
    let found = manifest.map_or(found, |tool| found.with_manifest(tool));
    let message = error.to_string();
    let facts = Facts::of(found.end).because(error);
    ToolFailed::new(message, facts).into()
}

/// What the error says, for the layers; the error itself is for the caller.
#[cold]
fn put_aside(error: BoxError) -> BoxError {
    if facts(&*error).is_some() {
        return error;
    }
    let seen = ToolFailed::as_seen(&*error, None);
    ToolFailed { own: Mutex::new(Some(error)), ..seen }.into()
}

/// The tool's own error in the place of the stack's error about it, if it was put aside. It stays
/// where the stack has more to say: that it refused the call, or that an earlier attempt may have
/// run.
#[cold]
pub(crate) fn own(error: BoxError) -> BoxError {
    match error.downcast::<Noted>() {
        Ok(noted) => noted.map(own).into(),
        Err(error) => taken(&*error).unwrap_or(error),
    }
}

/// `None` too if somebody who waited for the same run has it.
fn taken(error: &(dyn Error + 'static)) -> Option<BoxError> {
    let said = facts(error)?;
    let failed = iter::successors(Some(error), |&error| error.source())
        .find_map(|error| error.downcast_ref::<ToolFailed>())?;
    let is_about_it = [code::RETRY_EXHAUSTED, failed.facts.code()].contains(&said.code());
    if is_about_it && said.ran() == failed.ran() { failed.lock().take() } else { None }
}

/// The tool's own error, classified. Its text is the tool's, and so is its cause.
///
/// Where failures are [not normalised](AdapterLayer::normalise) it stands for the tool's own error
/// on the way through the layers.
#[derive(Debug)]
pub struct ToolFailed {
    message: String,
    facts: Facts,
    /// The error itself, put aside for the caller.
    own: Mutex<Option<BoxError>>,
}

impl ToolFailed {
    const fn new(message: String, facts: Facts) -> Self {
        Self { message, facts, own: Mutex::new(None) }
    }

    /// What `error` says, for somebody who does not get the error itself.
    pub(crate) fn as_seen(
        error: &(dyn Error + Send + Sync + 'static),
        manifest: Option<&ToolManifest>,
    ) -> Self {
        let found = classify::error(error);
        let found = manifest.map_or(found, |tool| found.with_manifest(tool));
        Self::new(error.to_string(), Facts::of(found.end))
    }

    /// Whether the tool ran.
    pub(crate) const fn ran(&self) -> Ran {
        self.facts.ran()
    }

    /// Shows what was put aside, if this is a tool's error for which that holds, else the error.
    pub(crate) fn show(error: &BoxError, show: impl FnOnce(&BoxError)) {
        let own = error.downcast_ref::<Self>().map(Self::lock);
        show(own.as_ref().and_then(|own| own.as_ref()).unwrap_or(error));
    }

    fn lock(&self) -> MutexGuard<'_, Option<BoxError>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for ToolFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.facts)
    }
}

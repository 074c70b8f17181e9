//! The innermost layer: converts the errors and failures of a tool to the types of `tr-core`.
use pin_project_lite::pin_project;
use std::{
    error::Error,
    iter,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, ready},
};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{
    BoxError, FailureInfo, Pieces, Ran, ToolCall, ToolManifest, ToolOutcome, classify, code,
    failure_info, internal::lock, setters,
};
use tr_loopguard::Noted;
use tr_wire::Normaliser;

/// Applies [`Adapter`].
#[derive(Clone, Copy, Debug)]
pub struct AdapterLayer {
    pub(crate) normalises: bool,
    pub(crate) looks: bool,
    pub(crate) is_seen: bool,
}

impl AdapterLayer {
    /// For the bare tool.
    #[must_use]
    pub const fn new() -> Self {
        Self { normalises: true, looks: true, is_seen: false }
    }

    setters! {
        /// Sets whether failures are classified; they are by default. If not, the tool's outcomes pass
        /// unchanged, and its errors are kept for the caller: the layers classify them without the
        /// `classification` of the tool's manifest.
        fn normalise(normalises: bool) { normalises = normalises }

        /// Sets whether answers are searched for silent failures ([`Normaliser`]); they are by default,
        /// unless the tool's manifest turns it off or failures are not normalised at all.
        fn silent_failures(looks: bool) { looks = looks }
    }

    /// What the layers would see of this end of a tool.
    pub(crate) fn seen(
        self,
        end: &Result<ToolOutcome, BoxError>,
        manifest: Option<&ToolManifest>,
    ) -> Result<ToolOutcome, BoxError> {
        let manifest = manifest.filter(|_| self.normalises);
        match end {
            Ok(outcome) if outcome.error().is_some() => Ok(judged(outcome.clone(), manifest)),
            Ok(outcome) => Ok(self.judge(outcome.clone(), manifest)),
            Err(error) => Err(ToolFailed::as_seen(&**error, manifest).into()),
        }
    }

    /// The normaliser for the answers of this tool, if they are searched for failures.
    #[inline]
    fn normaliser(self, manifest: Option<&ToolManifest>) -> Option<Normaliser> {
        let normaliser = Normaliser::default();
        match manifest {
            _ if !self.looks || !self.normalises => None,
            Some(tool) if !tool.silent_failures => None,
            Some(tool) if tool.null_is_success => Some(normaliser.null_is_success()),
            _ => Some(normaliser),
        }
    }

    /// The outcome as the normaliser judges it, if it is searched for failures. Of a streamed answer
    /// that is what the tool gave at its end.
    #[inline]
    fn judge(self, outcome: ToolOutcome, manifest: Option<&ToolManifest>) -> ToolOutcome {
        let Some(normaliser) = self.normaliser(manifest) else { return outcome };
        let closes = outcome.pieces().is_some_and(Pieces::closes);
        let failure = if closes { failed_at_end(normaliser, &outcome, manifest) } else { None };
        failure.unwrap_or_else(|| normaliser.judge(outcome, manifest))
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
        Adapter { inner, rules: *self }
    }
}

/// Classifies each failure once, under the tool's manifest, so that all layers see the same verdict:
/// errors, failures in an outcome, and failures that look like answers. Any other
/// success passes untouched.
#[derive(Clone, Copy, Debug)]
pub struct Adapter<S> {
    inner: S,
    rules: AdapterLayer,
}

impl<S> Service<ToolCall> for Adapter<S>
where
    S: Service<ToolCall, Response = ToolOutcome, Error: Into<BoxError>>,
{
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = AdapterFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        if !self.rules.is_seen {
            call.note_run();
            call.begin_run();
        }
        // Cloning the call touches a count of this call only; the manifest's count is shared by all calls.
        let of = call.clone();
        AdapterFuture { inner: self.inner.call(call), of, rules: self.rules }
    }
}

pin_project! {
    /// The response of an [`Adapter`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct AdapterFuture<F> {
        #[pin]
        inner: F,
        of: ToolCall,
        rules: AdapterLayer,
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
        let end = ready!(this.inner.poll(cx));
        let manifest = this.of.manifest();
        let chunks = this.of.end_run();
        let is_partly = chunks.as_ref().is_some_and(|chunks| chunks.sent() > 0);
        let end = match end {
            Ok(outcome) if outcome.error().is_none() => {
                let outcome = this.rules.judge(outcome, manifest);
                Ok(match &chunks {
                    Some(chunks) => chunks.finish(this.of.attempt(), outcome),
                    None => outcome,
                })
            }
            Ok(outcome) if this.rules.normalises => Ok(judged(outcome, manifest)),
            Ok(outcome) => Ok(outcome),
            Err(error) if this.rules.is_seen && !is_partly => Err(error.into()),
            Err(error) if this.rules.normalises => {
                Err(tool_failed(error.into(), manifest, is_partly))
            }
            Err(error) => Err(put_aside(error.into(), is_partly)),
        };
        Poll::Ready(end.map(|outcome| if is_partly { ran_in_part(outcome) } else { outcome }))
    }
}

/// The failure that the end of a streamed answer is.
#[cold]
fn failed_at_end(
    normaliser: Normaliser,
    outcome: &ToolOutcome,
    manifest: Option<&ToolManifest>,
) -> Option<ToolOutcome> {
    let closing = outcome.split_content()?.closing()?;
    let end = normaliser.judge(ToolOutcome::success(closing), manifest);
    let mut parts = outcome.parts().clone();
    parts.error = Some(end.error()?.clone());
    parts.content = end.content().cloned();
    Some(parts.into())
}

/// The outcome of a tool that has sent chunks: a failure does not say that it did not run.
#[cold]
fn ran_in_part(mut outcome: ToolOutcome) -> ToolOutcome {
    let end = outcome.error().map(|error| classify::tool_error(error).end);
    if end.is_some_and(|end| end.ran == Ran::No)
        && let Some(error) = &mut outcome.parts_mut().error
    {
        classify::stamp(error, None);
        error.ran = Ran::Unknown;
    }
    outcome
}

/// The outcome with its verdict on it.
#[cold]
fn judged(mut outcome: ToolOutcome, manifest: Option<&ToolManifest>) -> ToolOutcome {
    if let Some(error) = &mut outcome.parts_mut().error {
        classify::stamp(error, manifest);
    }
    outcome
}

/// The error with failure information in its chain.
#[cold]
fn tool_failed(error: BoxError, manifest: Option<&ToolManifest>, is_partly: bool) -> BoxError {
    let mut found = found_in(&*error, manifest);
    // Chunks that were sent are evidence that it ran.
    if is_partly && found.end.ran == Ran::No {
        found.end.ran = Ran::Unknown;
    }
    if says_the_same(&*error, &found) {
        return error;
    }
    let message = error.to_string();
    let info = FailureInfo::of(found.end).by_layer().because(error);
    ToolFailed::new(message, info).into()
}

fn found_in<'e>(
    error: &'e (dyn Error + 'static),
    manifest: Option<&ToolManifest>,
) -> classify::Finding<'e> {
    let found = classify::tool_function(error);
    manifest.map_or(found, |tool| found.with_manifest(tool))
}

/// Whether all layers read out of the error as it is what was found. A replay is none of this call.
fn says_the_same(error: &(dyn Error + 'static), found: &classify::Finding<'_>) -> bool {
    let said = failure_info(error).filter(|said| said.replay().is_none());
    said.is_some_and(|said| said.classification() == found.end)
}

/// The classified text of the error for the layers; the error itself is kept for the caller.
#[cold]
fn put_aside(error: BoxError, is_partly: bool) -> BoxError {
    let found = found_in(&*error, None);
    if is_partly && found.end.ran == Ran::No {
        // The caller is not told what the error says of it either.
        return tool_failed(error, None, true);
    }
    if says_the_same(&*error, &found) {
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

/// `None` also if a caller that waited for the same run has taken it.
fn taken(error: &(dyn Error + 'static)) -> Option<BoxError> {
    let said = failure_info(error)?;
    let failed = iter::successors(Some(error), |&error| error.source())
        .find_map(|error| error.downcast_ref::<ToolFailed>())?;
    let is_about_it = [code::RETRY_EXHAUSTED, failed.info.code()].contains(&said.code());
    if is_about_it && said.ran() == failed.ran() { lock(&failed.own).take() } else { None }
}

/// The tool's own error, classified. Its text is the tool's, and so is its cause.
///
/// Where failures are [not normalised](AdapterLayer::normalise) it stands for the tool's own error
/// on the way through the layers.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailed {
    message: String,
    #[source]
    info: FailureInfo,
    /// The error itself, put aside for the caller.
    own: Mutex<Option<BoxError>>,
}

impl ToolFailed {
    const fn new(message: String, info: FailureInfo) -> Self {
        Self { message, info, own: Mutex::new(None) }
    }

    /// The text of `error`, for a caller that cannot get the error itself.
    pub(crate) fn as_seen(
        error: &(dyn Error + Send + Sync + 'static),
        manifest: Option<&ToolManifest>,
    ) -> Self {
        Self::new(error.to_string(), FailureInfo::of(found_in(error, manifest).end).by_layer())
    }

    /// Whether the tool ran.
    pub(crate) const fn ran(&self) -> Ran {
        self.info.ran()
    }

    /// Shows what was put aside, if this is a tool's error for which that holds, else the error.
    pub(crate) fn show(error: &BoxError, show: impl FnOnce(&BoxError)) {
        let own = error.downcast_ref::<Self>().map(|failed| lock(&failed.own));
        show(own.as_ref().and_then(|own| own.as_ref()).unwrap_or(error));
    }
}

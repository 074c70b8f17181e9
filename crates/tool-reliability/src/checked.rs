//! Validates params against their tool's schema, before anything is recorded or run.
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;
use tr_core::{BoxError, ToolCall, internal::Called};

/// With the feature `input-schema`, refuses calls whose params fail the input schema in their
/// tool's manifest; without it, refuses none. Its place is inside of whatever counts failures, and
/// outside of records.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckedLayer;

impl<S> Layer<S> for CheckedLayer {
    type Service = Checked<S>;

    fn layer(&self, inner: S) -> Checked<S> {
        Checked { inner }
    }
}

/// Refuses a call whose params fail the input schema in its manifest.
///
/// # Errors
/// `InvalidParams` of `tr-core` names every fault with its JSON pointer. The tool did not run
/// ([`Ran::No`](tr_core::Ran::No)), and a repeat fails again.
#[derive(Clone, Copy, Debug)]
pub struct Checked<S> {
    inner: S,
}

impl<S> Service<ToolCall> for Checked<S>
where
    S: Service<ToolCall, Error: Into<BoxError>>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = CheckedFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        #[cfg(feature = "input-schema")]
        if let Err(error) = check(&call) {
            return Called::not(error);
        }
        Called::new(self.inner.call(call))
    }
}

#[cfg(feature = "input-schema")]
#[inline]
fn check(call: &ToolCall) -> Result<(), BoxError> {
    match call.manifest() {
        Some(manifest) if manifest.input_schema.is_some() => {
            manifest.check(&call.parts().params).map_err(Into::into)
        }
        _ => Ok(()),
    }
}

/// The response of a [`Checked`] service.
pub type CheckedFuture<F> = Called<F>;

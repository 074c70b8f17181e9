//! The service that refuses params which fail their tool's schema.
use std::task::{Context, Poll};
use tower_service::Service;
use tr_core::{BoxError, ToolCall, internal::Called};

/// Refuses a call whose params fail the input schema in its manifest.
///
/// # Errors
/// `InvalidParams` of `tr-core` names every fault with its JSON pointer. The tool did not run
/// ([`Ran::No`](tr_core::Ran::No)), and a repeat fails again.
#[derive(Clone, Copy, Debug)]
pub struct Checked<S> {
    pub(super) inner: S,
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
        match check(&call) {
            Ok(()) => Called::new(self.inner.call(call)),
            Err(error) => Called::not(error),
        }
    }
}

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

//! What all requests to one server share.
use super::{alive::Alive, http::Target};
use crate::mcp::options::{HttpOptions, Preflight, StatusRules};
use hyper::Uri;

/// What all requests to one server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) target: Target,
    pub(super) alive: Alive,
    pub(super) status: StatusRules,
    pub(super) preflight: Preflight,
    pub(super) max_line: usize,
}

impl Shared {
    pub(super) fn new(
        url: &Uri,
        options: &HttpOptions,
        status: StatusRules,
        max_line: usize,
    ) -> anyhow::Result<Self> {
        let target = Target::new(url, &options.reach)?;
        let preflight = options.preflight;
        Ok(Self { target, alive: Alive::new(), status, preflight, max_line })
    }
}

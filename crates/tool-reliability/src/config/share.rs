//! Breakers that are shared with other processes, as a configuration says.
use crate::{ConfigError, ToolStack};
use tr_config::ShareConfig;

/// What shares the breakers of this stack, for its user to spawn.
#[cfg(feature = "redis")]
pub(super) fn share(
    config: &ShareConfig,
    stack: &ToolStack,
) -> Result<tr_breaker::share::Sharing, ConfigError> {
    let builder = set!(
        tr_breaker::share::Sharing::builder(&*config.place),
        namespace = config.namespace.as_deref(),
        every = config.every_ms.map(std::time::Duration::from_millis),
    );
    builder.build(stack.breakers())
}

#[cfg(not(feature = "redis"))]
pub(super) fn share(_: &ShareConfig, _: &ToolStack) -> Result<(), ConfigError> {
    let why = "`breaker.share` needs the feature `redis` of tool-reliability";
    ConfigError::check("breaker sharing", vec![why.to_owned()])
}

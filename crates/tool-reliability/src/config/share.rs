//! Breakers that are shared with other processes, as a configuration says.
use crate::{ConfigError, ToolStack};
use tokio::task::AbortHandle;
use tr_config::ShareConfig;

/// The task that shares breakers; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Sharing(AbortHandle);

impl Drop for Sharing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Shares the breakers of this stack from now on.
#[cfg(feature = "redis")]
pub(super) fn share(config: &ShareConfig, stack: &ToolStack) -> Result<Sharing, ConfigError> {
    let mut builder = crate::breaker::share::Sharing::builder(&*config.place);
    if let Some(namespace) = config.namespace.as_deref() {
        builder = builder.namespace(namespace);
    }
    if let Some(every) = config.every_ms {
        builder = builder.every(std::time::Duration::from_millis(every));
    }
    let sharing = builder.build(stack.breakers())?;
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return refuse("needs a tokio runtime: build the stack inside of one");
    };
    Ok(Sharing(runtime.spawn(sharing.run()).abort_handle()))
}

#[cfg(not(feature = "redis"))]
pub(super) fn share(_: &ShareConfig, _: &ToolStack) -> Result<Sharing, ConfigError> {
    refuse("needs the feature `redis` of tool-reliability")
}

fn refuse(why: &str) -> Result<Sharing, ConfigError> {
    let refused = ConfigError::check("breaker sharing", vec![format!("`breaker.share` {why}")]);
    Err(refused.expect_err("there is a fault"))
}

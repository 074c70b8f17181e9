//! The faults of all layers' settings.
use tr_core::ConfigError;

/// The faults of all layers.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(super) Option<ConfigError>);

impl Faults {
    /// What was built, or its fault beside those of others.
    pub(crate) fn gather<T>(&mut self, built: Result<T, ConfigError>) -> Option<T> {
        let add = |error| match self.0.take() {
            Some(others) => others.and(error),
            None => error,
        };
        built.map_err(add).map_err(|all| self.0 = Some(all)).ok()
    }
}

//! The faults of all layers' settings.
use tr_core::ConfigError;

/// The faults of all layers.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Option<ConfigError>);

impl Faults {
    pub(super) fn gather<T>(&mut self, built: Result<T, ConfigError>) -> Option<T> {
        match built {
            Ok(built) => Some(built),
            Err(error) => {
                self.add(error);
                None
            }
        }
    }

    pub(super) fn add(&mut self, error: ConfigError) {
        self.0 = Some(match self.0.take() {
            Some(others) => others.and(error),
            None => error,
        });
    }
}

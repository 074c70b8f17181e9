//! How the guard is set up: options, variables and files, and files once more.
use super::{
    Options,
    effects::Declared,
    stack::{read_catalog, read_config},
};
use std::{env, path::PathBuf};
use tool_reliability::{
    Environment,
    config::{CatalogError, Config, DeriveKeys, Live, PREFIX, Reloaded},
    idempotency::DerivedKeys,
};

/// The files that say how the guard is set up.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    config: Option<PathBuf>,
    catalog: Option<PathBuf>,
}

/// What they and the environment say.
pub(crate) struct Setup {
    pub(crate) config: Config,
    declared: tr_core::ToolCatalog,
}

impl Files {
    pub(crate) fn of(options: &Options) -> Self {
        Self { config: options.config.clone(), catalog: options.catalog.clone() }
    }

    /// Reads them.
    ///
    /// # Errors
    /// Names everything that is wrong with any of them, and with the environment.
    pub(crate) fn read(&self) -> Result<Setup, String> {
        let mut faults = Environment::faults(|name| env::var(name).ok());
        let vars = faults.take(variables());
        let file = faults.take(self.config.as_deref().map(read_config).transpose());
        let declared = faults.take(self.catalog.as_deref().map(read_catalog).transpose());
        let (Some(vars), Some(file), Some(declared)) = (vars, file, declared) else {
            return Err(faults.join("\n"));
        };
        if !faults.is_empty() {
            return Err(faults.join("\n"));
        }
        let config = vars.or(file.unwrap_or_default());
        Ok(Setup { config, declared: declared.unwrap_or_default() })
    }

    /// Reads them again, and has the stack take over what can change.
    ///
    /// # Errors
    /// Names everything that is wrong; nothing has changed then.
    pub(crate) fn read_again(&self, live: &Live, declared: &Declared) -> Result<Reloaded, String> {
        let setup = self.read()?;
        let reloaded = live.reload(setup.config.clone()).map_err(|error| error.to_string())?;
        setup.declare(declared);
        Ok(reloaded)
    }
}

/// Settings in variables. What is no text is nobody's setting.
fn variables() -> Result<Config, CatalogError> {
    let vars = env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    Config::from_vars(vars)
}

impl Setup {
    /// Declares what is known of tools: what the catalogue says beats the configuration.
    pub(crate) fn declare(&self, declared: &Declared) {
        declared.replace(self.config.catalog.iter().chain(self.declared.iter()));
    }

    /// From what keys are derived: an option beats the configuration.
    pub(crate) fn keys(&self, option: Option<DerivedKeys>) -> DerivedKeys {
        let configured = self.config.idempotency.derived_keys.map(|keys| match keys {
            DeriveKeys::Off => DerivedKeys::Off,
            DeriveKeys::CutOff => DerivedKeys::CutOff,
            DeriveKeys::Step => DerivedKeys::Step,
            DeriveKeys::Session => DerivedKeys::Session,
        });
        option.or(configured).unwrap_or(DerivedKeys::Off)
    }
}

/// Collects what is wrong.
trait Faults {
    fn take<T, E: Into<anyhow::Error>>(&mut self, read: Result<T, E>) -> Option<T>;
}

impl Faults for Vec<String> {
    fn take<T, E: Into<anyhow::Error>>(&mut self, read: Result<T, E>) -> Option<T> {
        read.map_err(|error| self.push(format!("{:#}", error.into()))).ok()
    }
}

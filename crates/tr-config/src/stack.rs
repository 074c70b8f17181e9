//! How a stack is set up, read from a file and from the environment.
//!
//! # When to use
//!
//! To configure a stack outside of the program: `tool_reliability::Live` builds one from a
//! configuration, and applies a new one while calls are running. Hooks, stores and exporters are set
//! through the builder.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "toml")] {
//! use std::time::Duration;
//! use tr_config::{Config, Language};
//!
//! let config = Config::from_toml(r#"
//!     [rollout]
//!     mode = "shadow"
//!     read_only = "enforce"
//!     mutating = { mode = "enforce", percent = 10, others = "shadow" }
//!
//!     [retry]
//!     attempts = 3
//!
//!     [breaker]
//!     cooldown_ms = 5_000
//!
//!     [tools.flight_search]
//!     effect = "read_only"
//!     timeout_ms = 3_000
//! "#)?;
//! assert_eq!(config.breaker.cooldown, Some(Duration::from_secs(5)));
//! assert_eq!(config.catalog.len(), 1);
//!
//! // A variable beats what the file says of its setting.
//! let vars = [("TOOL_RELIABILITY__BREAKER__COOLDOWN_MS", "9000")];
//! let config = Config::from_text("[breaker]\nwindow = 30\ncooldown_ms = 5", Language::Toml, vars)?;
//! assert_eq!((config.breaker.window, config.breaker.cooldown), (Some(30), Some(Duration::from_secs(9))));
//! # }
//! # Ok::<_, tr_config::CatalogError>(())
//! ```
//!
//! # The form
//!
//! `defaults`, `tools` and `undeclared_effect` are those of a [catalog](crate::catalog): what is
//! known of each tool, and beats what is said for all. JSON has the same form as TOML, which needs
//! the feature `catalog`. The form's schema is `schemas/stack-config.schema.json`.
//!
//! # Variables
//!
//! Those whose names begin with [`PREFIX`] are settings; the others are not looked at. What follows
//! is the setting's place, its parts joined by two underscores, in any case:
//! `TOOL_RELIABILITY__BREAKER__COOLDOWN_MS=5000`, `TOOL_RELIABILITY__TOOLS__SEARCH__TIMEOUT_MS=900`.
//! A part that the file has in other letters is meant as the file has it; else it is in small
//! letters. Values are JSON where they can be (`5000`, `true`, `[0.5, 1]`), else text (`shadow`).
//!
//! # Errors
//!
//! [`CatalogError`](crate::CatalogError) names every mistake at once, with its line, or its variable.
mod breaker;
mod check;
mod form;
mod guard;
mod idempotency;
mod limit;
mod loops;
mod preset;
pub(crate) mod read;
mod retry;
mod sessions;
mod telemetry;
pub(crate) mod variable;

pub use self::{
    breaker::{BreakerConfig, SlowCalls},
    form::{Config, by_effect},
    guard::{
        IdentityConfig, RecordBodies, RecordPlace, RecordsConfig, StatusMeaning, UpstreamConfig,
    },
    idempotency::{IdempotencyConfig, StoreFailures},
    loops::LoopConfig,
    preset::Preset,
    retry::{BudgetConfig, RetryOptIn, RetrySettings},
    sessions::{SessionPlace, SessionsConfig},
    telemetry::TelemetryConfig,
    variable::PREFIX,
};

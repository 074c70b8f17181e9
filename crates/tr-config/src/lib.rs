//! What an agent's tools are and how their stack is set up, read from files and from the environment.
//!
//! [`ToolCatalog`] holds what is known of each tool, [`Config`] the setup of a whole stack with a
//! catalog in it, and [`Rollout`] which calls are guarded.
//!
//! # When to use
//!
//! To declare tools, or to set up a stack, outside of the program. Manifests made in code need
//! `tr-core` only. `tool-reliability` builds stacks from a configuration, and `tr-turn` runs plans
//! over a catalog.
//!
//! # Example
//!
//! ```
//! use tr_config::{Config, ToolCatalog};
//! use tr_core::{Params, ToolCall};
//!
//! let catalog = ToolCatalog::from_json(r#"{"tools": {"search": {"effect": "read_only"}}}"#)?;
//! let call = catalog.manifested(ToolCall::new("search", Params::empty_object()));
//! assert!(call.manifest().is_some());
//!
//! // The same tools, and settings of the stack.
//! let config = Config::from_json(
//!     r#"{"tools": {"search": {"effect": "read_only"}}, "retry": {"attempts": 3}}"#,
//! )?;
//! assert_eq!(config.catalog.len(), 1);
//! # Ok::<_, tr_config::CatalogError>(())
//! ```
//!
//! # Errors
//!
//! [`CatalogError`] names every mistake at once, with its line, or its variable.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `toml`: TOML; without it, JSON of the same form is read.
//! - `input-schema`: each tool's `input_schema` is checked to be a JSON Schema. Without it a
//!   catalog that has one is refused.
//! - `schema`: the JSON Schemas of the catalog and the configuration, its keys with their defaults, and
//!   the origin of each setting.
//!
//! # Knows nothing of
//!
//! tasks, the file system: it starts none, and reads texts and variables that it is given. It contains the
//! layers for their builders; it orders none of them.
pub mod catalog;
pub mod graph;
pub mod rollout;
#[cfg(feature = "schema")]
pub mod schemas;
#[cfg(feature = "schema")]
pub mod settings;
pub mod stack;

pub use self::{
    catalog::{CatalogError, Endpoint, MAX_TOOLS, Method, Mistake, ToolCatalog},
    rollout::{Mode, Rollout, Share, Stage},
    stack::{
        BreakerConfig, BudgetConfig, Config, IdempotencyConfig, IdentityConfig, LoopConfig, PREFIX,
        Preset, RecordBodies, RecordPlace, RecordsConfig, RetryOptIn, RetrySettings, SessionPlace,
        SessionsConfig, SlowCalls, StatusMeaning, StoreFailures, TelemetryConfig, UpstreamConfig,
        by_effect,
    },
};
pub use tr_wire::read::Language;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

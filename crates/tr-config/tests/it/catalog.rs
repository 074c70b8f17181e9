//! Catalogs: what they say, and what is said of their mistakes.
#[cfg(feature = "input-schema")]
mod input_schema;
mod mistakes;
mod reading;
#[cfg(feature = "schema")]
mod schemas;

use tr_config::{CatalogError, ToolCatalog};

/// A catalog in JSON, which needs no feature.
fn json(text: &str) -> Result<ToolCatalog, CatalogError> {
    ToolCatalog::from_json(text)
}

//! Validates params against a tool's JSON Schema.
mod bounds;
mod explain;

use crate::{FailureInfo, Json, Params, Ran, Verdict, code};
use jsonschema::Validator;
use serde_json::Value;

/// A tool's JSON Schema, compiled.
///
/// ```
/// use tr_core::{Json, Params, manifest::InputSchema};
///
/// let schema = InputSchema::compile(&Json::from_text(
///     r#"{"type": "object", "required": ["path"], "properties": {"limit": {"type": "integer"}}}"#,
/// )?)?;
/// let error = schema.check(&Params::from_text(r#"{"limit": "10"}"#)?).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "Missing required parameter: path; Expected integer but received string at /limit",
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InputSchema {
    schema: Value,
    /// The schema compiled, or why it is not applied.
    validator: Result<Validator, &'static str>,
}

impl InputSchema {
    /// Compiles a schema. References to other documents are not followed.
    ///
    /// A schema whose parts refer to one another so that a few bytes of params could make any amount
    /// of work is not applied: [`unapplied`](Self::unapplied) says why.
    ///
    /// # Errors
    /// If it is not a JSON Schema.
    pub fn compile(schema: &Json) -> Result<Self, InvalidSchema> {
        let schema: Value = schema.parse().map_err(|error| InvalidSchema(error.to_string()))?;
        if let Some(why) = bounds::unbounded(&schema) {
            return Ok(Self { schema, validator: Err(why) });
        }
        match jsonschema::validator_for(&schema) {
            Ok(validator) => Ok(Self { schema, validator: Ok(validator) }),
            Err(error) => Err(InvalidSchema(match error.instance_path().as_str() {
                "" => error.to_string(),
                pointer => format!("{error} at {pointer}"),
            })),
        }
    }

    /// Why the schema refuses no params: the work that they could make has no bound.
    #[must_use]
    pub fn unapplied(&self) -> Option<&str> {
        self.validator.as_ref().err().copied()
    }

    /// Checks params, in work that grows with their size only.
    ///
    /// # Errors
    /// Names the faults. The tool did not run.
    pub fn check(&self, params: &Params) -> Result<(), InvalidParams> {
        let Ok(validator) = &self.validator else { return Ok(()) };
        let value: Value = params.parse().map_err(|error| {
            InvalidParams::new(vec![format!("The params cannot be read: {error}")])
        })?;
        if validator.is_valid(&value) {
            return Ok(());
        }
        Err(InvalidParams::new(explain::explain(&self.schema, validator.draft(), &value)))
    }
}

/// An invalid schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSchema(String);

/// Params that do not match their tool's schema. The tool did not run.
///
/// Deterministic: the same call fails again, so it is `Permanent`.
#[derive(Debug, thiserror::Error)]
#[error("{}", .faults.join("; "))]
pub struct InvalidParams {
    faults: Vec<String>,
    #[source]
    info: FailureInfo,
}

impl InvalidParams {
    fn new(faults: Vec<String>) -> Self {
        let info = FailureInfo::new(code::INVALID_ENVELOPE, Ran::No, Verdict::Permanent).by_layer();
        Self { faults, info }
    }

    pub(crate) fn no_schema(tool: &str, error: &InvalidSchema) -> Self {
        Self::new(vec![format!("The manifest of {tool} has an invalid input schema: {error}")])
    }

    /// Each fault as a message for the model: missing params first.
    pub fn faults(&self) -> impl ExactSizeIterator<Item = &str> {
        self.faults.iter().map(String::as_str)
    }
}

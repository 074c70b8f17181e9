//! Validates params against a tool's JSON Schema.
use crate::{FailureInfo, Json, Params, Ran, Verdict, code};
use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value;

/// Faults past this many are left out: a model fixes a few at a time.
const SHOWN: usize = 20;

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
pub struct InputSchema(Validator);

impl InputSchema {
    /// Compiles a schema. References to other documents are not followed.
    ///
    /// # Errors
    /// If it is not a JSON Schema.
    pub fn compile(schema: &Json) -> Result<Self, InvalidSchema> {
        let value: Value = schema.parse().map_err(|error| InvalidSchema(error.to_string()))?;
        match jsonschema::validator_for(&value) {
            Ok(validator) => Ok(Self(validator)),
            Err(error) => Err(InvalidSchema(match error.instance_path().as_str() {
                "" => error.to_string(),
                pointer => format!("{error} at {pointer}"),
            })),
        }
    }

    /// Checks params.
    ///
    /// # Errors
    /// Names every fault. The tool did not run.
    pub fn check(&self, params: &Params) -> Result<(), InvalidParams> {
        let value: Value = params.parse().map_err(|error| {
            InvalidParams::new(vec![format!("The params cannot be read: {error}")])
        })?;
        if self.0.is_valid(&value) {
            return Ok(());
        }
        let mut faults: Vec<_> = self.0.iter_errors(&value).take(SHOWN).collect();
        // Missing params first: a model can fix those at once.
        faults.sort_by_key(|fault| !matches!(fault.kind(), ValidationErrorKind::Required { .. }));
        Err(InvalidParams::new(faults.iter().map(describe).collect()))
    }
}

/// One fault as a message for the model, without values of the params.
fn describe(fault: &ValidationError<'_>) -> String {
    let text = match fault.kind() {
        ValidationErrorKind::Required { property: Value::String(name) } => {
            let missing = format!("Missing required parameter: {name}");
            return match fault.instance_path().as_str() {
                "" => missing,
                pointer => format!("{missing} in {pointer}"),
            };
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("Unknown parameter: {}", unexpected.join(", "))
        }
        ValidationErrorKind::Type { kind } => {
            format!("Expected {} but received {}", wanted(kind), received(fault.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            format!("Expected one of {options} but received another {}", received(fault.instance()))
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!("Expected {expected_value} but received another value")
        }
        _ => fault.masked_with("the value").to_string(),
    };
    match fault.instance_path().as_str() {
        "" => text,
        pointer => format!("{text} at {pointer}"),
    }
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

const fn received(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
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

//! Refusals that name what is wrong with the input.
//!
//! They outweigh most other words: a parameter may be called `timeout`.
use super::super::{Kind, scan::Group};

/// By kind.
pub(super) const REFUSALS: &[Group] = &[
    (
        Kind::InvalidInput,
        "additional properties are not allowed | arguments are required | bad argument
         bad arguments | can't be blank | cannot be blank | cannot be empty
         cannot be negative | cannot be null | cannot be undefined | cannot both be
         cannot divide by zero | cannot exceed | cannot execute | data may not be longer
         did not match schema | division by zero | does not match format
         does not match pattern | does not match schema | does not match the expected
         does not match the schema | expected .. but found | expected .. but got
         expected .. but received | expected .. received | expected .. to be | expected one of
         failed to deserialize the json body | failed to validate | failed validation
         field is required | field required | fields are required | ids must be unique
         ids were found without | illegal argument | illegal option | input is not valid
         input should be | invalid argument | invalid arguments | invalid choice | invalid date
         invalid email | invalid enum | invalid input | invalid literal | invalid option
         invalid parameter | invalid parameters | invalid params | invalid path | invalid query
         invalid reference format | invalid regex | invalid regular expression
         invalid request parameters | invalid schema for function | invalid selector
         invalid type | invalid url | invalid uuid | invalid value | is not a function of
         is not a number | is not a string | is not in the correct format | is not of type
         is not one of | is not visible | is required and | is required but | malformed input
         malformed request | matches of the string to replace | may not be blank
         may not be empty | may not be null | missing .. required keyword
         missing .. required positional | missing a required | missing a thought_signature
         missing argument | missing arguments | missing field | missing mandatory
         missing parameter | missing parameters | missing required | must be a
         must be absolute | must be after | must be an | must be array | must be at least
         must be at most | must be before | must be between | must be boolean | must be defined
         must be either | must be equal | must be followed by tool messages | must be greater
         must be in | must be integer | must be less | must be longer | must be no
         must be non | must be not | must be null | must be number | must be object
         must be of | must be one | must be positive | must be provided | must be set
         must be shorter | must be specified | must be string | must be supplied
         must be valid | must be within | must contain | must end with
         must have a single result | must include | must match | must not be | must not contain
         must not exceed | must not have | must provide | must specify | must start with
         must supply | no tool output found for function call | not a valid
         number of function response parts | one of the following arguments is required
         parameter is incorrect | parameter is required | parameter not set
         parameters are required | please provide a valid | positional argument follows
         required argument | required arguments | required field | required option
         required parameter | required parameters | required property | requires a value
         requires an argument | requires at least | schema validation | should be a valid
         should be defined | should match pattern | should not be empty
         the string did not match the expected pattern | too few arguments | too many arguments
         too many positional | too many values | unexpected additional | unexpected argument
         unexpected arguments | unexpected keyword argument | unexpected option
         unexpected parameter | unexpected property | unexpected tool_use_id | unknown argument
         unknown arguments | unknown column | unknown field | unknown flag | unknown key
         unknown name | unknown option | unknown options | unknown parameter | unknown property
         unknown shorthand flag | unrecognised argument | unrecognized argument
         unrecognized arguments | unrecognized field | unrecognized key | unrecognized keys
         unrecognized option | unrecognized request argument | unsupported argument
         unsupported parameter | unsupported value | validation error | validation errors
         validation failed | validation failure | value is not | value out of range
         was provided without its required | were given | wrong argument
         wrong number of arguments | wrong type",
    ),
    (
        Kind::NotFound,
        "no such command | no such option | no such tool | no tool named | tool does not exist
         tool not found | unknown action | unknown command | unknown subcommand | unknown tool
         unrecognized command | unrecognized subcommand",
    ),
    (
        Kind::TooLarge,
        "argument list too long | content too large | context window
         exceeds maximum allowed size | exceeds maximum allowed tokens
         exceeds the maximum allowed size | exceeds the maximum number of tokens
         file too large | input is too long | input length and max_tokens exceed
         input token count exceeds | is too large | larger than max | maximum context length
         message too large | payload too large | prompt is too long | request entity too large
         too long to process | too many tokens",
    ),
    (
        Kind::PreconditionFailed,
        "blocks in the latest assistant message cannot be modified
         file has been modified since | file has not been read
         thinking or redacted_thinking blocks .. cannot be modified",
    ),
];

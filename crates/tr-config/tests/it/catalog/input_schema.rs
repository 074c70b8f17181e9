//! Params against a tool's own schema.
use super::json;
use tr_config::ToolCatalog;
use tr_core::{
    DefaultPolicy, Json, Params, Ran, ResponsePolicy, ToolCall, ToolManifest, ToolOutcome, Verdict,
    code, failure_info, manifest::InputSchema,
};

const SCHEMA: &str = r#"{
    "type": "object",
    "required": ["path", "edit"],
    "additionalProperties": false,
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "mode": {"enum": ["read", "write"]},
        "limit": {"type": ["integer", "null"], "minimum": 1},
        "edit": {"type": "object", "required": ["oldText"]}
    }
}"#;

fn check(params: &str) -> Result<(), Vec<String>> {
    let schema = InputSchema::compile(&Json::from_text(SCHEMA).unwrap()).unwrap();
    let checked = schema.check(&Params::from_text(params).unwrap());
    checked.map_err(|error| error.faults().map(str::to_owned).collect())
}

#[test]
fn every_fault_is_told_in_words_that_models_know() {
    assert_eq!(check(r#"{"path": "a", "edit": {"oldText": "x"}}"#), Ok(()));
    assert_eq!(
        check("{}").unwrap_err(),
        ["Missing required parameter: path", "Missing required parameter: edit"]
    );
    let mut found =
        check(r#"{"path": 7, "mode": "delete", "limit": "10", "edit": {}, "pth": 1}"#).unwrap_err();
    assert_eq!(found[0], "Missing required parameter: oldText in /edit");
    found.sort();
    assert_eq!(
        found,
        [
            "Expected null or integer but received string at /limit",
            "Expected one of [\"read\",\"write\"] but received another string at /mode",
            "Expected string but received number at /path",
            "Missing required parameter: oldText in /edit",
            "Unknown parameter: pth",
        ]
    );
}

#[test]
fn no_fault_shows_a_value_of_the_params() {
    for params in [
        r#"{"path": "", "edit": {"oldText": 1}, "limit": -770077}"#,
        r#"{"path": ["770077"], "edit": "770077", "mode": "770077"}"#,
    ] {
        let found = check(params).unwrap_err();
        assert!(!found.is_empty() && !found.concat().contains("770077"), "{found:?}");
    }
}

#[test]
fn a_failed_check_is_terminal_and_nothing_ran() {
    let catalog =
        json(&format!(r#"{{"tools": {{"edit": {{"input_schema": {SCHEMA}}}}}}}"#)).unwrap();
    let error = catalog.check(&ToolCall::new("edit", Params::empty_object())).unwrap_err();
    let said = failure_info(&error).unwrap();
    assert_eq!((said.code(), said.ran()), (code::INVALID_ENVELOPE, Ran::No));
    let judged = ResponsePolicy::<ToolOutcome>::classify(&DefaultPolicy, Err(&error));
    assert_eq!(judged.verdict, Verdict::Permanent);
    assert!(catalog.check(&ToolCall::new("stranger", Params::empty_object())).is_ok());
}

#[test]
fn a_schema_that_is_none_is_a_mistake_of_the_catalog() {
    let text = "{\"tools\": {\n\"a\": {\"input_schema\": {\"type\": \"strin\"}}}}";
    let error = json(text).unwrap_err();
    let [mistake] = error.mistakes() else { panic!("{error}") };
    assert_eq!(mistake.place.map(|(line, _)| line), Some(2));
    assert_eq!(mistake.fault.pointer(), "/tools/a/input_schema");
    assert!(mistake.fault.found().contains("strin"), "{error}");
}

#[test]
fn a_schema_that_is_none_is_a_mistake_in_code_too() {
    let mut manifest = ToolManifest::new("a");
    manifest.input_schema = Some(Json::from_text(r#"{"type": 5}"#).unwrap());
    let error = ToolCatalog::new([manifest]).unwrap_err();
    assert_eq!(error.mistakes()[0].fault.pointer(), "/tools/a/input_schema");
    assert_eq!(error.mistakes()[0].place, None);
}

#[test]
fn a_schema_elsewhere_is_not_fetched() {
    let schema = Json::from_text(r#"{"$ref": "https://example.com/schema.json"}"#).unwrap();
    assert!(InputSchema::compile(&schema).is_err());
}

//! Rows about turns.
use super::Row;

const BOTH: &str =
    r#""tools": {"search": {}, "other": {"priority": "normal"}}, "retry": {"attempts": 1}"#;

pub(crate) const ROWS: &[Row] = &[
    [
        "tools.search.depends_on",
        r#"["other"]"#,
        BOTH,
        "ok@10",
        "turn search other",
        "search=Success@0 other=Success@0",
        "search=Success@10 other=Success@0",
    ],
    [
        "tools.search.required",
        "true",
        r#""tools": {"search": {"effect": "read_only"}}, "retry": {"attempts": 1}"#,
        "http_503",
        "turn search",
        "search=FailedSkip@0",
        "search=FailedEscalate@0",
    ],
    [
        "tools.search.default_value",
        "7",
        r#""tools": {"search": {"effect": "read_only"}}, "retry": {"attempts": 1}"#,
        "http_503",
        "turn search other<search",
        "?",
        "search=FailedUseDefault@0 other=Success@0",
    ],
    [
        "tools.search.alternatives",
        r#"["other"]"#,
        r#""tools": {"search": {"effect": "read_only"}, "other": {"effect": "read_only"}}, "retry": {"attempts": 1}"#,
        "http_503",
        "turn search",
        "?",
        "search=Success@0",
    ],
    [
        "tools.search.priority",
        r#""high""#,
        BOTH,
        "ok@10",
        "turn other search alone",
        "other=Success@0 search=Success@10",
        "other=Success@10 search=Success@0",
    ],
];

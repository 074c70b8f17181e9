//! What is said of a catalog's mistakes.
use super::json;
use tr_config::{CatalogError, MAX_TOOLS};

fn lines(error: &CatalogError) -> Vec<String> {
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let error = json(
        r#"{
    "undeclared_effect": "unknown",
    "tool": {},
    "defaults": {"name": "x", "timeout_ms": 0},
    "tools": {
        "a": {"timeuot_ms": 5, "retry": {"attempts": 0}, "max_attempts": 4},
        "b": {"depends_on": ["c", "a", "a", "b"], "alternatives": ["aa"]},
        "c": {"depends_on": ["b"], "keys": {"volatile": ["", "x"]}},
        "d": {"name": "c"},
        "e": {"capabilities": ["flying"], "retry": {"jitter": [1, 0.5]}, "breaker": {"failure_rate": 0}},
        "f": 7
    }
}"#,
    )
    .unwrap_err();
    assert_eq!(
        lines(&error),
        [
            "the tool catalog has 17 mistakes",
            r#"line 2, column 26: /undeclared_effect: expected "read_only", "idempotent" or "mutating", found "unknown""#,
            r#"line 3, column 13: /tool: expected a known key, found the unknown key "tool" (did you mean "tools"?)"#,
            "line 4, column 26: /defaults/name: expected settings for several tools, found a name",
            "line 4, column 45: /defaults/timeout_ms: expected a whole number of milliseconds from 1 to 86400000, found 0",
            r#"line 6, column 29: /tools/a/timeuot_ms: expected a known key, found the unknown key "timeuot_ms" (did you mean "timeout_ms"?)"#,
            "line 6, column 54: /tools/a/retry/attempts: expected a whole number from 1 to 1000, found 0",
            "line 7, column 40: /tools/b/depends_on/2: expected each tool once, found a duplicate",
            "line 7, column 45: /tools/b/depends_on/3: expected the name of another tool, found its own name",
            r#"line 7, column 68: /tools/b/alternatives/0: expected the name of a tool of this catalog, found "aa" (did you mean "a"?)"#,
            "line 8, column 30: /tools/c/depends_on/0: expected no dependency cycle, found b → c → b",
            r#"line 8, column 58: /tools/c/keys/volatile/0: expected a JSON pointer into the params, such as "/meta/sentAt", found an empty string"#,
            r#"line 8, column 62: /tools/c/keys/volatile/1: expected a JSON pointer into the params, such as "/meta/sentAt", found "x""#,
            r#"line 9, column 14: /tools/d: expected each tool once, found c, which is also declared as "c""#,
            r#"line 10, column 32: /tools/e/capabilities/0: expected "streaming", "idempotency", "caching" or "own_retries", found "flying""#,
            "line 10, column 63: /tools/e/retry/jitter: expected two numbers from 0 to 2, the lower first, found an array",
            "line 10, column 102: /tools/e/breaker/failure_rate: expected a number above 0, at most 1, found 0",
            "line 11, column 14: /tools/f: expected an object, found 7",
        ]
    );
}

#[test]
fn circles_are_shown_whole_and_once() {
    let error = json(
        r#"{"tools": {
            "a": {"depends_on": ["b"]}, "b": {"depends_on": ["c", "d"]}, "c": {"depends_on": ["a"]},
            "d": {"depends_on": ["e"]}, "e": {}
        }}"#,
    )
    .unwrap_err();
    assert_eq!(
        lines(&error),
        [
            "the tool catalog has a mistake",
            "line 2, column 95: /tools/c/depends_on/0: expected no dependency cycle, found a → b → c → a"
        ]
    );
}

#[test]
fn a_chain_as_long_as_the_catalog_is_no_circle() {
    let tools: Vec<_> = (0..MAX_TOOLS)
        .map(|i| match i {
            0 => r#""t0": {}"#.to_owned(),
            i => format!(r#""t{i}": {{"depends_on": ["t{}"]}}"#, i - 1),
        })
        .collect();
    let catalog = json(&format!(r#"{{"tools": {{{}}}}}"#, tools.join(",\n"))).unwrap();
    assert_eq!(catalog.len(), MAX_TOOLS);
    let more = format!(r#"{{"tools": {{{}, "x": {{}}}}}}"#, tools.join(",\n"));
    let error = json(&more).unwrap_err();
    assert_eq!(error.mistakes()[0].fault.expected(), "at most 10000 tools");
}

#[test]
fn what_is_no_json_has_a_line_too() {
    let error = json("{\n  \"tools\": {\n    \"ü\": {,}\n  }\n}").unwrap_err();
    assert_eq!(
        lines(&error)[1],
        "line 3, column 11: /tools/ü: expected JSON, found unexpected byte at byte 26"
    );
    let [mistake] = error.mistakes() else { panic!("{error}") };
    assert_eq!(mistake.place, Some((3, 11)));
}

#[test]
fn a_name_given_twice_is_a_mistake() {
    let error = json("{\"tools\": {\"a\": {}, \"a\": {}}}").unwrap_err();
    assert_eq!(error.mistakes()[0].fault.pointer(), "/tools/a");
}

#[cfg(feature = "toml")]
mod toml {
    use super::lines;
    use tr_config::ToolCatalog;

    #[test]
    fn every_mistake_is_named_with_its_line() {
        let error = ToolCatalog::from_toml(
            r#"undeclared_effect = 1
[tools.search]
effect = "read-only"
timeout_ms = -5
[tools.search.retry]
attemps = 3
multiplier = inf
[tools.book]
depends_on = ["serach"]
required = 2026-01-01
"#,
        )
        .unwrap_err();
        assert_eq!(
            lines(&error),
            [
                "the tool catalog has 7 mistakes",
                r#"line 1, column 21: /undeclared_effect: expected "read_only", "idempotent" or "mutating", found 1"#,
                r#"line 3, column 10: /tools/search/effect: expected "read_only", "idempotent" or "mutating", found "read-only""#,
                "line 4, column 14: /tools/search/timeout_ms: expected a whole number of milliseconds from 1 to 86400000, found -5",
                r#"line 6, column 11: /tools/search/retry/attemps: expected a known key, found the unknown key "attemps" (did you mean "attempts"?)"#,
                "line 7, column 14: /tools/search/retry/multiplier: expected a number from 1 to 100, found inf",
                r#"line 9, column 15: /tools/book/depends_on/0: expected the name of a tool of this catalog, found "serach" (did you mean "search"?)"#,
                "line 10, column 12: /tools/book/required: expected true or false, found a date or time",
            ]
        );
    }

    #[test]
    fn what_is_no_toml_has_its_lines() {
        let error =
            ToolCatalog::from_toml("[tools.a]\ntimeout_ms = \n[tools.a]\nx = 'y\n").unwrap_err();
        let lines: Vec<_> = error.mistakes().iter().filter_map(|it| Some(it.place?.0)).collect();
        assert_eq!(lines, [2, 3, 4]);
    }
}

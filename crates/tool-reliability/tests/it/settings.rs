//! A stack that is configured by a file alone does what the builders of its layers do: for each key of the
//! schema, a change of it changes what calls see.
mod bench;
mod breakers;
mod loops;
mod records;
mod retries;
mod sessions;
mod stores;
mod tools;

use bench::{Group, Row};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::PathBuf};
use tool_reliability::config::{Config, Live};
use tr_config::schemas;

/// The rows of all sections.
fn rows() -> impl Iterator<Item = Row> {
    let all: [&[Group]; 12] = [
        retries::ROWS,
        retries::READ_ONLY,
        retries::IDEMPOTENT,
        retries::MUTATING,
        breakers::ROWS,
        records::ROWS,
        stores::ROWS,
        loops::ROWS,
        loops::SIGNALS,
        sessions::ROWS,
        tools::ROWS,
        tools::BY_DECLARATION,
    ];
    all.into_iter().flatten().flat_map(Group::rows)
}

/// Keys that only another crate reads, below the tests there that change each of them.
const ELSEWHERE: &[(&str, &str, &[&str])] = &[
    (
        "crates/tool-guard/tests/it/mcp/configured.rs",
        "each_key_of_records_and_identity_acts",
        &["records.", "identity."],
    ),
    ("tests/mcp-http/configured.rs", "a_status_says_what_the_configuration_says", &["upstream."]),
    (
        "tests/mcp-http/cancelled.rs",
        "a_payment_whose_client_leaves_is_cancelled_if_the_catalog_says_so",
        &["tools.*.cancellable"],
    ),
    (
        "crates/tool-reliability/tests/it/telemetry_config.rs",
        "each_key_of_telemetry_acts",
        &["telemetry."],
    ),
    (
        "crates/tool-guard/tests/it/mcp/telemetry.rs",
        "a_foreign_page_and_a_foreign_machine_get_no_metrics",
        &["telemetry.metrics", "telemetry.metrics_token_file"],
    ),
    (
        "crates/tool-guard/tests/it/mcp/telemetry.rs",
        "guards_with_one_key_show_the_same_hash_of_an_idempotency_key",
        &["telemetry.fingerprint_key_file", "telemetry.fingerprint_key_variable"],
    ),
    (
        "crates/tool-reliability/tests/it/stores.rs",
        "a_configuration_opens_the_stores_that_it_names",
        &["sessions.where"],
    ),
    (
        "crates/tool-guard/tests/it/mcp/identity.rs",
        "a_payment_that_is_dispatched_twice_or_asked_again_is_made_once",
        &["tools.*.keys.identity"],
    ),
    (
        "crates/tool-guard/tests/it/mcp/identity.rs",
        "an_answer_that_may_not_have_been_read_is_given_again_where_that_is_declared",
        &["tools.*.keys.late"],
    ),
    (
        "crates/tool-guard/tests/it/mcp/checks.rs",
        "a_caller_that_waits_is_told_that_its_call_ran_and_so_is_each_repeat",
        &[
            "tools.*.check.tool",
            "tools.*.check.args",
            "tools.*.check.found",
            "tools.*.check.match",
            "tools.*.check.not_before",
        ],
    ),
    (
        "crates/tool-guard/tests/it/mcp/checks.rs",
        "absence_lets_it_run_again_only_where_that_is_declared",
        &["tools.*.check.absent_after"],
    ),
    (
        "crates/tool-guard/tests/it/mcp/server_key.rs",
        "a_repeat_under_the_same_id_has_the_same_key_also_of_a_guard_that_was_started_again",
        &["tools.*.keys.server_key"],
    ),
    (
        "crates/tool-guard/tests/it/mcp/server_key.rs",
        "after_the_time_that_the_server_knows_a_key_nothing_is_repeated",
        &["tools.*.keys.server_key_ttl"],
    ),
    (
        "tests/serve/main.rs",
        "a_key_aware_tool_gets_the_key_and_its_own_method",
        &["tools.*.url", "tools.*.method"],
    ),
    (
        "tests/serve/main.rs",
        "tr_02_a_payment_that_three_clients_send_at_once_is_made_once",
        &["tools.*.headers"],
    ),
    (
        "tests/serve/main.rs",
        "a_command_that_takes_too_long_is_killed_with_its_group",
        &["tools.*.command"],
    ),
    (
        "crates/tool-guard/tests/it/mcp/records/command.rs",
        "a_record_shows_server_client_and_the_params_that_the_catalog_allows",
        &["tools.*.records.show"],
    ),
    (
        "crates/tr-turn/tests/it/acts.rs",
        "each_key_of_a_tool_acts_that_turns_go_by",
        &["tools.*.depends_on", "tools.*.alternatives", "tools.*.required"],
    ),
];

fn is_elsewhere(key: &str) -> bool {
    let mut known = ELSEWHERE.iter().flat_map(|(_, _, keys)| *keys);
    known.any(|known| key == *known || known.ends_with('.') && key.starts_with(known))
}

/// The keys of the schema that have values.
fn keys() -> BTreeSet<String> {
    let all = schemas::keys(&schemas::config());
    let own = all.iter().filter(|key| key.is_value && key.path[0] != "defaults");
    own.map(schemas::Key::name).collect()
}

#[test]
fn every_key_has_a_row() {
    let known = keys();
    let tested: BTreeSet<String> = rows().map(|row| row.key.to_owned()).collect();
    let missing: Vec<_> =
        known.iter().filter(|key| !tested.contains(*key) && !is_elsewhere(key)).collect();
    assert!(
        missing.is_empty(),
        "give these keys rows, or name the tests that change them: {missing:#?}"
    );
    let strange: Vec<_> = tested.difference(&known).collect();
    assert!(strange.is_empty(), "no keys: {strange:?}");
    for (file, test, keys) in ELSEWHERE {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{keys:?}: {file} has no {test}");
    }
}

/// Runs a row with its key in this place.
async fn check(row: &Row, key: &str, [without, with]: [Value; 2], faults: &mut Vec<String>) {
    let before = row.show(&without).await;
    let after = row.show(&with).await;
    let is_random = row.seen.0 == "?";
    let expected = (if is_random { before.as_str() } else { row.seen.0 }, row.seen.1);
    if before == after || (before.as_str(), after.as_str()) != expected {
        faults.push(format!("{key} = {}: {before:?} => {after:?}", row.value));
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_each_key_is_seen() {
    let mut faults = Vec::new();
    for row in rows() {
        check(&row, row.key, row.configs(row.key), &mut faults).await;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What only one tool can have.
const OWN: [&str; 4] = ["name", "action", "input_schema", "default_value"];

#[tokio::test(start_paused = true)]
async fn what_is_said_of_one_tool_can_be_said_of_all_listed_ones() {
    let mut faults = Vec::new();
    for row in rows() {
        let Some(key) = row.key.strip_prefix("tools.*.").filter(|key| !OWN.contains(key)) else {
            continue;
        };
        let [mut without, mut with] = row.configs(row.key);
        for config in [&mut without, &mut with] {
            let tool = std::mem::replace(&mut config["tools"]["t"], json!({}));
            config["defaults"] = tool;
        }
        check(&row, &format!("defaults.{key}"), [without, with], &mut faults).await;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What a reload applies at once.
const AT_ONCE: [&str; 4] = ["rollout", "tools", "defaults", "undeclared_effect"];

#[test]
fn every_key_applies_at_once_or_is_named_as_one_that_needs_a_restart() {
    let whole: Value = serde_json::from_str(schemas::CONFIG).unwrap();
    let schema = schemas::config();
    for name in schema["properties"].as_object().unwrap().keys().filter(|name| *name != "$schema") {
        let mut value = whole[name].clone();
        match &**name {
            // As it is by default.
            "normalise" | "silent_failures" => value = json!(false),
            _ => {}
        }
        let live = Live::new(Config::default(), |builder| builder).unwrap();
        let mut config = json!({ (name.as_str()): value });
        if name == "defaults" {
            config["tools"] = json!({"t": {}});
        }
        let changed = live.reload(Config::from_json(&config.to_string()).unwrap()).unwrap();
        let wanted = if AT_ONCE.contains(&&**name) { vec![] } else { vec![name.as_str()] };
        assert_eq!(changed.needs_restart, wanted);
    }
}

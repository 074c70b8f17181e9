//! Each key of a stack's configuration acts: a stack that is built by a text which has the key does
//! something else than one whose text lacks it, and both do what is written here.
mod doors;

/// One attempt, and no loop guard: what is seen is the layer in question.
macro_rules! quiet {
    ($($more:literal)?) => {
        concat!(r#""loops": {"enabled": false}, "retry": {"attempts": 1}"#, $(",", $more)?)
    };
}

mod rows_of_breakers;
mod rows_of_layers;
mod rows_of_records;
mod rows_of_tools;
mod rows_of_turns;
mod schema;
mod stage;

use doors::Door;
use stage::{played, turned};
use std::{collections::BTreeSet, fs};
use tool_reliability::config::{Config, Live};

/// A key; a value of it; what the configuration says beside it (`@`: beside it in its section); what
/// the tools do; what is done with them; what is seen of it without the key; and with it.
///
/// `?` is anything else than what is seen with it.
type Row = [&'static str; 7];

fn live(config: &serde_json::Value) -> Live {
    let text = config.to_string();
    let config = Config::from_json(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Live::new(config, |builder| builder).unwrap_or_else(|error| panic!("{text}: {error}"))
}

async fn wrong(row: &Row, door: &Door) -> Vec<String> {
    let [_, value, beside, script, does, without, with] = *row;
    let (does, file) =
        does.split_once(" file:").map_or((does, None), |(it, file)| (it, Some(file)));
    let mut wrong = Vec::new();
    for (given, wanted) in [(None, without), (Some(value), with)] {
        let config = door.config(beside, given);
        let seen = match does.strip_prefix("turn ") {
            Some(calls) => turned(&live(&config), script, calls).await,
            None => played(&live(&config), door.effect, script, does).await,
        };
        // Once the stack is gone, all is written.
        let seen = file.map_or(seen.clone(), |file| format!("{seen} {}", lines(file)));
        let is_as_wanted = if wanted == "?" { seen != with } else { seen == wanted };
        if !is_as_wanted {
            wrong.push(format!("{config}\n  {does}\n  saw    {seen}\n  wanted {wanted}"));
        }
    }
    assert_ne!(without, with, "{}", door.path);
    wrong
}

/// How many lines a file has got.
fn lines(file: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let _ = fs::remove_file(file);
    format!("lines={}", text.lines().count())
}

async fn all_act(rows: &[Row]) {
    let mut all = Vec::new();
    for row in rows {
        for door in doors::of(row[0]) {
            all.extend(wrong(row, &door).await);
        }
    }
    assert!(all.is_empty(), "\n{}\n", all.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn each_key_of_the_layers_acts() {
    all_act(rows_of_layers::ROWS).await;
}

#[tokio::test(start_paused = true)]
async fn each_key_of_a_breaker_acts() {
    all_act(rows_of_breakers::ROWS).await;
}

#[tokio::test(start_paused = true)]
async fn each_key_of_records_acts() {
    all_act(rows_of_records::ROWS).await;
}

#[tokio::test(start_paused = true)]
async fn each_key_of_a_tool_acts() {
    all_act(rows_of_tools::ROWS).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_s_schema_acts() {
    all_act(rows_of_tools::SCHEMA).await;
}

#[tokio::test(start_paused = true)]
async fn each_key_of_a_tool_acts_that_turns_go_by() {
    all_act(rows_of_turns::ROWS).await;
}

/// That each key has a row is tested in the facade (`tests/it/settings.rs`), where newer keys are shown.
#[test]
fn each_row_is_of_a_key_of_the_schema() {
    let rows = [
        rows_of_layers::ROWS,
        rows_of_breakers::ROWS,
        rows_of_records::ROWS,
        rows_of_tools::ROWS,
        rows_of_tools::SCHEMA,
        rows_of_turns::ROWS,
    ];
    let doors = rows.into_iter().flatten().flat_map(|row| doors::of(row[0]));
    let shown: BTreeSet<_> =
        doors.map(|door| door.path.replace("tools.search", "tools.*")).collect();
    let known = schema::keys("stack-config", "");
    assert_eq!(shown.difference(&known).next(), None);
}

#[test]
fn what_holds_for_one_tool_only_is_refused_among_the_defaults() {
    for key in doors::ONE_TOOL_S {
        let rows =
            rows_of_tools::ROWS.iter().chain(rows_of_tools::SCHEMA).chain(rows_of_turns::ROWS);
        let path = format!("tools.search.{key}");
        let row = rows.into_iter().find(|row| row[0] == path).unwrap();
        let door = Door { path: format!("defaults.{key}"), effect: None };
        let config = door.config(row[2], Some(row[1])).to_string();
        let error = Config::from_json(&config).unwrap_err().to_string();
        assert!(error.contains("expected settings for several tools"), "{config}: {error}");
    }
}

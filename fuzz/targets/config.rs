//! Any text: a configuration is read, in JSON or TOML, also below variables, or every mistake is
//! named where it stands.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_config::{Config, Language};

fuzz_target!(|text: &str| {
    let (value, file) = text.split_once('\0').unwrap_or(("7", text));
    let vars = || {
        [("TOOL_RELIABILITY__LOOPS__MODE", value), ("TOOL_RELIABILITY__ATTEMPT_TIMEOUT_MS", value)]
    };
    let all = [
        Config::from_json(file),
        Config::from_toml(file),
        Config::from_text(file, Language::Json, vars()),
        Config::from_text(file, Language::Toml, vars()),
    ];
    for error in all.into_iter().filter_map(Result::err) {
        assert!(!error.mistakes().is_empty() && !error.to_string().is_empty());
        let lines = file.split('\n').count();
        assert!(error.mistakes().iter().all(|it| it.place.is_none_or(|(line, _)| line <= lines)));
    }
});

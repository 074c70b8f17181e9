//! What the section `upstream` of a configuration says, and what is wrong in it.
use crate::{
    client::{Call, Era, Http, Kind, Seen},
    guard::{Shop, Way},
    upstream::{Fault, Upstream},
};
use std::{ffi::OsStr, fs};

fn configured(shop: Shop, config: &str) -> Shop {
    let file = shop.path("guard.toml");
    fs::write(&file, config).unwrap();
    shop.with([OsStr::new("--config"), file.as_os_str()])
}

fn may_have_run(seen: &Seen) -> bool {
    let Seen::Answer(answer) = seen else { return false };
    let error = &answer["result"]["_meta"]["tool-reliability/error"];
    error["code"] == "rate_limited" && error["ran"] == "unknown"
}

#[test]
fn a_status_says_what_the_configuration_says() {
    const UNKNOWN: &str = "[upstream.status]\n429 = \"unknown\"\n";
    for (config, options, is_run) in [
        // By the guard's own rule the call did not run, and is sent again.
        ("", &[][..], true),
        (UNKNOWN, &[], false),
        ("[upstream.status]\n429 = \"not_run\"\n", &["--status", "429=unknown"], false),
        (UNKNOWN, &["--status", "429=not_run"], true),
        (UNKNOWN, &["--status", "503=unknown"], false),
    ] {
        let upstream = Upstream::start();
        let shop = configured(Shop::over(&upstream), config).with(options);
        let guard = shop.listen(Way::HttpHttp);
        let mut client = Http::open(&guard.url, Kind::Codex, Era::Legacy);
        upstream.play(Fault::TooMany);
        let seen = client.once(&Call::new(Kind::Codex, "pay", "42"));
        let is_as_said = match is_run {
            true => seen.is_success(),
            false => may_have_run(&seen),
        };
        assert!(is_as_said, "{config} {options:?}: {seen:?}");
        assert_eq!(upstream.executed("42"), usize::from(is_run), "{config} {options:?}");
    }
}

#[test]
fn what_is_no_status_is_named_with_the_other_mistakes() {
    let config = "[upstream]\nstats = 1\n[upstream.status]\n99 = \"not_run\"\n503 = \"no_run\"\n";
    let upstream = Upstream::start();
    let shop = configured(Shop::over(&upstream), config);
    let end = shop.stdio().status().unwrap();
    assert_eq!(end.code(), Some(1));
    let said = shop.said();
    for part in [
        "/upstream/stats: expected a known key",
        "/upstream/status: expected statuses from 400 to 599, found \"99\"",
        "/upstream/status/503: expected \"not_run\" or \"unknown\", found \"no_run\"",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

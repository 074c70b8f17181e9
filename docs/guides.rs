//! The guides' Rust compiles, their configurations are read without a fault, and what they depend on exists.
mod blocks;

use std::{collections::BTreeMap, fs, path::Path};
use tool_reliability::config::Config;
use tr_config::ToolCatalog;
use tr_turn::{Plan, Tools};

/// One function for each block of Rust: `breaker_24` begins on line 24 of `breaker.md`. That they compile is the test.
#[allow(clippy::all, clippy::needless_pass_by_value)]
#[allow(non_local_definitions, unnameable_test_items, unused)]
mod rust {
    use tower::{BoxError, util::BoxCloneSyncService};

    type Tool = BoxCloneSyncService<tr_core::ToolCall, tr_core::ToolOutcome, BoxError>;

    type HyperClient = hyper_util::client::legacy::Client<
        hyper_util::client::legacy::connect::HttpConnector,
        http_body_util::Full<bytes::Bytes>,
    >;

    /// A store that is to be examined.
    struct MySubject(tr_idempotency::store::Memory);

    impl MySubject {
        async fn new() -> Self {
            Self(tr_idempotency::store::Memory::new())
        }
    }

    impl tr_idempotency::conformance::Subject for MySubject {
        fn store(&self) -> std::sync::Arc<dyn tr_idempotency::store::RecordStore> {
            std::sync::Arc::new(self.0.clone())
        }

        async fn pass(&self, time: std::time::Duration) {
            tokio::time::sleep(time).await;
        }
    }

    /// Knows which payments there are.
    #[derive(Debug)]
    struct Bank;

    impl Bank {
        async fn find(&self, _: &str) -> Result<Option<tr_core::ToolOutcome>, BoxError> {
            Ok(None)
        }
    }

    include!(concat!(env!("OUT_DIR"), "/guides.rs"));
}

/// Language, place and text of each block of all guides.
fn all(language: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![folder.join("../README.md")];
    paths.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut found = Vec::new();
    for path in paths {
        let guide = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let blocks = blocks::blocks(&guide).into_iter().filter(|block| block.language == language);
        found.extend(blocks.map(|block| (format!("{name}:{}", block.line), block.text)));
    }
    found
}

/// What a package's manifest says, as far as a guide speaks of it.
fn manifest(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path.join("Cargo.toml"));
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display())).parse().unwrap()
}

#[test]
fn dependencies_are_there_with_their_features() {
    let mut seen = 0;
    for (place, text) in all("toml") {
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{place}: {error}"));
        let dependencies = table.get("dependencies").and_then(toml::Value::as_table);
        for (name, dependency) in dependencies.unwrap_or(&table) {
            let Some(path) = dependency.get("path").and_then(toml::Value::as_str) else { continue };
            let path = path.strip_prefix("../tool-reliability/").expect(&place);
            let manifest = manifest(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path));
            assert_eq!(manifest["package"]["name"].as_str(), Some(&**name), "{place}");
            let wanted = dependency.get("features").and_then(toml::Value::as_array);
            for feature in wanted.into_iter().flatten().filter_map(toml::Value::as_str) {
                assert!(manifest["features"].get(feature).is_some(), "{place}: {name}, {feature}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 8, "only {seen} dependencies were found");
}

#[test]
fn configurations_are_read_without_a_fault() {
    let mut read = BTreeMap::<_, u32>::new();
    for (place, text) in all("toml") {
        let table: toml::Table = text.parse().unwrap();
        if table.contains_key("rollout") {
            Config::from_toml(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
            *read.entry("configuration").or_default() += 1;
        } else if table.contains_key("tools") {
            ToolCatalog::from_toml(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
            *read.entry("catalog").or_default() += 1;
        }
    }
    for (place, text) in all("json").iter().filter(|(_, text)| text.contains("\"calls\"")) {
        Plan::from_json(text, &Tools::any()).unwrap_or_else(|error| panic!("{place}: {error}"));
        *read.entry("plan").or_default() += 1;
    }
    assert_eq!(read.len(), 3, "{read:?}");
}

/// The rows of the README's table of payments, by how they begin, each with the one of `clients.md` that it sums up.
const PAYMENTS: [(&str, &str); 5] = [
    ("answers 404", "404, the session is lost"),
    ("answers 400", "400, the session is lost"),
    ("ends the stream", "the stream ends, no event id"),
    ("answers after 7 s", "openai-agents, 5 s (its default), 7 s; the model asks twice"),
    ("the same;", "openai-agents, 5 s, 7 s; `max_retry_attempts=2`"),
];

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_readme_has_the_payments_that_were_observed() {
    let (readme, observed) = (text("../README.md"), text("clients.md"));
    let row = |guide: &str, begin: &str| {
        let row = guide.lines().find(|line| line.starts_with(&format!("| {begin}")));
        row.unwrap_or_else(|| panic!("no row begins with {begin}")).to_owned()
    };
    // How many payments the cells of a row count, in their order.
    let payments = |row: &str| -> Vec<u32> {
        let words: Vec<_> = row.split_whitespace().collect();
        let counts = words.windows(2).filter(|words| words[1].starts_with("payment"));
        counts.filter_map(|words| words[0].trim_start_matches('*').parse().ok()).collect()
    };
    for (shown, from) in PAYMENTS {
        assert_eq!(payments(&row(&readme, shown)), payments(&row(&observed, from)), "{shown}");
    }
    let rows = readme.lines().filter(|line| line.starts_with("| ") && !payments(line).is_empty());
    assert_eq!(rows.count(), PAYMENTS.len());

    let head = row(&readme, "after the payment");
    let clients: Vec<_> = head.split(" | ").filter(|cell| cell.contains('.')).collect();
    assert_eq!(clients.len(), 3, "{clients:?}");
    for client in clients {
        assert!(observed.contains(client), "clients.md does not have {client}");
    }
}

#[test]
fn the_readme_names_every_crate() {
    let readme = text("../README.md");
    let crates = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let missing: Vec<_> = names.filter(|name| !readme.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "README.md does not name {missing:?}");
}

#[test]
fn json_is_json() {
    for (place, text) in all("json") {
        let lines = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
        for value in lines {
            value.unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }
}

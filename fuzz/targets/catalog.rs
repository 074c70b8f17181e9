//! Any text: a catalog is read, in JSON or TOML, or every mistake is named where it stands.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_config::ToolCatalog;
use tr_core::ToolManifest;

fuzz_target!(|text: &str| {
    for read in [ToolCatalog::from_json(text), ToolCatalog::from_toml(text)] {
        match read {
            Ok(catalog) => {
                for tool in catalog.iter() {
                    assert!(catalog.get(&tool.tool).is_some());
                }
                let again = catalog.iter().map(|tool| ToolManifest::clone(tool));
                ToolCatalog::new(again).expect("what was read is a catalog");
            }
            Err(error) => {
                assert!(!error.mistakes().is_empty() && !error.to_string().is_empty());
                let lines = text.split('\n').count();
                assert!(
                    error.mistakes().iter().all(|it| it.place.is_none_or(|(line, _)| line <= lines))
                );
            }
        }
    }
});

//! Ten typical mistakes: the compiler's message names what to do.
//!
//! Each file of `docs/mistakes` is a program that does not compile. Its lines `//! Says: …` stand in the message, with whatever
//! other text the compiler of the day puts around them.
mod folder;

use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

/// What the mistakes are written with.
const CRATES: &[&str] = &["tr-breaker", "tr-core", "tr-idempotency", "tr-loopguard", "tr-retry"];

#[test]
fn the_compiler_says_what_to_do() {
    let repository = folder::repository();
    let package = folder::emptied("mistakes");
    let bins = package.join("src/bin");
    fs::create_dir_all(&bins).unwrap();
    fs::write(package.join("Cargo.toml"), manifest(&repository)).unwrap();
    fs::copy(repository.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();

    let mut expected = BTreeMap::new();
    for entry in fs::read_dir(repository.join("docs/mistakes")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, bins.join(path.file_name().unwrap())).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let says = text.lines().filter_map(|line| line.strip_prefix("//! Says: "));
        let says: Vec<_> = says.map(str::to_owned).collect();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(!says.is_empty(), "{name} says nothing");
        expected.insert(name, says);
    }
    assert!(expected.len() >= 10, "{expected:?}");

    let said = said(&package);
    for (name, lines) in expected {
        let said = said.get(&name).unwrap_or_else(|| panic!("{name} compiles"));
        for line in lines {
            assert!(said.contains(&line), "{name}: {line:?} is not in\n{said}");
        }
    }
}

fn manifest(repository: &Path) -> String {
    let mut manifest =
        "[package]\nname = \"mistakes\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
                        http = \"1\"\ntower = { version = \"0.5\", features = [\"util\"] }\n"
            .to_owned();
    for name in CRATES {
        let path = repository.join("crates").join(name);
        let features = if *name == "tr-core" { ", features = [\"http\"]" } else { "" };
        manifest += &format!("{name} = {{ path = {path:?}{features} }}\n");
    }
    manifest
}

/// The errors of each program.
fn said(package: &Path) -> BTreeMap<String, String> {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["check", "--bins", "--keep-going", "--message-format=json"])
        .current_dir(package)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TARGET_DIR", folder::target())
        .output()
        .unwrap();
    let mut said = BTreeMap::<_, String>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let message = &line["message"];
        if message["level"] == "error" {
            let name = line["target"]["name"].as_str().unwrap().to_owned();
            *said.entry(name).or_default() += message["rendered"].as_str().unwrap();
        }
    }
    assert!(!said.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    said
}

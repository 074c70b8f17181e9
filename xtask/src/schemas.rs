//! `cargo xtask schemas`: the JSON Schemas that tr-wire and tr-config generate from their types, tr-turn from
//! its limits, and tool-guard of its reports.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use cargo_metadata::TargetKind;

use crate::{
    repo::{Repo, has_target},
    shell, test,
};

/// The crates that have schemas, and the example that writes them. Examples lie in one folder, so each has a name of its own.
const CRATES: [(&str, &str); 4] = [
    ("tr-wire", "wire_schemas"),
    ("tr-config", "config_schemas"),
    ("tr-turn", "turn_schemas"),
    ("tool-guard", "guard_schemas"),
];

/// What a folder holds: file name to text.
type Folder = BTreeMap<String, String>;

/// Makes `schemas/` current.
pub(crate) fn write(repo: &Repo) -> Result<()> {
    let wanted = generate(repo)?;
    let folder = repo.root.join("schemas");
    fs::create_dir_all(&folder)?;
    for stale in read(&folder)?.keys().filter(|name| !wanted.contains_key(*name)) {
        fs::remove_file(folder.join(stale))?;
    }
    for (name, text) in &wanted {
        fs::write(folder.join(name), text)?;
    }
    println!("{} schemas written", wanted.len());
    Ok(())
}

/// Fails if `schemas/` is not what the types say.
pub(crate) fn check(repo: &Repo) -> Result<()> {
    let faults = differences(&read(&repo.root.join("schemas"))?, &generate(repo)?);
    if !faults.is_empty() {
        bail!("schemas/ is not current: {}", faults.join("; "));
    }
    Ok(())
}

fn generate(repo: &Repo) -> Result<Folder> {
    let folder = repo.target.join("xtask/schemas");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    // As the tests are built, so that it is done once.
    let mut build = repo.cargo();
    build.arg("build").args(test::ALL);
    for (name, example) in CRATES {
        let package = repo.package(name).with_context(|| format!("the workspace has no {name}"))?;
        ensure!(
            has_target(package, &TargetKind::Example, example),
            "{name} has no example `{example}` (crates/{name}/examples/{example}.rs or a folder), which writes the JSON Schemas into the folder it is given",
        );
        build.args(["--example", example]);
    }
    shell::run(&mut build)?;
    for (name, example) in CRATES {
        let before = read(&folder)?.len();
        let program = repo.target.join("debug/examples").join(example);
        shell::run(repo.command(program).arg(&folder))?;
        ensure!(read(&folder)?.len() > before, "{name}'s example `{example}` wrote no .json file");
    }
    read(&folder)
}

/// The schemas in a folder; other files there are not ours.
fn read(folder: &Path) -> Result<Folder> {
    let mut found = Folder::new();
    if !folder.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(found)
}

fn differences(have: &Folder, want: &Folder) -> Vec<String> {
    let missing = want.keys().filter(|name| !have.contains_key(*name));
    let stale = have.keys().filter(|name| !want.contains_key(*name));
    let changed = want.iter().filter(|(name, text)| have.get(*name).is_some_and(|t| t != *text));
    missing
        .map(|name| format!("{name} is missing"))
        .chain(stale.map(|name| format!("{name} belongs to no type")))
        .chain(changed.map(|(name, _)| format!("{name} differs")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> Folder {
        files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    }

    #[test]
    fn every_kind_of_difference_is_named() {
        let have = folder(&[("same.json", "1"), ("old.json", "1"), ("other.json", "1")]);
        let want = folder(&[("same.json", "1"), ("new.json", "1"), ("other.json", "2")]);
        assert_eq!(
            differences(&have, &want),
            ["new.json is missing", "old.json belongs to no type", "other.json differs"]
        );
        assert!(differences(&want, &want).is_empty());
    }
}

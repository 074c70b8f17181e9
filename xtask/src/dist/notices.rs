//! The licences of what is linked into a program, as one text.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, bail};

use super::linked::Part;

/// Names of files that hold licences, without regard to case.
const BEGIN: &[&str] = &["licence", "license", "copying", "copyright", "notice", "unlicense"];

/// Each text once, with the parts that it is of. `shipped` gives the texts of parts that are no crates, and of those
/// licences whose crates bring no text.
pub(super) fn third_party(parts: &[Part], shipped: &Shipped) -> Result<String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in parts {
        let name = format!("{} {} ({})", part.name, part.version, part.licence);
        for text in texts(part, shipped)? {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    let mut texts: Vec<_> = by_text.into_iter().map(|(text, names)| (names, text)).collect();
    // Texts that differ by a name have about the same length: side by side they are packed into a quarter less.
    texts.sort_by_key(|(_, text)| text.len());
    let mut all = String::from("The licences of what is linked into the program tool-guard.\n");
    for (names, text) in texts {
        all += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(78), names.join("\n"));
    }
    Ok(all)
}

/// Texts from elsewhere than a crate's package.
#[derive(Debug)]
pub(super) struct Shipped {
    pub(super) apache: String,
    pub(super) mit: String,
    /// musl's copyright, with its licence.
    pub(super) musl: String,
}

fn texts(part: &Part, shipped: &Shipped) -> Result<Vec<String>> {
    let found = part.folder.as_deref().map(in_folder).transpose()?.unwrap_or_default();
    if !found.is_empty() {
        return Ok(found);
    }
    let by = match part.authors.as_slice() {
        [] => format!("the authors of {}", part.name),
        authors => authors.join(", "),
    };
    Ok(match (part.name.as_str(), part.licence.as_str()) {
        ("musl", _) => vec![shipped.musl.clone()],
        ("sqlite", _) => vec!["SQLite is in the public domain.".into()],
        ("rust-std", _) => vec![
            format!("Copyright (c) The Rust Project Contributors\n\n{}", shipped.mit),
            shipped.apache.clone(),
        ],
        (_, "MIT") => vec![format!("Copyright (c) {by}\n\n{}", shipped.mit)],
        (_, "Apache-2.0") => vec![format!("Copyright {by}\n\n{}", shipped.apache)],
        (name, licence) => {
            bail!(
                "{name} brings no text of its licence {licence}: add one to xtask/src/dist/notices.rs"
            )
        }
    })
}

fn in_folder(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if BEGIN.iter().any(|begin| name.starts_with(begin)) && entry.path().is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).trim().to_owned());
        }
    }
    texts.sort();
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Shipped {
        Shipped { apache: "APACHE".into(), mit: "MAY USE".into(), musl: "MUSL".into() }
    }

    fn part(name: &str, licence: &str) -> Part {
        Part {
            name: name.into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            ..Part::default()
        }
    }

    #[test]
    fn a_text_that_two_crates_share_is_there_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("LICENSE-MIT"), "Copyright A\n\nfree\n").unwrap();
        fs::write(folder.path().join("build.rs"), "no licence").unwrap();
        let of = |name: &str| Part {
            folder: Some(folder.path().into()),
            ..part(name, "MIT OR Apache-2.0")
        };
        let text = third_party(&[of("a"), of("b")], &shipped()).unwrap();
        assert_eq!(text.matches("Copyright A").count(), 1, "{text}");
        assert!(text.contains("a 1.0.0 (MIT OR Apache-2.0)\nb 1.0.0"), "{text}");
        assert!(!text.contains("no licence"), "{text}");
    }

    #[test]
    fn a_crate_without_a_text_gets_its_licence_s() {
        let mit = Part { authors: vec!["Ann".into()], ..part("a", "MIT") };
        let text = third_party(&[mit, part("b", "Apache-2.0")], &shipped()).unwrap();
        assert!(text.contains("Copyright (c) Ann\n\nMAY USE"), "{text}");
        assert!(text.contains("Copyright the authors of b\n\nAPACHE"), "{text}");
    }

    #[test]
    fn an_unknown_licence_without_a_text_is_refused() {
        let error = third_party(&[part("a", "ISC")], &shipped()).unwrap_err().to_string();
        assert!(error.starts_with("a brings no text of its licence ISC"), "{error}");
    }
}

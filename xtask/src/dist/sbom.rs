//! The software bill of materials of a program, as CycloneDX 1.5: the same for the same sources.

use serde_json::{Value, json};

use super::linked::Part;

/// What is linked into the program; the first part is the program.
pub(super) fn cyclonedx(parts: &[Part], triple: &str) -> Value {
    let mut components = parts.iter().map(component);
    let mut program = components.next().unwrap_or_default();
    program["type"] = "application".into();
    program["properties"] = json!([{ "name": "cdx:rustc:sbom:target:triple", "value": triple }]);
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program },
        "components": components.collect::<Vec<_>>(),
        "dependencies": parts.iter().map(|part| json!({
            "ref": part.purl,
            "dependsOn": part.needs,
        })).collect::<Vec<_>>(),
    })
}

fn component(part: &Part) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "licenses": [{ "expression": part.licence }],
        "purl": part.purl,
    });
    if let Some(checksum) = &part.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_program_its_parts_and_what_needs_what() {
        let part = |name: &str, needs: &[&str]| Part {
            name: name.into(),
            version: "1.0.0".into(),
            licence: "MIT".into(),
            purl: format!("pkg:cargo/{name}@1.0.0"),
            needs: needs.iter().map(|name| format!("pkg:cargo/{name}@1.0.0")).collect(),
            ..Part::default()
        };
        let http = Part { checksum: Some("00ff".into()), ..part("http", &[]) };
        let sbom = cyclonedx(&[part("tool-guard", &["http"]), http], "x86_64-unknown-linux-musl");
        assert_eq!(sbom["metadata"]["component"]["name"], "tool-guard");
        assert_eq!(sbom["components"].as_array().map(Vec::len), Some(1));
        assert_eq!(sbom["components"][0]["hashes"][0]["content"], "00ff");
        assert_eq!(sbom["dependencies"][0]["dependsOn"][0], "pkg:cargo/http@1.0.0");
    }
}

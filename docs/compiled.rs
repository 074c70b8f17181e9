//! Makes a function of each block of Rust in a guide, named by its line, so that it has to compile.
use std::{error::Error, fmt::Write as _, fs, path::Path};

use super::blocks::blocks;

/// Appends the functions of a guide: `breaker_24` begins on line 24 of `breaker.md`. `given` is what its blocks take as given.
pub(crate) fn append(code: &mut String, path: &Path, given: &str) -> Result<(), Box<dyn Error>> {
    let name =
        path.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_").to_lowercase();
    let guide = fs::read_to_string(path)?;
    for block in blocks(&guide).iter().filter(|block| block.language == "rust") {
        let (line, text) = (block.line, &block.text);
        writeln!(
            code,
            "async fn {name}_{line}({given}\n) -> Result<(), BoxError> {{\n{text}    Ok(())\n}}\n"
        )?;
    }
    Ok(())
}

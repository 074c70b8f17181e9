//! The answer that a person supplies for a call.
use anyhow::Context as _;
use serde_json::value::RawValue;
use std::{fs, path::Path};
use tr_core::{Json, ToolOutcome, canonical, one_line};

/// Reads a result, which is sent to clients as one line.
pub(super) fn read(file: &Path) -> anyhow::Result<ToolOutcome> {
    let what = || format!("the answer {} cannot be used", file.display());
    let text = fs::read_to_string(file).with_context(what)?;
    let text = text.trim();
    let json: Option<Box<RawValue>> = RawValue::from_string(one_line(text).into_owned()).ok();
    let json = json
        .filter(|_| text.starts_with('{'))
        .context(
            "expected a JSON object, such as {\"content\":[{\"type\":\"text\",\"text\":\"…\"}]}",
        )
        .with_context(what)?;
    // Of two members with one name, clients differ in which they read.
    canonical::to_string(json.get()).with_context(what)?;
    Ok(ToolOutcome::success(Json::from(json)))
}

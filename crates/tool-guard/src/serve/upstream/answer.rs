//! What tools of either kind answer.
use tr_core::Json;

/// The longest answer of a tool, in bytes.
pub(super) const MOST: usize = 16 << 20;

/// A text as content: what it says, if it is JSON, else the text itself; `None` of nothing.
pub(super) fn content(text: &str) -> Option<Json> {
    if text.trim().is_empty() {
        return None;
    }
    let json = Json::from_text(text.trim()).ok();
    Some(json.unwrap_or_else(|| serde_json::Value::from(text).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_json_or_itself() {
        for (text, wanted) in [
            (r#" {"a": 1} "#, Some(r#"{"a": 1}"#)),
            ("12\n", Some("12")),
            ("done", Some(r#""done""#)),
            (" \n", None),
        ] {
            assert_eq!(content(text).as_ref().map(Json::get), wanted, "{text}");
        }
    }
}

//! Suggestions for unknown names.
use strsim::osa_distance;

/// The known name that is most like `name`, if one is like it at all.
///
/// ```
/// use tr_wire::closest;
///
/// assert_eq!(closest("serch", ["search", "book"]), Some("search"));
/// ```
pub fn closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A long name is no slip of the pen, and comparing it costs its length times the other's.
    if name.len() > 64 {
        return None;
    }
    let plain = plain(name);
    let limit = (plain.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .filter(|known| known.len() <= 64)
        .map(|known| (osa_distance(&plain, &self::plain(known)), known))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Case and word separators are what is confused most often.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn finds_slips_and_other_spellings() {
        let known = ["toolName", "toolNamespace", "timeout_ms"];
        assert_eq!(closest("tool_name", known), Some("toolName"));
        assert_eq!(closest("toolNmae", known), Some("toolName"));
        assert_eq!(closest("timeoutMs", known), Some("timeout_ms"));
        assert_eq!(closest("tiemout_ms", known), Some("timeout_ms"));
    }

    #[test]
    fn leaves_strangers_alone() {
        assert_eq!(closest("params", ["toolName", "target"]), None);
        assert_eq!(closest(&"toolName".repeat(20), ["toolName"]), None);
    }
}

//! Suggestions for unknown names.

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
    let limit = (plain.len() / 3).clamp(1, 3);
    known
        .into_iter()
        .filter(|known| known.len() <= 64)
        .map(|known| (distance(&plain, &self::plain(known)), known))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Case and word separators are what is confused most often.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Insertions, removals, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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

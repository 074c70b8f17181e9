//! The table of `docs/weight.md`: its rows, and the page with other rows.

use std::fmt;

use anyhow::{Context as _, Result};

/// The head of the table; the rows follow.
const HEAD: &str = "| dependency | features | crates | build |\n|---|---|---|---|\n";

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    package: String,
    features: String,
    pub(super) weighed: Weighed,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weighed {
    pub(super) crates: usize,
    /// Of processors, in whole: a build keeps several of them busy.
    pub(super) seconds: Option<f64>,
}

impl Row {
    pub(super) fn new(package: &str, features: &str, weighed: Weighed) -> Self {
        Self { package: package.into(), features: features.into(), weighed }
    }

    pub(super) fn is_of(&self, package: &str, features: &str) -> bool {
        (&*self.package, &*self.features) == (package, features)
    }

    /// A row as [`Display`](fmt::Display) writes it.
    fn read(line: &str) -> Option<Self> {
        let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
        let package = cells.next()?.trim_matches('`');
        let features = cells.next()?.trim_matches('`');
        let crates = cells.next()?.parse().ok()?;
        let seconds = cells.next()?.strip_suffix(" s").and_then(|seconds| seconds.parse().ok());
        Some(Self::new(package, features, Weighed { crates, seconds }))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, features, weighed: Weighed { crates, seconds } } = self;
        let features = if features.is_empty() { String::new() } else { format!("`{features}` ") };
        write!(f, "| `{package}` | {features}| {crates} | ")?;
        match seconds {
            Some(seconds) => write!(f, "{seconds:.1} s |"),
            None => f.write_str("– |"),
        }
    }
}

/// The rows of the page's table.
pub(super) fn rows(page: &str) -> Result<Vec<Row>> {
    let (_, table, _) = parts(page)?;
    let rows = table.lines().map(|line| {
        Row::read(line).with_context(|| format!("docs/weight.md has a row of another form: {line}"))
    });
    rows.collect()
}

/// The page with these rows in its table.
pub(super) fn with(page: &str, rows: &[Row]) -> Result<String> {
    let (before, _, after) = parts(page)?;
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    Ok(format!("{before}{rows}{after}"))
}

/// What is before the rows, the rows, and what is after them.
fn parts(page: &str) -> Result<(&str, &str, &str)> {
    let start = page.find(HEAD).context("docs/weight.md has no table")? + HEAD.len();
    let (before, rest) = page.split_at(start);
    let rows = rest.split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let (table, after) = rest.split_at(rows.map(str::len).sum());
    Ok((before, table, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Weight\n\n| dependency | features | crates | build |\n|---|---|---|---|\n\
                        | `a` | `x, y` | 12 | 3.5 s |\n| `b` | | 7 | – |\n\nThe end.\n";

    #[test]
    fn a_page_has_its_rows_and_keeps_the_rest() {
        let found = rows(PAGE).unwrap();
        let expected = [
            Row::new("a", "x, y", Weighed { crates: 12, seconds: Some(3.5) }),
            Row::new("b", "", Weighed { crates: 7, seconds: None }),
        ];
        assert_eq!(found, expected);
        assert_eq!(with(PAGE, &found).unwrap(), PAGE);
        let other = with(PAGE, &found[..1]).unwrap();
        assert!(other.ends_with("| 3.5 s |\n\nThe end.\n") && other.starts_with("# Weight"));
    }

    #[test]
    fn a_row_of_another_form_is_named() {
        let page = PAGE.replace("| 12 |", "| many |");
        assert!(rows(&page).unwrap_err().to_string().contains("| many |"));
        assert!(rows("# No table\n").is_err());
    }
}

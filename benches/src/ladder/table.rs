//! The ladder as a table.

/// Between these two lines of the guide the table stands.
const BEGIN: &str = "<!-- written by `cargo bench -p benches --bench ladder -- --docs docs` -->\n";
const END: &str = "<!-- written to here -->\n";

/// What each rung adds, in nanoseconds and as a share of a call that takes 1 ms, and the time of all rungs up to it,
/// for each kind of calls.
#[must_use]
pub fn markdown<const N: usize>(layers: &[&str; N], columns: &[(&str, [f64; N])]) -> String {
    let mut text = "| layer |".to_owned();
    for (calls, _) in columns {
        text += &format!(" {calls}: adds | of 1 ms | in all |");
    }
    text += &format!("\n|---|{}\n", "--:|--:|--:|".repeat(columns.len()));
    for (nth, layer) in layers.iter().enumerate() {
        text += &format!("| {layer} |");
        for (_, times) in columns {
            let (added, share) = match nth.checked_sub(1) {
                Some(below) => {
                    let added = added(times, below);
                    (format!("{added:+} ns"), format!("{:.3} %", added / 1e4))
                }
                None => Default::default(),
            };
            text += &format!(" {added} | {share} | {:.0} ns |", times[nth]);
        }
        text.push('\n');
    }
    text
}

/// Nanoseconds that the rung above this one adds.
#[must_use]
pub fn added(times: &[f64], below: usize) -> f64 {
    // Of the figures as they are shown, so that they add up. A difference that is not there may come out below zero.
    (times[below + 1].round() - times[below].round()).max(0.0)
}

/// The guide with this table.
///
/// # Errors
/// If the guide has no place for it.
pub fn into_guide(guide: &str, table: &str) -> Result<String, String> {
    let parts = guide.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
    });
    parts.ok_or_else(|| format!("the guide lacks the line {BEGIN:?} or, after it, {END:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_shows_its_time_and_what_it_adds() {
        let table = markdown(&["bare tool", "retry"], &[("with a key", [10.4, 22.9])]);
        let rows: Vec<_> = table.lines().collect();
        assert_eq!(
            rows,
            [
                "| layer | with a key: adds | of 1 ms | in all |",
                "|---|--:|--:|--:|",
                "| bare tool |  |  | 10 ns |",
                "| retry | +13 ns | 0.001 % | 23 ns |",
            ]
        );
        assert!(added(&[10.0, 9.0], 0).abs() < f64::EPSILON);
    }

    #[test]
    fn only_the_table_of_the_guide_is_replaced() {
        let guide = format!("# Ladder\n{BEGIN}old\n{END}rest\n");
        let new = into_guide(&guide, "| new |\n").unwrap();
        assert_eq!(new, format!("# Ladder\n{BEGIN}\n| new |\n\n{END}rest\n"));
        assert!(into_guide("# Ladder\n", "").is_err());
    }
}

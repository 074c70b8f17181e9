//! The ladder as a table.

/// Between these two lines of the guide the table stands.
const BEGIN: &str = "<!-- written by `cargo xtask ladder --save` -->\n";
const END: &str = "<!-- written to here -->\n";

/// Nanoseconds of each rung, for each kind of calls, and what each rung adds.
pub(crate) fn markdown<const N: usize>(layers: &[&str; N], columns: &[(&str, [f64; N])]) -> String {
    let mut text = "| layer added |".to_owned();
    for (calls, _) in columns {
        text += &format!(" {calls} | adds |");
    }
    text += &format!("\n|---|{}\n", "--:|--:|".repeat(columns.len()));
    for (nth, layer) in layers.iter().enumerate() {
        text += &format!("| {layer} |");
        for (_, times) in columns {
            let added = nth.checked_sub(1).map_or_else(String::new, |below| added(times, below));
            text += &format!(" {:.0} ns | {added} |", times[nth]);
        }
        text.push('\n');
    }
    text
}

/// What the rung above this one adds.
pub(crate) fn added(times: &[f64], below: usize) -> String {
    // Of the figures as they are shown, so that they add up.
    let added = times[below + 1].round() - times[below].round();
    // A difference that is not there may come out below zero.
    if added <= 0.0 { "0 ns".into() } else { format!("{added:+} ns") }
}

/// The guide with this table.
pub(crate) fn into_guide(guide: &str, table: &str) -> Result<String, String> {
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
                "| layer added | with a key | adds |",
                "|---|--:|--:|",
                "| bare tool | 10 ns |  |",
                "| retry | 23 ns | +13 ns |",
            ]
        );
        assert_eq!(added(&[10.0, 9.0], 0), "0 ns");
    }

    #[test]
    fn only_the_table_of_the_guide_is_replaced() {
        let guide = format!("# Ladder\n{BEGIN}old\n{END}rest\n");
        let new = into_guide(&guide, "| new |\n").unwrap();
        assert_eq!(new, format!("# Ladder\n{BEGIN}\n| new |\n\n{END}rest\n"));
        assert!(into_guide("# Ladder\n", "").is_err());
    }
}

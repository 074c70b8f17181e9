//! The figures as Markdown tables, and the rows of the goals as text and JSON.
use crate::{
    figures::{Figures, Spread},
    nested::{Attempts, DEEPEST},
    rules::{COOLDOWN, Whose},
    study::{Effort, Runs},
};
use serde_json::{Value, json};
use tr_core::BoxError;

/// Between these lines of the page the tables are written.
const MARKS: [&str; 2] = ["<!-- written by `cargo lab simulate` -->", "<!-- written to here -->"];

/// A row of the goals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Goal {
    id: &'static str,
    what: &'static str,
    ours: f64,
    peer: f64,
    /// At most this.
    target: f64,
}

impl Goal {
    fn is_met(&self) -> bool {
        self.ours <= self.target
    }
}

/// How we stand: our worst run, and the worst of the peers'.
pub(crate) fn goals(results: &[Runs], nested: &[Attempts]) -> Vec<Goal> {
    let deepest = |of: fn(&Attempts) -> f64| Spread::of(nested.iter().map(of)).worst;
    let worst = |whose, figure: fn(&Figures) -> f64| {
        let of = results.iter().filter(|result| result.rules.whose == whose);
        Spread::of(of.map(|result| result.worst(figure))).worst
    };
    let row = |what, figure, target| Goal {
        id: "F2",
        what,
        ours: worst(Whose::Ours, figure),
        peer: worst(Whose::Peers, figure),
        target,
    };
    vec![
        Goal {
            id: "F1",
            what: "attempts at a tool that is down for each call from outside, behind 1 to 6 levels; peer: tower::retry",
            ours: deepest(|row| row.guarded),
            peer: deepest(|row| row.tower),
            target: 1.10,
        },
        row(
            "load in the second after the outage ÷ capacity, worst run; peer: the worst of four",
            |run| run.recovery_load,
            1.05,
        ),
        row(
            "seconds to 95 % goodput, worst run; peer: the worst of four",
            |run| run.recovery,
            COOLDOWN.as_secs_f64() + 5.0,
        ),
        row("relapses, worst run; peer: the worst of four", |run| run.relapses, 0.0),
    ]
}

pub(crate) fn text(goals: &[Goal]) -> String {
    let line = |goal: &Goal| {
        let met = if goal.is_met() { "met" } else { "MISSED" };
        let (ours, peer, target) = (number(goal.ours), number(goal.peer), number(goal.target));
        format!("{} {}: {ours} beside {peer}, target ≤ {target}: {met}\n", goal.id, goal.what)
    };
    goals.iter().map(line).collect()
}

pub(crate) fn json(goals: &[Goal]) -> Result<String, BoxError> {
    // JSON has no infinity: what never happens is null.
    let finite = |value: f64| value.is_finite().then_some(value);
    let rows: Vec<Value> = goals
        .iter()
        .map(|goal| {
            json!({
                "id": goal.id,
                "what": goal.what,
                "ours": finite(goal.ours),
                "peer": finite(goal.peer),
                "ratio": finite(goal.ours / goal.peer),
                "target": format!("≤ {}", number(goal.target)),
                "ok": goal.is_met(),
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&json!({ "rows": rows }))?)
}

/// The page with other tables.
pub(crate) fn replace(page: &str, tables: &str) -> Result<String, BoxError> {
    let [from, to] = MARKS;
    let (before, rest) = page.split_once(from).ok_or_else(|| format!("the page lacks {from}"))?;
    let (_, after) = rest.split_once(to).ok_or_else(|| format!("the page lacks {to}"))?;
    Ok(format!("{before}{from}\n\n{tables}\n{to}{after}"))
}

type Column = (&'static str, fn(&Figures) -> f64);

const COLUMNS: &[Column] = &[
    ("busiest second of the outage ÷ normal load", |run| run.outage_peak),
    ("second after the outage ÷ capacity", |run| run.recovery_load),
    ("busiest second after ÷ capacity", |run| run.later_peak),
    ("seconds to 95 % goodput", |run| run.recovery),
    ("relapses", |run| run.relapses),
    ("wasted attempts, thousands", |run| run.wasted),
    ("failed calls, thousands", |run| run.failed),
];

/// Everything that was measured, as Markdown.
pub(crate) fn tables(results: &[Runs], nested: &[Attempts], effort: Effort) -> String {
    let mut text = format!("Median and, in brackets, worst of {} seeds:\n\n", effort.seeds);
    text += &row("rules", COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    text += &row("---", COLUMNS.iter().map(|_| "---".to_owned()));
    for result in results {
        let cells = COLUMNS.iter().map(|(_, figure)| cell(result.spread(*figure)));
        text += &row(result.rules.name, cells);
    }

    let (from, to, step) = effort.lengths;
    text += &format!(
        "\nThe same rules where a breaker waits, for outages of {from} to {to} s in steps of {step} s, worst of all lengths:\n\n"
    );
    text += &row("rules", ["seconds to 95 % goodput", "relapses"].map(str::to_owned));
    text += &row("---", ["---", "---"].map(str::to_owned));
    for result in results.iter().filter(|result| result.rules.has_breaker) {
        let worst = |figure: fn(&Figures) -> f64| {
            number(Spread::of(result.elsewhere.iter().map(figure)).worst)
        };
        text += &row(result.rules.name, [worst(|run| run.recovery), worst(|run| run.relapses)]);
    }

    text += "\nAttempts at a tool that is down, for each call from outside, by the number of levels that each guard the next:\n\n";
    text += &row("at each level", (1..=DEEPEST).map(|depth| depth.to_string()));
    text += &row("---", (1..=DEEPEST).map(|_| "---".to_owned()));
    let depths = |of: fn(&Attempts) -> f64| nested.iter().map(move |row| number(of(row)));
    text += &row("our retry and breaker", depths(|row| row.guarded));
    text += &row("our retry alone", depths(|row| row.retried));
    text += &row("`tower::retry`, 4 attempts", depths(|row| row.tower));
    text
}

fn row(name: &str, cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

fn cell(Spread { median, worst }: Spread) -> String {
    match (number(median), number(worst)) {
        (median, worst) if median == worst => median,
        (median, worst) => format!("{median} ({worst})"),
    }
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "never".to_owned(),
        10.0.. => format!("{value:.0}"),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{nested, plan::Plan, study};

    #[test]
    fn the_page_keeps_what_is_around_the_tables() {
        let [from, to] = MARKS;
        let page = format!("# Page\n\n{from}\nold\n{to}\n\nMore.\n");
        let written = replace(&page, "| new |\n").unwrap();
        assert_eq!(written, format!("# Page\n\n{from}\n\n| new |\n\n{to}\n\nMore.\n"));
        assert_eq!(replace(&written, "| new |\n").unwrap(), written);
        replace("# Page\n", "").unwrap_err();
    }

    #[test]
    fn a_tiny_study_fills_each_table_and_each_goal() {
        let effort = Effort { seeds: 1, lengths: (11, 11, 1) };
        let (results, nested) = (study::run(&Plan::tiny(), effort), nested::measure());
        let tables = tables(&results, &nested, effort);
        for result in &results {
            assert!(tables.contains(&format!("| {} | ", result.rules.name)), "{tables}");
        }
        let goals = goals(&results, &nested);
        assert_eq!(goals.iter().map(|goal| goal.id).collect::<Vec<_>>(), ["F1", "F2", "F2", "F2"]);
        let written: Value = serde_json::from_str(&json(&goals).unwrap()).unwrap();
        assert_eq!(written["rows"][0]["ok"], true);
        assert_eq!(written["rows"][0]["peer"], 4096.0);
    }

    #[test]
    fn what_never_happens_misses_its_target_and_is_null() {
        let goal = Goal { id: "F2", what: "", ours: f64::INFINITY, peer: 1.0, target: 25.0 };
        let written: Value = serde_json::from_str(&json(&[goal]).unwrap()).unwrap();
        assert_eq!(
            (&written["rows"][0]["ours"], &written["rows"][0]["ok"]),
            (&Value::Null, &Value::Bool(false))
        );
    }
}

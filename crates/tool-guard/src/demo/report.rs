//! The figures side by side.
use super::{
    agent::Figures,
    scenes::{Scene, Script},
};
use crate::terminal::{BAD, DIM, TITLE, say};
use anstyle::{AnsiColor, Style};
use std::io;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const PLAIN: Style = Style::new();

/// A scene that has ended.
pub(super) fn show_scene(scene: &Scene, without: &Figures, with: &Figures) -> io::Result<()> {
    let mut lines = vec![
        String::new(),
        format!("{TITLE}{}{TITLE:#}", scene.title),
        format!("{DIM}{:<38}{:>12}{:>12}{DIM:#}", "", "without", "guarded"),
        count("calls the agent made", without.calls, with.calls),
        count("failures it saw", without.failures, with.failures),
        count("executions of the tool", without.executions, with.executions),
    ];
    if without.duplicates + with.duplicates > 0 {
        lines.push(count("of these, a second payment", without.duplicates, with.duplicates));
    }
    if scene.script == Script::Outage {
        let wait = |figures: &Figures| match figures.median_ms {
            0 => "<1 ms".to_owned(),
            millis => format!("{millis} ms"),
        };
        lines.push(line("half of its answers within", &wait(without), BAD, &wait(with), GOOD));
    }
    lines.push(line("time", &seconds(without), PLAIN, &seconds(with), PLAIN));
    if !with.breakers.is_empty() {
        let breakers = with.breakers.join(", ");
        lines.push(line("breaker", "none", PLAIN, &tr_core::printable(&breakers), PLAIN));
    }
    if scene.script == Script::KilledGuard {
        lines.push(format!("  the model reads: {}", tr_core::printable(&with.told)));
    }
    lines.push(format!("{DIM}  → {}{DIM:#}\n", scene.moral));
    say(&lines.join("\n"))
}

fn count(what: &str, without: usize, with: usize) -> String {
    let (left, right) = match without.cmp(&with) {
        std::cmp::Ordering::Greater => (BAD, GOOD),
        std::cmp::Ordering::Less => (GOOD, BAD),
        std::cmp::Ordering::Equal => (PLAIN, PLAIN),
    };
    line(what, &without.to_string(), left, &with.to_string(), right)
}

fn line(what: &str, without: &str, left: Style, with: &str, right: Style) -> String {
    format!("  {what:<36}{left}{without:>12}{left:#}{right}{with:>12}{right:#}")
}

#[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
fn seconds(figures: &Figures) -> String {
    format!("{:.1} s", figures.elapsed_ms as f64 / 1_000.0)
}

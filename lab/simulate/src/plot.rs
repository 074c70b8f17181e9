//! A plot as SVG: load and goodput by the second, a line for each rule.
use crate::{
    figures::median,
    plan::{Plan, index},
    study::Runs,
    tape::{Second, Tape},
};
use std::fmt::Write as _;

const WIDTH: f64 = 1060.0;
const LEFT: f64 = 64.0;
/// Where the lines end and the legend begins.
const RIGHT: f64 = 790.0;

/// Distinct for those who see few colors too (Okabe and Ito), as many as there are rules.
const STROKES: [(&str, &str); 8] = [
    ("#d55e00", ""),
    ("#d55e00", "5 3"),
    ("#0072b2", ""),
    ("#56b4e9", ""),
    ("#009e73", ""),
    ("#cc79a7", ""),
    ("#e6a100", ""),
    ("#000000", "2 3"),
];

/// One pair of axes.
struct Panel {
    title: &'static str,
    top: f64,
    height: f64,
    most: f64,
    step: f64,
    /// Behind each number of the axis.
    unit: &'static str,
    value: fn(&Second, &Plan) -> f64,
}

impl Panel {
    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - value / self.most)
    }
}

/// Draws the medians over all seeds.
pub(crate) fn svg(results: &[Runs], plan: &Plan) -> String {
    let load = |second: &Second, plan: &Plan| f64::from(second.attempts) / f64::from(plan.capacity);
    let lines: Vec<_> = results.iter().map(|result| medians(result, plan, load)).collect();
    let most = lines.iter().flatten().fold(1.0_f64, |most, value| most.max(*value)).ceil();
    let loads = Panel {
        title: "Load: attempts at the backend per second ÷ its capacity",
        top: 56.0,
        height: 320.0,
        most,
        step: 1.0,
        unit: "×",
        value: load,
    };
    let goodput = Panel {
        title: "Goodput: calls that end well, by the second in which they begin",
        top: 440.0,
        height: 150.0,
        most: 100.0,
        step: 25.0,
        unit: " %",
        value: |second, _| second.goodput() * 100.0,
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} 650\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"650\" fill=\"#ffffff\"/>\n"
    );
    for panel in [&loads, &goodput] {
        axes(&mut svg, panel, plan);
        // Ours last, on top.
        for (nth, result) in results.iter().enumerate().rev() {
            line(&mut svg, panel, plan, &medians(result, plan, panel.value), nth);
        }
    }
    text(&mut svg, (LEFT + RIGHT) / 2.0, 636.0, "middle", "seconds since the start");
    legend(&mut svg, results, plan);
    svg + "</svg>\n"
}

/// The median of each second.
fn medians(result: &Runs, plan: &Plan, value: fn(&Second, &Plan) -> f64) -> Vec<f64> {
    let of_second = |second: usize| {
        let of = |tape: &Tape| value(&tape.seconds()[second], plan);
        let mut values: Vec<_> = result.tapes.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    (0..index(plan.end)).map(of_second).collect()
}

fn x(second: f64, plan: &Plan) -> f64 {
    LEFT + (RIGHT - LEFT) * second / plan.end.as_secs_f64()
}

fn axes(svg: &mut String, panel: &Panel, plan: &Plan) {
    let (top, height, bottom) = (panel.top, panel.height, panel.top + panel.height);
    let dark = x(plan.outage.start.as_secs_f64(), plan);
    let width = x(plan.outage.end.as_secs_f64(), plan) - dark;
    let _ = writeln!(
        svg,
        "<rect x=\"{dark:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\" fill=\"#eeeeee\"/>"
    );
    text(svg, dark + width / 2.0, top + 16.0, "middle", "outage");
    text(svg, LEFT, top - 14.0, "start", panel.title);
    for tick in 0..=(panel.most / panel.step) as u32 {
        let value = f64::from(tick) * panel.step;
        let y = panel.y(value);
        rule(svg, (LEFT, y), (RIGHT, y), if tick == 0 { "#333333" } else { "#d5d5d5" });
        text(svg, LEFT - 8.0, y + 4.0, "end", &format!("{value}{}", panel.unit));
    }
    for second in (0..=index(plan.end)).step_by(30) {
        let x = x(second as f64, plan);
        rule(svg, (x, bottom), (x, bottom + 5.0), "#333333");
        text(svg, x, bottom + 20.0, "middle", &second.to_string());
    }
}

fn line(svg: &mut String, panel: &Panel, plan: &Plan, values: &[f64], nth: usize) {
    let mut points = String::new();
    for (second, value) in values.iter().enumerate() {
        // A second's count stands in its middle.
        let _ = write!(points, "{:.1},{:.1} ", x(second as f64 + 0.5, plan), panel.y(*value));
    }
    let _ = writeln!(svg, "<polyline points=\"{}\" {}/>", points.trim_end(), stroke(nth));
}

fn legend(svg: &mut String, results: &[Runs], plan: &Plan) {
    let left = RIGHT + 20.0;
    for (nth, result) in results.iter().enumerate() {
        let y = 72.0 + 24.0 * nth as f64;
        let _ =
            writeln!(svg, "<polyline points=\"{left},{y} {},{y}\" {}/>", left + 28.0, stroke(nth));
        text(svg, left + 36.0, y + 4.0, "start", result.rules.name);
    }
    let seeds = results.first().map_or(0, |result| result.tapes.len());
    let notes = [
        format!("{} clients, {} processes", plan.clients, plan.processes),
        format!("{} calls/s, capacity {}/s", plan.calls_per_second, plan.capacity),
        format!("median of {seeds} seeds"),
    ];
    for (nth, note) in notes.iter().enumerate() {
        text(svg, left, 300.0 + 20.0 * nth as f64, "start", note);
    }
}

/// How the nth rule's line looks.
fn stroke(nth: usize) -> String {
    let (color, dashes) = STROKES[nth % STROKES.len()];
    let width = if nth == 0 { 3.0 } else { 1.8 };
    let dashes =
        if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    format!(
        "fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}"
    )
}

fn rule(svg: &mut String, from: (f64, f64), to: (f64, f64), color: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222222\">{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rules::ALL,
        study::{self, Effort},
    };

    #[test]
    fn each_rule_has_a_line_in_both_panels_and_one_in_the_legend() {
        assert_eq!(STROKES.len(), ALL.len());
        let plan = Plan::tiny();
        let results = study::run(&plan, Effort { seeds: 1, lengths: (11, 11, 1) });
        let svg = svg(&results, &plan);
        for nth in 0..ALL.len() {
            assert_eq!(svg.matches(&format!("{}/>", stroke(nth))).count(), 3, "{nth}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}

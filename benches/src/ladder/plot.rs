//! The ladder as SVG: a bar for each rung, its dark end what the layer adds.
use super::table::added;
use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
/// Where the bars begin, and where the longest of them ends.
const LEFT: f64 = 210.0;
const RIGHT: f64 = 760.0;
const TOP: f64 = 64.0;
const ROW: f64 = 30.0;
const BAR: f64 = 20.0;

/// Draws the times of the rungs, in nanoseconds.
#[must_use]
pub fn svg<const N: usize>(layers: &[&str; N], times: &[f64; N]) -> String {
    let step = step(times.iter().fold(1.0_f64, |most, time| most.max(*time)));
    let ticks = (times.iter().fold(1.0_f64, |most, time| most.max(*time)) / step).ceil() as u32;
    let x = |time: f64| LEFT + (RIGHT - LEFT) * time / (f64::from(ticks) * step);
    let bottom = TOP + ROW * N as f64;
    let height = bottom + 56.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let title = "Time of a new call with 1 KiB of params, one layer more in each row; the dark end is what the layer adds";
    text(&mut svg, 16.0, 30.0, "start", title);
    for tick in 0..=ticks {
        let value = f64::from(tick) * step;
        let at = x(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#d5d5d5\"/>"
        );
        text(&mut svg, at, bottom + 18.0, "middle", &value.to_string());
    }
    text(&mut svg, (LEFT + RIGHT) / 2.0, bottom + 42.0, "middle", "nanoseconds per call");
    for (nth, (layer, time)) in layers.iter().zip(times).enumerate() {
        let top = TOP + ROW * nth as f64 + (ROW - BAR) / 2.0;
        let below = nth.checked_sub(1).map_or(0.0, |below| times[below].min(*time));
        bar(&mut svg, (x(0.0), x(below)), top, "#9ecae1");
        bar(&mut svg, (x(below), x(*time)), top, "#08519c");
        let (sign, label) = match nth.checked_sub(1) {
            Some(below) => ("+ ", format!(" ({:+} ns)", added(times, below))),
            None => Default::default(),
        };
        text(&mut svg, LEFT - 10.0, top + 15.0, "end", &format!("{sign}{layer}"));
        text(&mut svg, x(*time) + 8.0, top + 15.0, "start", &format!("{time:.0} ns{label}"));
    }
    svg + "</svg>\n"
}

/// 1, 2 or 5 times a power of ten, so that there are 4 to 10 steps.
fn step(most: f64) -> f64 {
    let power = 10.0_f64.powf((most / 10.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|it| it * power)
        .into_iter()
        .find(|it| most / it <= 10.0)
        .unwrap_or(power)
}

fn bar(svg: &mut String, (from, to): (f64, f64), top: f64, color: &str) {
    let width = to - from;
    let _ = writeln!(
        svg,
        "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{color}\"/>"
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

    #[test]
    fn each_rung_has_two_bars_in_the_picture_and_its_figures() {
        let svg = svg(&["bare tool", "retry", "breaker"], &[40.0, 60.0, 55.0]);
        // One is the background.
        assert_eq!(svg.matches("<rect").count(), 1 + 2 * 3);
        for label in ["40 ns<", "+ retry", "60 ns (+20 ns)", "55 ns (+0 ns)"] {
            assert!(svg.contains(label), "{label}: {svg}");
        }
        assert!(!svg.contains("width=\"-") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn there_are_four_to_ten_steps() {
        for most in [1.0, 9.0, 10.0, 37.0, 99.0, 100.0, 641.0, 2_800.0] {
            let steps = (most / step(most)).ceil();
            assert!((4.0..=10.0).contains(&steps), "{most}: {steps}");
        }
    }
}

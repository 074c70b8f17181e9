//! The picture of a terminal: an SVG without scripts, whose lines are faint until the run printed them.
//!
//! Without animations, or where a reader asks for less motion, none is.

use std::{fmt::Write as _, time::Duration};

use super::styled::{Piece, Style, rows};

/// A line, and when it was there.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) time: Duration,
    pub(super) line: String,
}

/// Columns of the terminal.
const WIDTH: usize = 110;
/// Width of a letter, height of a row, and the border, in pixels.
const LETTER: f64 = 7.4;
const ROW: usize = 16;
const BORDER: usize = 16;

/// How much slower than the run the picture is: each scene can be read.
const SLOWER: u32 = 3;
/// How long all lines are shown before the run begins again.
const HOLD: Duration = Duration::from_secs(30);
/// Lines that come closer together than this are one group.
const TOGETHER: Duration = Duration::from_millis(40);

const STYLE: &str = "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328;white-space:pre}\
.b{font-weight:bold}.d{fill:#59636e}.x{fill:#cf222e;font-weight:bold}.g{fill:#1a7f37;font-weight:bold}\
rect{fill:#fff;stroke:#d0d7de}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.d{fill:#9198a1}.x{fill:#ff7b72}.g{fill:#3fb950}rect{fill:#0d1117;stroke:#3d444d}}";

/// The picture of a command and what it printed.
pub(super) fn drawn(command: &str, printed: &[Printed]) -> String {
    let mut groups: Vec<(Duration, Vec<Vec<Piece>>)> =
        vec![(Duration::ZERO, rows(&format!("\u{1b}[2m$\u{1b}[0m {command}"), WIDTH))];
    for Printed { time, line } in printed {
        let rows = rows(line, WIDTH);
        match groups.last_mut().filter(|(last, _)| time.saturating_sub(*last) < TOGETHER) {
            Some((_, group)) => group.extend(rows),
            None => groups.push((*time, rows)),
        }
    }
    let end = printed.last().map_or(Duration::ZERO, |last| last.time) * SLOWER + HOLD;
    let height = groups.iter().map(|(_, rows)| rows.len()).sum::<usize>() * ROW + 2 * BORDER;
    let width = (WIDTH as f64).mul_add(LETTER, 2.0 * BORDER as f64);

    let mut style = STYLE.to_owned();
    let mut body = String::new();
    let mut top = BORDER + ROW * 3 / 4;
    for (number, (time, rows)) in groups.iter().enumerate() {
        let _ = writeln!(body, "<g class=\"t{number}\">");
        for row in rows {
            for piece in row {
                body += &text(piece, top);
            }
            top += ROW;
        }
        body += "</g>\n";
        let part = (*time * SLOWER).as_secs_f64() / end.as_secs_f64() * 100.0;
        if number > 0 {
            let _ = write!(
                style,
                "\n.t{number}{{animation:t{number} {:.1}s step-end infinite}}@keyframes t{number}{{0%{{opacity:.2}}{part:.2}%{{opacity:1}}}}",
                end.as_secs_f64()
            );
        }
    }
    style += "\n@media(prefers-reduced-motion:reduce){g{animation:none!important}}";
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{command}</title>\n\
         <style>{style}</style>\n<rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n{body}</svg>\n",
        width - 1.0,
        height - 1,
    )
}

/// A piece at its place: its length is given, so that columns meet in any font.
fn text(Piece { column, text, style }: &Piece, top: usize) -> String {
    let class = match style {
        Style::Plain => "",
        Style::Bold => " class=\"b\"",
        Style::Dim => " class=\"d\"",
        Style::Bad => " class=\"x\"",
        Style::Good => " class=\"g\"",
    };
    let left = (*column as f64).mul_add(LETTER, BORDER as f64);
    let length = text.chars().count() as f64 * LETTER;
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<text x=\"{left:.1}\" y=\"{top}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\"{class}>{text}</text>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: &[(u64, &str)]) -> Vec<Printed> {
        let line = |(millis, line): &(u64, &str)| Printed {
            time: Duration::from_millis(*millis),
            line: (*line).into(),
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn lines_appear_when_they_were_printed() {
        let svg = drawn("demo", &printed(&[(0, "one"), (5000, "a < b"), (5000, "three")]));
        // 5 s, three times slower, of 15 s and the hold.
        assert!(svg.contains("@keyframes t1{0%{opacity:.2}33.33%{opacity:1}}"), "{svg}");
        assert!(!svg.contains("t2"), "{svg}");
        let groups: Vec<_> = svg.split("<g").skip(1).collect();
        assert!(groups[0].contains(">one<"), "{svg}");
        assert!(groups[1].contains(">a &lt; b<") && groups[1].contains(">three<"), "{svg}");
    }

    #[test]
    fn the_command_is_above_what_it_printed() {
        let svg = drawn("demo", &printed(&[(0, "\u{1b}[1m\u{1b}[31mbad\u{1b}[0m")]));
        assert!(svg.find(">demo<").unwrap() < svg.find(" class=\"x\">bad<").unwrap(), "{svg}");
        assert!(!svg.contains("animation:t"), "{svg}");
        assert!(!svg.contains("<script") && !svg.contains("href"), "{svg}");
    }
}

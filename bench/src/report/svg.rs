//! Drawings, as text that any browser shows without anything else.

use std::fmt::Write as _;

use super::Plot;
use crate::measure::require::short;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;
const STEPS: u32 = 5;
/// Told apart by people who see colours otherwise as well.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
/// The smallest value on a logarithmic axis.
const SMALL: f64 = 1e-3;

/// Text as text, whatever is in it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// From values to places.
struct Axis {
    log: bool,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>, log: bool, start: f64, end: f64) -> Self {
        let mut from = if log { f64::MAX } else { 0.0 };
        let mut to = f64::MIN;
        for value in values.filter(|value| value.is_finite()).map(|value| scaled(value, log)) {
            (from, to) = (from.min(value), to.max(value));
        }
        if to <= from {
            (from, to) = if to < from { (0.0, 1.0) } else { (from, from + 1.0) };
        }
        Self { log, from, to, start, end }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (scaled(value, self.log) - self.from) / (self.to - self.from);
        self.start + share * (self.end - self.start)
    }

    /// Places with their values.
    fn steps(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        (0..=STEPS).map(|step| {
            let share = f64::from(step) / f64::from(STEPS);
            let value = self.from + share * (self.to - self.from);
            let value = if self.log { 10_f64.powf(value) } else { value };
            (self.start + share * (self.end - self.start), value)
        })
    }
}

fn scaled(value: f64, log: bool) -> f64 {
    if log { value.max(SMALL).log10() } else { value }
}

/// The drawing.
pub fn draw(plot: &Plot) -> String {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let marks = plot.marks.iter().map(|(x, _)| *x);
    let x = Axis::of(points().map(|point| point.0).chain(marks), plot.log_x, LEFT, WIDTH - RIGHT);
    let y = Axis::of(points().map(|point| point.1), plot.log_y, HEIGHT - BOTTOM, TOP);
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n", escape(&plot.title));
    frame(&mut svg, plot, &x, &y);
    for (index, series) in plot.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        if plot.dots {
            for (px, py) in &series.points {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.8\" fill=\"{colour}\"/>",
                    x.at(*px),
                    y.at(*py)
                );
            }
        } else {
            let line: Vec<String> =
                series.points.iter().map(|(px, py)| format!("{:.1},{:.1}", x.at(*px), y.at(*py))).collect();
            let line = line.join(" ");
            let _ =
                writeln!(svg, "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" points=\"{line}\"/>");
        }
        #[expect(clippy::cast_precision_loss, reason = "a handful of series")]
        let row = TOP + 14.0 * index as f64 + 10.0;
        let name = escape(&series.name);
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{row:.1}\" fill=\"{colour}\">{name}</text>", LEFT + 8.0);
    }
    svg.push_str("</svg>\n");
    svg
}

fn frame(svg: &mut String, plot: &Plot, x: &Axis, y: &Axis) {
    let bottom = HEIGHT - BOTTOM;
    for (place, value) in y.steps() {
        let (right, value) = (WIDTH - RIGHT, short(value));
        let _ =
            writeln!(svg, "<line x1=\"{LEFT}\" y1=\"{place:.1}\" x2=\"{right}\" y2=\"{place:.1}\" class=\"grid\"/>");
        let _ =
            writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>", LEFT - 6.0, place + 4.0);
    }
    for (place, value) in x.steps() {
        let value = short(value);
        let _ =
            writeln!(svg, "<text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>", bottom + 16.0);
    }
    for (at, word) in &plot.marks {
        let (place, word) = (x.at(*at), escape(word));
        let _ =
            writeln!(svg, "<line x1=\"{place:.1}\" y1=\"{TOP}\" x2=\"{place:.1}\" y2=\"{bottom}\" class=\"mark\"/>");
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{word}</text>", place + 4.0, bottom - 6.0);
    }
    let (title, x_word, y_word) = (escape(&plot.title), escape(plot.x), escape(plot.y));
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"14\" class=\"title\">{title}</text>");
    let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"14\" text-anchor=\"end\">{y_word}</text>", WIDTH - RIGHT);
    let _ =
        writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{x_word}</text>", WIDTH - RIGHT, HEIGHT - 8.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Series;

    fn plot(points: Vec<(f64, f64)>, log: bool) -> Plot {
        let series = vec![Series { name: "a <b>".into(), points }];
        Plot { title: "t & u".into(), log_x: log, log_y: log, series, ..Plot::default() }
    }

    #[test]
    fn every_point_lies_inside_and_no_text_becomes_markup() {
        for log in [false, true] {
            let svg = draw(&plot(vec![(0.0, 0.0), (1.0, 10.0), (1_000.0, 1e6)], log));
            assert!(svg.contains("a &lt;b&gt;") && svg.contains("t &amp; u"), "{svg}");
            let line = svg.lines().find(|line| line.starts_with("<polyline")).expect("a line");
            let points = line.split("points=\"").nth(1).expect("points").trim_end_matches("\"/>");
            for point in points.split(' ') {
                let (x, y) = point.split_once(',').expect("two numbers");
                let (x, y): (f64, f64) = (x.parse().expect("a number"), y.parse().expect("a number"));
                assert!((LEFT..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y), "{point}");
            }
        }
    }

    #[test]
    fn nothing_and_one_point_can_be_drawn() {
        for points in [Vec::new(), vec![(5.0, 5.0)]] {
            let svg = draw(&plot(points, false));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}

//! Line charts over the run's time. The lines are SVG stretched to the width there is; all text is
//! HTML next to it, so that it keeps its size on a phone and on paper.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::markup::escape;

/// The axis of a chart, and how its values read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scale {
    /// A count or a plain figure.
    Plain,
    /// A share from 0 to 1, shown in percent.
    Percent,
    /// The same on an axis up to 100 % whatever the values are, for charts that are compared with
    /// each other.
    Whole,
}

impl Scale {
    /// A value as the axis and the crosshair write it.
    pub(crate) fn show(self, value: f64) -> String {
        let (value, sign) = match self {
            Self::Plain => (value, ""),
            Self::Percent | Self::Whole => (value * 100.0, " %"),
        };
        let digits = match value.abs() {
            0.0 => 0,
            a if a < 0.095 => 3,
            a if a < 0.995 => 2,
            a if a < 9.95 && value.fract() != 0.0 => 1,
            _ => 0,
        };
        format!("{value:.digits$}{sign}")
    }
}

/// One line of a chart.
pub(crate) struct Line {
    pub(crate) name: Cow<'static, str>,
    /// 1–6: the colour, by its place in the palette.
    pub(crate) colour: u8,
    /// A reference (source rate, limit, offered) is drawn dashed.
    pub(crate) dashed: bool,
    /// A value for each point of time; `None` breaks the line.
    pub(crate) values: Vec<Option<f64>>,
}

impl Line {
    pub(crate) fn solid(
        name: impl Into<Cow<'static, str>>,
        colour: u8,
        values: Vec<Option<f64>>,
    ) -> Self {
        Self { name: name.into(), colour, dashed: false, values }
    }

    pub(crate) fn dashed(
        name: impl Into<Cow<'static, str>>,
        colour: u8,
        values: Vec<Option<f64>>,
    ) -> Self {
        Self { name: name.into(), colour, dashed: true, values }
    }
}

/// What is drawn behind the lines of a chart: stretches of the run, and moments.
#[derive(Default)]
pub(crate) struct Overlay {
    /// From when to when, seconds, and a class of the page's style.
    pub(crate) bands: Vec<(f64, f64, &'static str)>,
    /// When, seconds, and what happened.
    pub(crate) marks: Vec<(f64, String)>,
    /// Whether the axis counts runs and not seconds.
    pub(crate) counts_runs: bool,
}

/// A chart of the run's time.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) note: &'a str,
    pub(crate) scale: Scale,
    /// The second at which each point begins.
    pub(crate) seconds: &'a [i64],
    pub(crate) lines: Vec<Line>,
}

impl Chart<'_> {
    /// The figure; a sentence where there is nothing to draw.
    pub(crate) fn render(&self) -> String {
        self.render_over(&Overlay::default())
    }

    /// The figure with stretches shaded and moments marked.
    pub(crate) fn render_over(&self, overlay: &Overlay) -> String {
        let lines: Vec<&Line> =
            self.lines.iter().filter(|line| line.values.iter().any(Option::is_some)).collect();
        let heading =
            format!("<h3>{} <small>{}</small></h3>", escape(self.title), escape(self.unit));
        if lines.is_empty() {
            return format!(
                "<figure class=\"chart\">{heading}<p class=\"none\">Nothing was \
                 measured.</p></figure>"
            );
        }
        let values = lines.iter().flat_map(|line| line.values.iter().flatten().copied());
        let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let (top, step) = match self.scale {
            // A run without loss is shown against 1 %, not against 100 %.
            Scale::Whole => (1.05, 0.25),
            Scale::Percent if highest <= 0.0 => (0.01, 0.005),
            // A share cannot exceed 100 %: a step beyond it would stay empty.
            Scale::Percent if (0.8..=1.04).contains(&highest) => (1.05, 0.25),
            _ => axis(highest),
        };
        let mut out = format!("<figure class=\"chart\">{heading}<p class=\"legend\">");
        for line in &lines {
            let dash = if line.dashed { " dashed" } else { "" };
            let _ = write!(
                out,
                "<span class=\"key{dash} c{}\">{}</span>",
                line.colour,
                escape(&line.name)
            );
        }
        let _ =
            write!(out, "</p><div class=\"plot\" data-points=\"{}\">", escape(&self.data(&lines)));
        self.underlay(&mut out, overlay);
        let (unit, long_unit) = if overlay.counts_runs { ("", "runs") } else { (" s", "seconds") };
        self.draw(&mut out, &lines, (top, step), highest, long_unit);
        let seconds = span(self.seconds);
        labels(&mut out, self.scale, (top, step), seconds, (unit, &|_, tick| tick == 0.0));
        close(&mut out, self.note);
        out
    }

    fn underlay(&self, out: &mut String, overlay: &Overlay) {
        if overlay.bands.is_empty() && overlay.marks.is_empty() {
            return;
        }
        let (first, span) = span(self.seconds);
        // Places are shares of the whole axis, which the style stretches with what is shown of it.
        let at = |second: f64| ((second - first) / span).clamp(0.0, 1.0);
        out.push_str("<div class=\"under\">");
        for (from, until, class) in &overlay.bands {
            let (left, width) = (at(*from), at(*until) - at(*from));
            let _ = write!(
                out,
                "<i class=\"band {class}\" style=\"--x:{left:.4};--w:{width:.4}\"></i>"
            );
        }
        for (second, what) in &overlay.marks {
            let left = at(*second);
            // The text is on the side of the line that has more room.
            let side = if left > 0.5 { " left" } else { "" };
            let _ = write!(
                out,
                "<i class=\"moment{side}\" style=\"--x:{left:.4}\"><span>{}</span></i>",
                escape(what)
            );
        }
        out.push_str("</div>");
    }

    fn draw(
        &self,
        out: &mut String,
        lines: &[&Line],
        (top, step): (f64, f64),
        highest: f64,
        unit: &str,
    ) {
        let names: Vec<_> = lines.iter().map(|line| line.name.as_ref()).collect();
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" \
             role=\"img\"><title>{}</title><desc>{} over {:.0} {unit}, highest value {} {}</desc>",
            escape(self.title),
            escape(&names.join(", ")),
            span(self.seconds).1,
            escape(&self.show(highest)),
            escape(self.unit),
        );
        grid(out, top, step);
        for line in lines {
            let class = if line.dashed { "line dashed" } else { "line" };
            let _ = write!(
                out,
                "<path class=\"{class} c{}\" d=\"{}\"/>",
                line.colour,
                self.path(line, top)
            );
        }
        out.push_str("</svg>");
    }

    fn path(&self, line: &Line, top: f64) -> String {
        let mut path = String::new();
        let mut is_drawing = false;
        for (index, value) in line.values.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else {
                is_drawing = false;
                continue;
            };
            let (x, y) =
                (place(self.seconds, index), 100.0 - (value / top).clamp(0.0, 1.0) * 100.0);
            if is_drawing {
                let _ = write!(path, "L{x:.1} {y:.2}");
            } else {
                // A lone point still shows, as a dot of the line's round caps.
                let _ = write!(path, "M{x:.1} {y:.2}h0.01");
            }
            is_drawing = true;
        }
        path
    }

    fn show(&self, value: f64) -> String {
        self.scale.show(value)
    }

    /// What the crosshair reads: seconds, names, colours and values.
    fn data(&self, lines: &[&Line]) -> String {
        let rounded = |value: &Option<f64>| value.filter(|v| v.is_finite()).map(|v| self.show(v));
        let has_no_unit = matches!(self.scale, Scale::Percent | Scale::Whole);
        serde_json::json!({
            "unit": if has_no_unit { "" } else { self.unit },
            "t": self.seconds,
            "lines": lines.iter().map(|line| serde_json::json!({
                "name": line.name,
                "colour": line.colour,
                "v": line.values.iter().map(rounded).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
        .to_string()
    }
}

/// Where an axis of these seconds, or numbers of users, begins, and its length.
pub(super) fn span(x: &[i64]) -> (f64, f64) {
    let (first, last) = (x.first().copied().unwrap_or(0), x.last().copied().unwrap_or(0));
    (first as f64, ((last - first) as f64).max(1.0))
}

/// The place of a point on that axis, of 1000.
pub(super) fn place(x: &[i64], index: usize) -> f64 {
    let (first, span) = span(x);
    x.get(index).map_or(0.0, |x| (*x as f64 - first) / span * 1000.0)
}

/// The lines of the ticks of the upright axis.
pub(super) fn grid(out: &mut String, top: f64, step: f64) {
    for tick in ticks(top, step) {
        let y = 100.0 - tick / top * 100.0;
        let _ = write!(out, "<path class=\"grid\" d=\"M0 {y:.1}H1000\"/>");
    }
}

/// The labels of the upright axis, and of the other one, whose `unit` stands at the ticks (by their
/// number, from 0, and value) that have it.
pub(super) fn labels(
    out: &mut String,
    scale: Scale,
    (top, step): (f64, f64),
    (first, span): (f64, f64),
    (unit, has_unit): (&str, &dyn Fn(usize, f64) -> bool),
) {
    for tick in ticks(top, step) {
        let (at, text) = (tick / top * 100.0, scale.show(tick));
        let _ = write!(out, "<span class=\"y\" style=\"bottom:{at:.1}%\">{text}</span>");
    }
    let (_, step) = axis(span);
    let step = step.max(1.0);
    // Round values are labelled, also where the axis begins before the run.
    let from = (first / step).ceil() * step;
    for (number, tick) in ticks(span + first - from, step).enumerate() {
        let tick = from + tick;
        let at = (tick - first) / span * 100.0;
        let unit = if has_unit(number, tick) { unit } else { "" };
        let _ = write!(out, "<span class=\"x\" style=\"left:{at:.1}%\">{tick:.0}{unit}</span>");
    }
}

/// The note below a chart, and its end.
pub(super) fn close(out: &mut String, note: &str) {
    out.push_str("</div>");
    if !note.is_empty() {
        let _ = write!(out, "<figcaption>{}</figcaption>", escape(note));
    }
    out.push_str("</figure>");
}

/// The top of an axis that holds `highest`, and the step of its ticks: 1, 2 or 5 times a power of
/// ten.
pub(super) fn axis(highest: f64) -> (f64, f64) {
    if highest.is_nan() || highest <= 0.0 {
        return (1.0, 1.0);
    }
    let rough = highest / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    // The last step is drawn in full, so that a line does not touch the top.
    ((highest / step * 1.02).ceil() * step, step)
}

pub(super) fn ticks(top: f64, step: f64) -> impl Iterator<Item = f64> {
    (0..=12).map(move |i| f64::from(i) * step).take_while(move |tick| *tick <= top * 1.0001)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_steps_and_hold_their_values() {
        for highest in [0.0, 0.003, 0.7, 1.0, 29.97, 100.0, 1234.0, 9e9] {
            let (top, step) = axis(highest);
            assert!(top >= highest && ticks(top, step).count() <= 8, "{highest}: {top} by {step}");
        }
    }

    #[test]
    fn charts_of_whole_shares_have_one_axis() {
        for value in [0.0, 0.01, 1.0] {
            let lines = vec![Line::solid("idle", 1, vec![Some(value)])];
            let (title, unit, note, scale) = ("t", "s", "", Scale::Whole);
            let page = Chart { title, unit, note, scale, seconds: &[0], lines }.render();
            assert!(page.contains(">100 %<") && page.contains(">25 %<"), "{page}");
        }
    }

    #[test]
    fn stretches_and_moments_have_their_places_as_shares_of_the_axis() {
        let (title, unit, note, scale) = ("t", "s", "", Scale::Plain);
        let lines = vec![Line::solid("a", 1, vec![Some(1.0); 2])];
        let chart = Chart { title, unit, note, scale, seconds: &[-10, 30], lines };
        let page = chart.render_over(&Overlay {
            bands: vec![(0.0, 10.0, "pass"), (20.0, 99.0, "fail")],
            marks: vec![(0.0, "<early>".into()), (20.0, "late".into())],
            ..Overlay::default()
        });
        for part in [
            "<div class=\"under\"><i class=\"band pass\" style=\"--x:0.2500;--w:0.2500\"></i>",
            "<i class=\"band fail\" style=\"--x:0.7500;--w:0.2500\"></i>",
            "<i class=\"moment\" style=\"--x:0.2500\"><span>&lt;early&gt;</span></i>",
            "<i class=\"moment left\" style=\"--x:0.7500\"><span>late</span></i></div>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!chart.render().contains("class=\"under\""));
    }

    #[test]
    fn gaps_break_the_line_and_a_lone_point_still_shows() {
        let chart = Chart {
            title: "t",
            unit: "s",
            note: "",
            scale: Scale::Plain,
            seconds: &[0, 1, 2],
            lines: vec![],
        };
        let path = chart.path(&Line::solid("a", 1, vec![Some(1.0), None, Some(2.0)]), 2.0);
        assert_eq!(path, "M0.0 50.00h0.01M1000.0 0.00h0.01");
    }
}

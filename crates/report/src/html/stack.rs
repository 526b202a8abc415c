//! Stacked areas: parts of a whole over time, or over the number of users. Drawn as the line charts
//! are.

use std::fmt::Write as _;

use super::chart::{Scale, axis, close, grid, labels, place, span};
use super::markup::escape;

/// Parts of a whole.
pub(crate) struct Stack<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) note: &'a str,
    /// The unit of the horizontal axis: `s` or `users`.
    pub(crate) x_unit: &'a str,
    /// Position of each point on it, in rising order.
    pub(crate) x: &'a [i64],
    /// From the bottom up.
    pub(crate) layers: Vec<Layer>,
    /// The whole as counted separately, drawn as a dashed line.
    pub(crate) whole: Option<(String, Vec<Option<f64>>)>,
}

/// One part.
pub(crate) struct Layer {
    pub(crate) name: String,
    /// 1–6: the colour, by its place in the palette.
    pub(crate) colour: u8,
    pub(crate) values: Vec<Option<f64>>,
}

impl Stack<'_> {
    /// The figure; nothing where there is nothing to draw.
    pub(crate) fn render(&self) -> String {
        let sums = self.sums();
        let Some(top_layer) = sums.last().filter(|_| self.x.len() > 1) else {
            return String::new();
        };
        let whole = self.whole.iter().flat_map(|(_, values)| values.iter().flatten()).copied();
        let highest = top_layer.iter().flatten().copied().chain(whole).fold(0.0, f64::max);
        let (top, step) = axis(highest);
        let mut out = format!(
            "<figure class=\"chart wide\"><h3>{} <small>{}</small></h3><p class=\"legend\">",
            escape(self.title),
            escape(self.unit)
        );
        if let Some((name, _)) = &self.whole {
            let _ = write!(out, "<span class=\"key dashed c6\">{}</span>", escape(name));
        }
        // The legend in the order of the layers, from the top.
        for layer in self.layers.iter().rev() {
            let _ = write!(
                out,
                "<span class=\"key area c{}\">{}</span>",
                layer.colour,
                escape(&layer.name)
            );
        }
        let _ = write!(
            out,
            "</p><div class=\"plot\" data-points=\"{}\"><svg viewBox=\"0 0 1000 100\" \
             preserveAspectRatio=\"none\" role=\"img\"><title>{}</title><desc>{} layers, highest \
             sum {} {}</desc>",
            escape(&self.data()),
            escape(self.title),
            self.layers.len(),
            Scale::Plain.show(highest),
            escape(self.unit),
        );
        grid(&mut out, top, step);
        let floor = vec![Some(0.0); self.x.len()];
        for (index, (layer, upper)) in self.layers.iter().zip(&sums).enumerate() {
            let lower = index.checked_sub(1).and_then(|below| sums.get(below)).unwrap_or(&floor);
            let _ = write!(
                out,
                "<path class=\"area c{}\" d=\"{}\"/>",
                layer.colour,
                self.area(lower, upper, top)
            );
        }
        if let Some((_, values)) = &self.whole {
            let _ =
                write!(out, "<path class=\"line dashed c6\" d=\"{}\"/>", self.line(values, top));
        }
        out.push_str("</svg>");
        let unit = format!(" {}", escape(self.x_unit));
        let is_time = self.x_unit == "s";
        let has_unit = |number: usize, tick: f64| if is_time { tick == 0.0 } else { number == 0 };
        labels(&mut out, Scale::Plain, (top, step), span(self.x), (&*unit, &has_unit));
        close(&mut out, self.note);
        out
    }

    /// The upper edge of each layer; nothing where no layer is known.
    fn sums(&self) -> Vec<Vec<Option<f64>>> {
        let is_known = |point: usize| {
            self.layers.iter().any(|layer| layer.values.get(point).copied().flatten().is_some())
        };
        let mut sum: Vec<Option<f64>> =
            (0..self.x.len()).map(|point| is_known(point).then_some(0.0)).collect();
        self.layers
            .iter()
            .map(|layer| {
                for (sum, value) in sum.iter_mut().zip(&layer.values) {
                    if let (Some(sum), Some(value)) = (sum, value) {
                        *sum += value.max(0.0);
                    }
                }
                sum.clone()
            })
            .collect()
    }

    /// Each run of known points as one closed shape.
    fn area(&self, lower: &[Option<f64>], upper: &[Option<f64>], top: f64) -> String {
        let y = |value: f64| 100.0 - (value / top).clamp(0.0, 1.0) * 100.0;
        let points: Vec<Option<(f64, f64, f64)>> = lower
            .iter()
            .zip(upper)
            .enumerate()
            .map(|(index, (low, high))| {
                let (low, high) = ((*low)?, (*high)?);
                (low.is_finite() && high.is_finite())
                    .then(|| (place(self.x, index), y(low), y(high)))
            })
            .collect();
        let mut path = String::new();
        for run in points.split(Option::is_none) {
            let run: Vec<&(f64, f64, f64)> = run.iter().flatten().collect();
            for (index, (x, _, high)) in run.iter().enumerate() {
                let _ = write!(path, "{}{x:.1} {high:.1}", if index == 0 { 'M' } else { 'L' });
            }
            for (x, low, _) in run.iter().rev() {
                let _ = write!(path, "L{x:.1} {low:.1}");
            }
            if !run.is_empty() {
                path.push('Z');
            }
        }
        path
    }

    fn line(&self, values: &[Option<f64>], top: f64) -> String {
        let mut path = String::new();
        let mut is_drawing = false;
        for (index, value) in values.iter().enumerate() {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                let (x, y) = (place(self.x, index), 100.0 - (value / top).clamp(0.0, 1.0) * 100.0);
                let _ = write!(path, "{}{x:.1} {y:.1}", if is_drawing { 'L' } else { 'M' });
            }
            is_drawing = value.is_some_and(f64::is_finite);
        }
        path
    }

    /// What the crosshair reads.
    fn data(&self) -> String {
        let shown = |values: &[Option<f64>]| {
            let shown =
                values.iter().map(|v| v.filter(|v| v.is_finite()).map(|v| Scale::Plain.show(v)));
            shown.collect::<Vec<_>>()
        };
        let whole = self.whole.iter().map(|(name, values)| (name, 6, shown(values)));
        let layers =
            self.layers.iter().rev().map(|layer| (&layer.name, layer.colour, shown(&layer.values)));
        let lines: Vec<_> = whole
            .chain(layers)
            .map(|(name, colour, v)| serde_json::json!({"name": name, "colour": colour, "v": v}))
            .collect();
        // Charts over time name no axis: they share one crosshair.
        let mut data = serde_json::json!({"unit": self.unit, "t": self.x, "lines": lines});
        if let (false, Some(fields)) = (self.x_unit == "s", data.as_object_mut()) {
            fields.insert("x".into(), self.x_unit.into());
        }
        data.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(values: Vec<Vec<Option<f64>>>) -> Stack<'static> {
        let layer = |(index, values): (usize, Vec<Option<f64>>)| Layer {
            name: format!("<{index}>"),
            colour: 1,
            values,
        };
        Stack {
            title: "t",
            unit: "cores",
            note: "",
            x_unit: "s",
            x: &[-1, 0, 1],
            layers: values.into_iter().enumerate().map(layer).collect(),
            whole: None,
        }
    }

    #[test]
    fn layers_lie_on_each_other_and_gaps_stay_open() {
        let stack = stack(vec![vec![Some(1.0), None, Some(1.0)], vec![Some(2.0), None, None]]);
        assert_eq!(stack.sums(), [[Some(1.0), None, Some(1.0)], [Some(3.0), None, Some(1.0)]]);
        let page = stack.render();
        assert!(page.contains("&lt;0&gt;") && !page.contains("<0>") && !page.contains("NaN"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(stack(vec![]).render(), "");
        assert!(!stack(vec![vec![None; 3]]).render().contains("NaN"));
        assert!(!stack(vec![vec![Some(f64::NAN); 3]]).render().contains("NaN"));
    }
}

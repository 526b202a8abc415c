//! Frame and parts of a page for results other than runs, with the same style; they may load
//! nothing either.

use std::fmt::Write as _;

pub use super::markup::{escape, table};
use super::outline::landmarks;

/// A whole page around `body`, which must be escaped already; `title` is escaped here. It may load
/// nothing.
#[must_use]
pub fn document(title: &str, body: &str) -> String {
    document_with(title, "", "", body)
}

/// The same with more `style` (CSS), and with a `script`, which may run. Nothing may be loaded,
/// even if a name from a server contains markup.
pub(super) fn document_with(title: &str, style: &str, script: &str, body: &str) -> String {
    let (allowed, script) = match script {
        "" => ("", String::new()),
        script => ("script-src 'unsafe-inline'; ", format!("<script>{script}</script>")),
    };
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; {allowed}img-src data:\">"
    );
    framed(&policy, title, style, &landmarks(body), &script)
}

/// The frame of every page; all but `title` is markup.
pub(super) fn framed(policy: &str, title: &str, style: &str, body: &str, script: &str) -> String {
    [
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\">",
        policy,
        "<link rel=\"icon\" href=\"data:,\"><title>",
        &escape(title),
        "</title><style>",
        include_str!("page.css"),
        style,
        "</style></head><body>",
        body,
        script,
        "</body></html>\n",
    ]
    .concat()
}

/// A bar of a bar chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its label.
    pub name: String,
    /// Its value, shown as its length; 0 and below has no bar.
    pub value: f64,
    /// The formatted value.
    pub text: String,
    /// 1–6: the colour, by its place in the palette.
    pub colour: u8,
}

/// Bars under each other, the longest over the whole width.
#[must_use]
pub fn bars(bars: &[Bar]) -> String {
    let longest =
        bars.iter().map(|bar| bar.value).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let mut out = String::from("<div class=\"bars\">");
    for bar in bars {
        let share =
            if longest > 0.0 { (bar.value / longest * 100.0).clamp(0.0, 100.0) } else { 0.0 };
        let _ = write!(
            out,
            "<div class=\"bar c{}\"><span>{}</span><i \
             style=\"width:{share:.1}%\"></i><b>{}</b></div>",
            bar.colour.clamp(1, 6),
            escape(&bar.name),
            escape(&bar.text)
        );
    }
    out.push_str("</div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_one_scale_and_hostile_names_stay_text() {
        let bar =
            |name: &str, value| Bar { name: name.into(), value, text: "<1>".into(), colour: 9 };
        let chart = bars(&[bar("<b>", 10.0), bar("half", 5.0), bar("none", f64::NAN)]);
        assert!(chart.contains("width:100.0%") && chart.contains("width:50.0%"), "{chart}");
        assert!(
            !chart.contains("<b>&lt;b") && chart.contains("&lt;b&gt;") && chart.contains("c6"),
            "{chart}"
        );
        assert!(!document("<script>", "").contains("<script>"));
    }
}

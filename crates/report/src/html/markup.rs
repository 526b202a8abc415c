//! The one way text gets into the page: escaped. Names and details come from servers, so all of it
//! is hostile.

use std::fmt::Write as _;

use throng_observation::untrusted::is_harmful;

#[must_use]
/// `text` with every character that HTML or an attribute gives a meaning replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters, and marks that turn the direction of the text around them.
            c if is_harmful(c) && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// In place of a time that was not reached and will not be.
pub(crate) const NEVER: &str = "never";
/// In place of a time that the end of the run cut off.
pub(crate) const AFTER_THE_END: &str = "after the end";

/// Longer than any figure with its unit: a sentence that begins with one.
const FIGURE_CHARS_MAX: usize = 24;

/// A table: header cells, then rows; cells are escaped. A column whose cells are all figures is set
/// right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let is_figure = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).all(|cell| {
            let begins_as_one =
                cell.starts_with(|c: char| c.is_ascii_digit() || c == '<' || c == '-');
            matches!(cell.as_str(), "" | "–" | NEVER | AFTER_THE_END)
                || begins_as_one && cell.chars().count() <= FIGURE_CHARS_MAX
        })
    };
    let class = |column| if is_figure(column) { " class=\"n\"" } else { "" };
    let mut out = String::from("<div class=\"scroll\"><table><thead><tr>");
    for (column, name) in header.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column), escape(name));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(column), escape(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_cell() {
        assert_eq!(
            escape("<script>'\"&\u{202e}\0"),
            "&lt;script&gt;&#39;&quot;&amp;\u{fffd}\u{fffd}"
        );
        assert!(!table(&["<b>"], &[vec!["</td><img>".into()]]).contains("<img"));
    }
}

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

/// Words of an id: a heading may be a sentence.
const SLUG_WORDS_MAX: usize = 8;

/// An id made of the first words of `text`, in lower case.
pub(crate) fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let id = words.take(SLUG_WORDS_MAX).collect::<Vec<_>>().join("-").to_ascii_lowercase();
    if id.is_empty() { "section".to_owned() } else { id }
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
    let is_figure = |column: &usize| {
        rows.iter().filter_map(|row| row.get(*column)).all(|cell| {
            let begins_as_one =
                cell.starts_with(|c: char| c.is_ascii_digit() || c == '<' || c == '-');
            matches!(cell.as_str(), "" | "–" | NEVER | AFTER_THE_END)
                || begins_as_one && cell.chars().count() <= FIGURE_CHARS_MAX
        })
    };
    let figures: Vec<usize> = (0..header.len()).filter(is_figure).collect();
    let mut table = Table::new("", header, &figures);
    for row in rows {
        table.row("", row.iter().map(|cell| Cell::text(cell)));
    }
    table.finish()
}

/// The same below a title, which is markup; nothing without rows.
pub(crate) fn titled_table(title: &str, header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() { String::new() } else { format!("{title}{}", table(header, rows)) }
}

/// A figure; a dash in place of one that is not known.
pub(crate) fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".into(), text)
}

/// The items of a list, escaped.
pub(crate) fn items<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    texts.into_iter().map(|text| format!("<li>{}</li>", escape(text.as_ref()))).collect()
}

/// A list of notes, escaped; nothing without any.
pub(crate) fn notes<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let items = items(texts);
    if items.is_empty() { items } else { format!("<ul class=\"notes\">{items}</ul>") }
}

/// The section of the sentences on how a report was made, and by which version.
pub(crate) fn method(sentences: &[String], throng_version: &str) -> String {
    let sentences: String =
        sentences.iter().map(|sentence| format!("<p>{}</p>", escape(sentence))).collect();
    let version = escape(throng_version);
    format!("<h2>Method</h2>{sentences}<p class=\"over\">throng {version}</p>")
}

/// What stands in a cell.
pub(crate) struct Cell {
    markup: String,
    class: String,
    is_head: bool,
}

impl Cell {
    /// Text, escaped.
    pub(crate) fn text(text: &str) -> Self {
        Self::markup(escape(text))
    }

    /// Markup that is escaped already.
    pub(crate) fn markup(markup: String) -> Self {
        Self { markup, class: String::new(), is_head: false }
    }

    /// The head of a row; without a name it is none.
    pub(crate) fn head(name: &str) -> Self {
        Self { is_head: !name.is_empty(), ..Self::text(name) }
    }

    /// The cell in a class of the page's style.
    pub(crate) fn classed(self, class: &str) -> Self {
        Self { class: class.to_owned(), ..self }
    }
}

/// A table that grows by rows.
pub(crate) struct Table {
    out: String,
    figures: Vec<usize>,
}

impl Table {
    /// `class` is that of the table in the page's style, empty for none; the columns of `figures`
    /// are set right.
    pub(crate) fn new(class: &str, header: &[&str], figures: &[usize]) -> Self {
        let head = format!("<div class=\"scroll\"><table{}><thead><tr>", attribute(class));
        let mut table = Self { out: head, figures: figures.to_owned() };
        for (column, name) in header.iter().enumerate() {
            let cell = head_cell(table.class_of(column), name);
            table.out.push_str(&cell);
        }
        table.out.push_str("</tr></thead><tbody>");
        table
    }

    /// Adds a row of a class, empty for none.
    pub(crate) fn row(&mut self, class: &str, cells: impl IntoIterator<Item = Cell>) {
        let _ = write!(self.out, "<tr{}>", attribute(class));
        for (column, cell) in cells.into_iter().enumerate() {
            let own = cell.class.as_str();
            let class = attribute(if own.is_empty() { self.class_of(column) } else { own });
            let (tag, scope) = if cell.is_head { ("th", " scope=\"row\"") } else { ("td", "") };
            let _ = write!(self.out, "<{tag}{scope}{class}>{}</{tag}>", cell.markup);
        }
        self.out.push_str("</tr>");
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push_str("</tbody></table></div>");
        self.out
    }

    fn class_of(&self, column: usize) -> &'static str {
        if self.figures.contains(&column) { "n" } else { "" }
    }
}

/// The head of a column; without a name it is none.
fn head_cell(class: &str, name: &str) -> String {
    let class = attribute(class);
    if name.is_empty() {
        return format!("<td{class}></td>");
    }
    format!("<th scope=\"col\"{class}>{}</th>", escape(name))
}

/// The attribute of a class; nothing of an empty one.
fn attribute(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{}\"", escape(class)) }
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
        let mut hostile = Table::new("\"><img>", &["<img>"], &[]);
        hostile.row("\"><img>", [Cell::text("<img>").classed("\"><img>")]);
        assert!(!hostile.finish().contains("<img"));
    }

    #[test]
    fn figures_are_set_right_and_a_cell_may_have_a_class_of_its_own() {
        let rows = [vec!["a".to_owned(), "1.50 s".into()], vec!["b".into(), "–".into()]];
        assert_eq!(
            table(&["name", "time"], &rows),
            "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">name</th>\
             <th scope=\"col\" class=\"n\">time</th></tr></thead><tbody>\
             <tr><td>a</td><td class=\"n\">1.50 s</td></tr>\
             <tr><td>b</td><td class=\"n\">–</td></tr></tbody></table></div>"
        );
        let mut own = Table::new("proof", &["", "ratio"], &[0]);
        own.row("aa", [Cell::text("same").classed("good"), Cell::markup("<b>1</b>".into())]);
        own.row("", [Cell::head("").classed("bad"), Cell::head("<").classed("bad")]);
        let page = own.finish();
        assert!(
            page.contains("<table class=\"proof\">")
                && page.contains("<tr><td class=\"n\"></td><th scope=\"col\">ratio</th></tr>")
                && page.contains("<tr class=\"aa\"><td class=\"good\">same</td><td><b>1</b></td>")
                && page.contains("<td class=\"bad\"></td><th scope=\"row\" class=\"bad\">&lt;"),
            "{page}"
        );
    }
}

//! A served page in parts, so that only what changed is sent again.

use std::collections::BTreeMap;

/// Around a part. No text of others has either: it is escaped.
const BEGIN: &str = "<div class=\"part\" id=\"part-";
const END: &str = "</div><!--part-->";

/// The part of a page: its id and its markup.
pub type Part<'a> = (&'a str, &'a str);

/// `html`, escaped already, as a part.
pub(super) fn wrapped(id: &str, html: &str) -> String {
    format!("{BEGIN}{id}\">{html}{END}")
}

/// The parts of a served page in their order.
pub fn parts(page: &str) -> impl Iterator<Item = Part<'_>> {
    page.split(BEGIN).skip(1).filter_map(|rest| {
        let (id, rest) = rest.split_once("\">")?;
        Some((id, rest.split_once(END)?.0))
    })
}

/// Parts as JSON in one line: a list of ids with their markup.
#[must_use]
pub fn to_json(parts: &[Part<'_>]) -> String {
    serde_json::to_string(parts).unwrap_or_default()
}

/// What those who look at a page have.
#[derive(Debug, Default)]
pub struct Sent(BTreeMap<String, String>);

impl Sent {
    /// Those of `parts` that are not as they were sent; from now on they are.
    pub fn changed<'a>(&mut self, parts: impl IntoIterator<Item = Part<'a>>) -> Vec<Part<'a>> {
        let mut changed: Vec<Part<'a>> = parts.into_iter().collect();
        changed.retain(|(id, html)| self.0.get(*id).is_none_or(|sent| sent != html));
        for (id, html) in &changed {
            self.0.insert((*id).to_owned(), (*html).to_owned());
        }
        changed
    }

    /// All of it, for who has nothing yet.
    #[must_use]
    pub fn all(&self) -> Vec<Part<'_>> {
        self.0.iter().map(|(id, html)| (id.as_str(), html.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_into_what_it_was_made_of() {
        let one = wrapped("one", "<div>a</div>");
        let page = format!("<main>{one}<p>between</p>{}</main>", wrapped("two", ""));
        let found: Vec<Part<'_>> = parts(&page).collect();
        assert_eq!(found, [("one", "<div>a</div>"), ("two", "")]);
        assert_eq!(parts("<main></main>").count(), 0);
        assert_eq!(to_json(&[("one", "a\n\"b\"")]), r#"[["one","a\n\"b\""]]"#);
    }

    #[test]
    fn only_parts_whose_bytes_changed_are_sent_again() {
        let mut sent = Sent::default();
        assert_eq!(sent.changed([("a", "1"), ("b", "1")]), [("a", "1"), ("b", "1")]);
        assert_eq!(sent.changed([("a", "1"), ("b", "2")]), [("b", "2")]);
        assert!(sent.changed([("b", "2")]).is_empty());
        assert_eq!(sent.all(), [("a", "1"), ("b", "2")]);
    }
}

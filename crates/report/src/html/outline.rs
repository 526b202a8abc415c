//! What a page gets when all its parts are written: its contents, headings that lead to themselves,
//! tables named by the heading above them, and heads that lead to the glossary. No part knows what
//! the others are called, so ids are given here.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::glossary;
use super::markup::slug;

/// `body`, escaped already, as the landmarks of a page: the contents and the main part.
pub(super) fn landmarks(body: &str) -> String {
    let (contents, main) = outlined(body);
    format!("{contents}<main>{main}</main>")
}

/// The contents of `body`, empty if it needs none, and `body` with what it gets.
pub(super) fn outlined(body: &str) -> (String, String) {
    let taken = ids(body).map(str::to_owned).collect();
    let mut outline = Outline { taken, ..Outline::default() };
    let mut rest = body;
    while let Some((before, from)) = rest.split_once('<') {
        outline.out.push_str(before);
        // Neither text nor attributes have a bare angle bracket.
        let (tag, after) = from.split_once('>').unwrap_or((from, ""));
        rest = outline.element(tag, after);
    }
    outline.out.push_str(rest);
    (outline.contents(), outline.out)
}

/// The ids that markup gives.
fn ids(markup: &str) -> impl Iterator<Item = &str> {
    markup.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next())
}

/// The page as far as it is written.
#[derive(Default)]
struct Outline {
    out: String,
    /// Ids that the page has.
    taken: BTreeSet<String>,
    /// The id and the text of each section.
    sections: Vec<(String, String)>,
    /// The id of the heading above; empty before the first one.
    above: String,
    /// What of the glossary this section has led to.
    linked: BTreeSet<String>,
}

impl Outline {
    /// Writes the tag and, where it leads to something, its text; gives what is left of `after`.
    fn element<'a>(&mut self, tag: &str, after: &'a str) -> &'a str {
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let text = after.split('<').next().unwrap_or_default().trim_end();
        // What the tag gets, and where its text leads.
        let (added, link) = match name {
            "h2" | "h3" => self.heading(name, attributes, text),
            "th" => (String::new(), self.term(text)),
            // The glossary's own have an id.
            "dt" if attributes.is_empty() => (String::new(), self.term(text)),
            "table" => (self.labelled(), None),
            // What scrolls must be reached by the keyboard.
            "div" if attributes == "class=\"scroll\"" => {
                (format!(" role=\"group\" tabindex=\"0\"{}", self.labelled()), None)
            }
            _ => (String::new(), None),
        };
        // Writing to a String cannot fail.
        let _ = write!(self.out, "<{tag}{added}>");
        let Some(id) = link else { return after };
        let _ = write!(self.out, "<a href=\"#{id}\">{text}</a>");
        after.strip_prefix(text).unwrap_or(after)
    }

    fn heading(&mut self, name: &str, attributes: &str, text: &str) -> (String, Option<String>) {
        if text.is_empty() {
            return (String::new(), None);
        }
        let (id, added) = match ids(&format!(" {attributes}")).next() {
            Some(own) => (own.to_owned(), String::new()),
            None => {
                let id = self.free(&slug(text));
                (id.clone(), format!(" id=\"{id}\""))
            }
        };
        if name == "h2" {
            self.sections.push((id.clone(), text.to_owned()));
            self.linked.clear();
        }
        self.above.clone_from(&id);
        // A link that nobody sees would be in the way of the keyboard.
        let is_seen = !attributes.contains("unseen");
        (added, is_seen.then_some(id))
    }

    /// The id, or with a number behind it the first that is free.
    fn free(&mut self, id: &str) -> String {
        let mut free = id.to_owned();
        let mut count = 1;
        while !self.taken.insert(free.clone()) {
            count += 1;
            free = format!("{id}-{count}");
        }
        free
    }

    /// Where a head leads: once in a section, on a page that has the glossary.
    fn term(&mut self, head: &str) -> Option<String> {
        let id = glossary::id_of(head)?;
        (self.taken.contains(&id) && self.linked.insert(id.clone())).then_some(id)
    }

    fn labelled(&self) -> String {
        match self.above.as_str() {
            "" => String::new(),
            above => format!(" aria-labelledby=\"{above}\""),
        }
    }

    /// The links to all sections; a page of one section needs none.
    fn contents(&self) -> String {
        if self.sections.len() < 2 {
            return String::new();
        }
        let link = |(id, text): &(String, String)| format!("<li><a href=\"#{id}\">{text}</a></li>");
        let links: String = self.sections.iter().map(link).collect();
        format!(
            "<nav aria-label=\"Contents\"><details><summary>Contents</summary><ol>{links}</ol>\
             </details></nav>"
        )
    }
}

#[cfg(test)]
#[path = "outline_tests.rs"]
mod tests;

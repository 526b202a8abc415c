//! What of a file, or of a value in it, is not shown.

use std::ops::Range;

use throng_observation::masked::HIDDEN;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{is_reference, is_secret_at, is_secret_item, masked_text, names_a_secret};
use crate::read::may_be_parsed;

/// What of a text is not shown: places in order that do not overlap, each with what is shown for
/// it.
#[derive(Debug, Default)]
pub(crate) struct Mask(Vec<(Range<usize>, String)>);

impl Mask {
    /// Of a file, also of one with errors of syntax.
    pub(crate) fn of_toml(text: &str) -> Self {
        if !may_be_parsed(text) {
            return Self::of_lines(text);
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Self::of_lines(text);
        }
        let mut collected = Collected::default();
        collected.table(table.get_ref(), false);
        collected.comments(text);
        collected.hidden.sort_by_key(|(part, _)| part.start);
        Self(collected.hidden)
    }

    /// Of the value at a dotted path: TOML, or plain text.
    pub(crate) fn of_value(path: &str, value: &str) -> Self {
        const PREFIX: &str = "v = ";
        if is_secret_at(path) {
            let shown = if is_reference(value) { value } else { HIDDEN };
            return Self::whole(value, shown);
        }
        let document = format!("{PREFIX}{value}");
        let is_toml = may_be_parsed(&document) && DeTable::parse(&document).is_ok();
        if !is_toml || value.contains('\n') {
            return Self::whole(value, &masked_text(value));
        }
        let back = |at: usize| at.saturating_sub(PREFIX.len());
        let parts = Self::of_toml(&document).0.into_iter();
        Self(parts.map(|(part, shown)| (back(part.start)..back(part.end), shown)).collect())
    }

    /// The same where the value begins at `start` of a text.
    pub(crate) fn of_value_at(start: usize, path: &str, value: &str) -> Self {
        let parts = Self::of_value(path, value).0.into_iter();
        Self(parts.map(|(part, shown)| (part.start + start..part.end + start, shown)).collect())
    }

    fn whole(text: &str, shown: &str) -> Self {
        Self(if text == shown { Vec::new() } else { vec![(0..text.len(), shown.to_owned())] })
    }

    /// By its lines. What a value with a secret's name may go on with is hidden too.
    fn of_lines(text: &str) -> Self {
        let (mut hidden, mut start) = (Vec::new(), 0);
        let (mut is_section, mut is_secret, mut is_in_text) = (false, false, false);
        for whole in text.split_inclusive('\n') {
            let line = whole.trim_end();
            let key = line.split_once('=').filter(|_| !is_in_text);
            let is_header = key.is_none() && !is_in_text && line.trim_start().starts_with('[');
            let (from, value) = match key {
                Some((key, value)) => {
                    is_secret = is_section || is_secret_at(key.trim());
                    (line.len() - value.trim_start().len(), value.trim_start())
                }
                None => (0, line),
            };
            if is_header {
                is_section = is_secret_at(line.trim().trim_matches(['[', ']']));
                is_secret = is_section;
            }
            let is_hidden = is_secret && !is_header && !is_reference(value);
            let shown = if is_hidden { HIDDEN.to_owned() } else { masked_text(value) };
            if shown != value {
                hidden.push((start + from..start + line.len(), shown));
            }
            let quotes = ["\"\"\"", "'''"].map(|quote| line.matches(quote).count());
            is_in_text ^= quotes.iter().sum::<usize>() % 2 == 1;
            start += whole.len();
        }
        Self(hidden)
    }

    /// What is shown of `range` of the text.
    pub(crate) fn show(&self, text: &str, range: Range<usize>) -> String {
        let (mut shown, mut at) = (String::new(), range.start);
        let is_in = |part: &Range<usize>| part.start < range.end && part.end > range.start;
        for (part, instead) in self.0.iter().filter(|(part, _)| is_in(part)) {
            shown.push_str(text.get(at..part.start.max(at)).unwrap_or_default());
            shown.push_str(if part.start < range.start { HIDDEN } else { instead });
            at = part.end.min(range.end);
        }
        shown.push_str(text.get(at..range.end).unwrap_or_default());
        shown
    }
}

/// The secrets of a table.
#[derive(Default)]
struct Collected {
    hidden: Vec<(Range<usize>, String)>,
    /// Keys and values, in which `#` begins no comment.
    taken: Vec<Range<usize>>,
}

impl Collected {
    fn table(&mut self, table: &DeTable<'_>, is_secret: bool) {
        for (key, value) in table.iter() {
            let is_secret = is_secret || is_secret_at(key.get_ref());
            self.taken.push(key.span());
            self.value(value, is_secret);
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, is_secret: bool) {
        let shown = match value.get_ref() {
            DeValue::Table(table) => {
                self.table(table, is_secret);
                return;
            }
            DeValue::Array(items) => {
                self.list(items.iter(), is_secret);
                return;
            }
            DeValue::String(text) if is_secret => {
                if is_reference(text) {
                    text.to_string()
                } else {
                    HIDDEN.to_owned()
                }
            }
            DeValue::String(text) => masked_text(text),
            DeValue::Integer(_) | DeValue::Float(_) if is_secret => HIDDEN.to_owned(),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {
                self.taken.push(value.span());
                return;
            }
        };
        let is_as_it_is = matches!(value.get_ref(), DeValue::String(text) if **text == *shown);
        if !is_as_it_is {
            self.hidden.push((value.span(), toml::Value::String(shown).to_string()));
        }
        self.taken.push(value.span());
    }

    /// A secret may follow its flag, or the subprotocol that it is for.
    fn list<'a, 'v: 'a>(
        &mut self,
        items: impl Iterator<Item = &'a Spanned<DeValue<'v>>>,
        is_secret: bool,
    ) {
        let mut before = "";
        for item in items {
            let word = match item.get_ref() {
                DeValue::String(word) => &**word,
                _ => "",
            };
            self.value(item, is_secret || is_secret_item(before, word));
            before = word;
        }
    }

    fn comments(&mut self, text: &str) {
        self.taken.sort_by_key(|part| part.start);
        let mut end = 0;
        for (at, _) in text.match_indices('#') {
            let before = self.taken.partition_point(|part| part.start <= at);
            let is_taken = before
                .checked_sub(1)
                .and_then(|index| self.taken.get(index))
                .is_some_and(|part| at < part.end);
            if at < end || is_taken {
                continue;
            }
            let comment = text.get(at..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            end = at + comment.len();
            if comment.contains(['=', '@']) || names_a_secret(comment) || comment.contains("://") {
                self.hidden.push((at..end, format!("# {HIDDEN}")));
            }
        }
    }
}

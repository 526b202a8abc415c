//! Quotes in a text. JSON within JSON has backslashes before its quotes: each level doubles them
//! and adds one.

use super::QUOTES;

/// A quote of a text, with the backslashes that are its own.
#[derive(Clone, Copy)]
struct Quote {
    begin: usize,
    end: usize,
    kind: Kind,
}

/// A text in quotes ends with the kind that it begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    is_double: bool,
    level: u32,
}

/// The quotes of a text. Backslashes that are said by it come before those of its quote, in pairs
/// on the first level, in fours on the next one: the lowest bits of their number say the level.
fn quotes(text: &str) -> impl Iterator<Item = Quote> {
    text.match_indices(QUOTES).map(move |(at, letter)| {
        let (before, _) = text.split_at(at);
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let level = backslashes.trailing_ones();
        let begin = at - ((1_usize << level) - 1);
        Quote { begin, end: at + letter.len(), kind: Kind { is_double: letter == "\"", level } }
    })
}

/// The quote that a text begins with, with all backslashes before it; empty if none.
pub(super) fn quote_of(text: &str) -> &str {
    let bare = text.trim_start_matches('\\');
    let length = text.len() - bare.len() + 1;
    text.get(..length).filter(|_| bare.starts_with(QUOTES)).unwrap_or_default()
}

/// How many texts a quote is within.
pub(super) fn level_of(quote: &str) -> u32 {
    quotes(quote).next().map_or(0, |quote| quote.kind.level)
}

/// The end of a text that begins with a quote.
pub(super) fn text_end(text: &str) -> usize {
    let mut quotes = quotes(text);
    let end = quotes.next().and_then(|first| quotes.find(|quote| quote.kind == first.kind));
    end.map_or(text.len(), |quote| quote.end)
}

/// The first quote of a text that ends what is open in the `line` before it. One that is not is a
/// letter, as in a password.
pub(super) fn open_quote(line: &str, text: &str) -> Option<usize> {
    if !text.contains(QUOTES) {
        return None;
    }
    let mut open: Vec<Kind> = Vec::new();
    for Quote { kind, .. } in quotes(line) {
        match open.iter().position(|one| *one == kind) {
            Some(place) => {
                open.swap_remove(place);
            }
            None => open.push(kind),
        }
    }
    quotes(text).find(|quote| open.contains(&quote.kind)).map(|quote| quote.begin)
}

/// The pieces of JSON, with where they begin: in turn what is outside of its texts, and a text.
/// Quotes of other levels are letters.
pub(super) fn pieces(json: &str, level: u32) -> impl Iterator<Item = (usize, &str)> {
    let mut quotes = quotes(json).filter(move |quote| quote.kind.level == level);
    let (mut next, mut open): (Option<usize>, Option<Kind>) = (Some(0), None);
    std::iter::from_fn(move || {
        let begin = next?;
        let quote = quotes.find(|quote| open.is_none_or(|kind| kind == quote.kind));
        open = if open.is_some() { None } else { quote.map(|quote| quote.kind) };
        next = quote.map(|quote| quote.end);
        let end = quote.map_or(json.len(), |quote| quote.begin);
        json.get(begin..end).map(|piece| (begin, piece))
    })
}

//! Text without the secrets of the URLs in it: what is written, shown and sent about a run may name
//! a URL, and a URL may hold a password (user info), a signature (query), a key (path of RTMP).
//!
//! `http://me:pw@h/a.mp4?token=T&n=3: no answer` becomes `http://…@h/a.mp4?token=…&n=3: no answer`.

use std::borrow::Cow;

mod host;
mod names;
mod path;
mod query;
mod whole;

use query::masked_pair;

pub use names::{SECRET_STEMS, may_be_shown, names_a_secret};
pub use whole::masked_url;

/// The text that is shown in place of a secret.
pub const HIDDEN: &str = "…";

/// Characters after a URL that belong to the sentence around it. A brace may be one of a variable.
const PUNCTUATION: [char; 9] = ['.', ',', ':', ';', ')', ']', '\'', '`', '!'];

const SLASHES: [char; 2] = ['/', '\\'];

/// What a text with a percent-encoded URL has: `@`, `?` and `:`; a `%` may be encoded once more.
const ENCODED: [&str; 6] = ["%40", "%3F", "%3f", "%3A", "%3a", "%25"];

/// Beside blanks, what is in no URL as it is sent.
const ENDS: [char; 3] = ['"', '<', '>'];

/// Characters before a URL that belong to the sentence around it.
const OPENING: [char; 9] = ['(', '[', '{', '\'', '`', '*', '“', '„', '«'];

/// Of a sentence, more is not shown where it may hold a URL: a server chose how long it is.
const TEXT_BYTES_MAX: usize = 4096;

/// `text` with the secrets of its URLs as `…`: user info, values of the query but for numbers,
/// fragments, keys in the path. What was masked stays as it is. Of a text with URLs that is longer
/// than a sentence, the words that begin it.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let (begin, after) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
    if after.is_empty() {
        return Cow::Owned(masked_with(text, IN_SENTENCES));
    }
    // The password of a URL that is cut off before its `@` looks like a host.
    let (words, _) = split_last_word(begin);
    Cow::Owned(format!("{}{HIDDEN}", masked_with(words, IN_SENTENCES)))
}

/// The path of a request, [`masked`], of any length.
#[must_use]
pub fn masked_request_path(path: &str) -> Cow<'_, str> {
    if is_plain(path) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(masked_url(path, IN_SENTENCES))
}

/// Whether a text has no URL with a secret, at a glance.
fn is_plain(text: &str) -> bool {
    let may_be_signed = text.contains('=') && text.contains(SLASHES);
    let has_scheme = text.contains("://") || (text.contains(":\\") && text.contains("\\/"));
    !may_be_signed
        && !has_scheme
        && !text.contains(['?', '@', '#'])
        && !ENCODED.iter().any(|escape| text.contains(*escape))
}

/// The beginning of what a server said, [`masked`]: a cut within it cuts no URL before its `@`.
#[must_use]
pub fn masked_beginning(text: &str) -> Cow<'_, str> {
    let (begin, after) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
    let (words, cut) = split_last_word(begin);
    let more = after.split(is_end).next().unwrap_or_default();
    // What is no URL may be much longer than those are, and begins all that is said.
    let may_be_url = cut.contains([':', '@', '?', '%']) || cut.contains("//") || more.contains('@');
    if may_be_url && !more.is_empty() {
        return Cow::Owned(format!("{}{HIDDEN}", masked(words)));
    }
    masked(begin)
}

/// The words that begin a text, and the one that ends it, which may go on where the text is cut.
fn split_last_word(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end_matches(|c: char| !is_end(c)).len())
}

/// Whether a URL ends at this character.
fn is_end(letter: char) -> bool {
    letter.is_whitespace() || ENDS.contains(&letter)
}

/// How a part of a URL that may be a secret is shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// A parameter of the query, `NAME=VALUE`.
    pub pair: fn(&str) -> String,
    /// The last part of a path of RTMP, which is the key of a publisher.
    pub key: fn(&str) -> String,
}

/// Of what a server says no value of a parameter is shown.
const IN_SENTENCES: Shown = Shown { pair: masked_pair, key: hidden };

fn hidden(_: &str) -> String {
    HIDDEN.to_owned()
}

/// `text` with the secrets of the URLs in it as `shown` says. A URL ends at blanks, double quotes
/// and angle brackets.
#[must_use]
pub fn masked_with(text: &str, shown: Shown) -> String {
    let mut masked = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_end) {
        let url = piece.trim_end_matches(is_end).trim_end_matches(PUNCTUATION);
        masked.push_str(&masked_url(url, shown));
        masked.push_str(piece.get(url.len()..).unwrap_or_default());
    }
    masked
}

#[cfg(test)]
mod tests;

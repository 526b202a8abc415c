//! What people may see of texts that hold secrets: scenario and matrix files, overrides, words of a
//! command line. Each secret becomes `…`, whether or not the text can be read as what it is.
//!
//! A value is a secret by its name (`token`, `password`, below `headers`), a part of a URL by its
//! place: user info, key, query; what follows `Bearer` or `PASS` too. References (`env:NAME`,
//! `file:PATH`) and variables of a matrix or a chat stay: they say where a secret is.

use throng_observation::masked::{self, HIDDEN, SECRET_STEMS};

use crate::chat::ChatVariable;

mod flags;
mod mask;
mod quotes;
mod urls;
mod values;

use flags::{is_secret_after, without_flags};
pub(crate) use mask::Mask;
use urls::without_secrets_of_urls;
use values::{without_credentials, without_values};

/// The table whose values may all be secrets, whatever their names.
const HEADERS: &str = "headers";

/// Whether a value of this name is a secret, also with a typing error in the name.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let parts = name.split('.').filter(|part| !KNOWN.contains(&part.trim().trim_matches(QUOTES)));
    let words = parts.flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric()));
    // Comparing takes the product of the lengths.
    let mut words = words.filter(|word| word.len() <= MISTYPED_BYTES_MAX);
    masked::names_a_secret(name)
        || words.any(|word| {
            let word = word.to_ascii_lowercase();
            SECRET_STEMS.iter().any(|stem| strsim::damerau_levenshtein(&word, stem) <= 1)
        })
}

/// Keys of scenarios with a word that is like a name of a secret: `taken` is `token` but for one
/// letter.
const KNOWN: [&str; 1] = ["nick_taken"];

/// Longer words are no typing errors of a name.
const MISTYPED_BYTES_MAX: usize = 40;

/// Whether the value at a dotted path is a secret.
fn is_secret_at(path: &str) -> bool {
    names_a_secret(path) || path.split('.').any(|part| part.trim_matches(QUOTES) == HEADERS)
}

const QUOTES: [char; 2] = ['"', '\''];

/// Words before what a server knows somebody by, and the usual mechanism of SASL.
const SCHEMES: [&str; 4] = ["Bearer", "Basic", "Token", "PLAIN"];

/// Subprotocols of a WebSocket behind which the next one is no protocol, but a token.
const BEFORE_TOKENS: [&str; 4] = ["bearer", "authorization", "access_token", "jwt"];

/// Whether a value says where a secret is, and is none.
fn is_reference(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'', '\\']);
    let is_variable = value.starts_with("{{") && value.ends_with("}}");
    value == HIDDEN
        || is_variable
        || value.starts_with("env:")
        || value.starts_with("file:")
        || without_scheme(value).split_whitespace().all(is_filled)
}

/// What stands before the colon of a word that is variables else: `oauth:{token}`, or `:{token}` as
/// the last word of a line of IRC.
const KINDS: [&str; 2] = ["", "oauth"];

/// Whether a word is nothing but variables of a chat, also behind the word of their kind.
fn is_filled(word: &str) -> bool {
    let parts = word.split_once(':').filter(|(kind, _)| KINDS.contains(kind));
    is_of_variables(parts.map_or(word, |(_, rest)| rest))
}

/// A value without the word of its scheme: `Bearer {token}`.
pub(crate) fn without_scheme(value: &str) -> &str {
    let is_scheme = |word: &str| SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word));
    value.split_once(' ').filter(|(word, _)| is_scheme(word)).map_or(value, |(_, rest)| rest)
}

/// Whether a word is nothing but variables of a chat.
pub(crate) fn is_of_variables(word: &str) -> bool {
    let inner = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
    inner.is_some_and(|inner| inner.split("}{").all(ChatVariable::is_word))
}

/// A file (TOML) without its secrets, to be kept. Comments that may have some are hidden too.
#[must_use]
pub fn masked_toml(text: &str) -> String {
    Mask::of_toml(text).show(text, 0..text.len())
}

/// `PATH=VALUE` without its secrets.
#[must_use]
pub fn masked_override(text: &str) -> String {
    let parts = text.split_once('=').filter(|(path, _)| !path.contains("://"));
    let Some((path, value)) = parts else { return masked_text(text) };
    let mask = Mask::of_value(path, value);
    format!("{path}={}", mask.show(value, 0..value.len()))
}

/// Any text without the secrets in URLs, in `name=value` and `name: value`, JSON too, behind the
/// flags of a command, and behind `Bearer` and `PASS`.
#[must_use]
pub fn masked_text(text: &str) -> String {
    without_credentials(&without_values(&without_flags(&without_secrets_of_urls(text))))
}

/// The items of a list, such as the words of a command, without their secrets, also those behind
/// their flags.
pub(crate) fn masked_words(words: &[String]) -> Vec<String> {
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    let shown = |(word, before): (&String, &str)| {
        if is_secret_item(before, word) { HIDDEN.to_owned() } else { masked_text(word) }
    };
    words.iter().zip(before).map(shown).collect()
}

/// Whether an item of a list is a secret by the one before it.
fn is_secret_item(before: &str, item: &str) -> bool {
    let is_token = || BEFORE_TOKENS.iter().any(|name| name.eq_ignore_ascii_case(before));
    is_secret_after(before, item) || (!is_reference(item) && is_token())
}

/// Whether some `…` among the words of a command may be one that [`masked_words`] has written, and
/// is none that the command says.
pub(crate) fn has_masked_words(words: &[String]) -> bool {
    // None is masked again where it stands for all: a word, a part of a path, a fragment, what a
    // flag about a secret says. A word may have the words of a shell.
    let is_whole = |word: &String| {
        let mut pieces = word.split(|c: char| c.is_whitespace() || QUOTES.contains(&c));
        word == HIDDEN
            || ["/…", "\\…"].iter().any(|whole| word.contains(whole))
            || pieces.any(|piece| is_masked_flag(piece) || has_masked_fragment(piece))
    };
    let probed: Vec<String> = words.iter().map(|word| probed(word)).collect();
    let count =
        |words: &[String]| -> usize { words.iter().map(|word| word.matches(PROBE).count()).sum() };
    words.iter().any(is_whole) || count(&masked_words(&probed)) < count(&probed)
}

/// Whether a word is a flag about a secret, such as earlier versions have hidden all values of:
/// `--password-file=…`.
fn is_masked_flag(word: &str) -> bool {
    let flag = word.split_once('=').filter(|(_, value)| value.starts_with(HIDDEN));
    flag.is_some_and(|(flag, _)| flag.starts_with('-') && names_a_secret(flag))
}

/// Whether a word has a fragment that is hidden as a whole where it has a value: `http://h/m#…`.
fn has_masked_fragment(word: &str) -> bool {
    word.split_once("#…").is_some_and(|(before, after)| {
        !masked_text(&format!("{before}#k={PROBE}{after}")).contains(PROBE)
    })
}

/// What may stand for a secret. It is random, as names are shown where secrets are not.
const PROBE: &str = "a1b2c3d4e5f6g7h8i9j0k1";

/// A text with a probe for each `…`, also for that of `NAME:PASSWORD`, which begins a word.
fn probed(text: &str) -> String {
    let mut pieces = text.split(HIDDEN);
    let mut probed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        if !probed.ends_with(char::is_alphanumeric) {
            probed.push_str(PROBE);
            probed.push(':');
        }
        probed.push_str(PROBE);
        probed.push_str(piece);
    }
    probed
}

#[cfg(test)]
mod tests;

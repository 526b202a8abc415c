//! What people may see of texts that hold secrets: scenario and matrix files, overrides, words of a
//! command line. Each secret becomes `…`, whether or not the text can be read as what it is.
//!
//! A value is a secret by its name (`token`, `password`, below `headers`), a part of a URL by its
//! place: user info, key, query; what follows `Bearer` or `PASS` too. References (`env:NAME`,
//! `file:PATH`) and variables of a matrix or a chat stay: they say where a secret is.

use std::ops::Range;

use throng_observation::masked::{self, HIDDEN, SECRET_STEMS, masked_with};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::chat::ChatVariable;
use crate::read::may_be_parsed;
use crate::url_template::WITH_NAMES;

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

/// Words in a text behind which all of the line is what a server knows somebody by.
const COMMANDS: [&str; 6] = ["PASS", "AUTH", "AUTHENTICATE", "IDENTIFY", "Bearer", "bearer"];

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
        || without_scheme(value).split_whitespace().all(is_of_variables)
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
    without_credentials(&without_values(&without_flags(&masked_with(text, WITH_NAMES))))
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

/// Whether a word of a command is a secret by the flag before it, as in `--token S3CRET` and
/// `curl -u NAME:S3CRET`.
fn is_secret_after(flag: &str, word: &str) -> bool {
    let has_user = matches!(flag, "-u" | "-U" | "--user" | "--proxy-user");
    flag.starts_with('-')
        && !flag.contains('=')
        && !is_reference(word)
        && ((names_a_secret(flag) && !is_about_secret(flag, word))
            || (has_user && word.contains(':') && !word.contains("://")))
}

/// Last words of flags that say where a secret is, how long it holds or how many there are.
const ABOUT_SECRETS: [&str; 5] = ["file", "path", "dir", "ttl", "max"];

/// Files of keys and certificates end with one of these.
const KEY_FILES: [&str; 3] = ["pem", "key", "crt"];

/// Counts and times have no more digits.
const COUNT_DIGITS_MAX: usize = 5;

/// Flags with one of these words have counts and times.
const COUNTED: [&str; 8] = ["max", "min", "ttl", "lifetime", "size", "count", "age", "timeout"];

/// Flags with one of these are of secrets that people choose, which may be a number of few digits
/// or end like the name of a file.
const CHOSEN: [&str; 4] = ["pin", "pass", "pwd", "secret"];

/// Whether a word behind a flag that is named like a secret's is none: `--password-file PATH`,
/// `--tls-key server.pem`, `--max-keys 5`.
fn is_about_secret(flag: &str, word: &str) -> bool {
    let is_one_of =
        |ending: &str, all: &[&str]| all.iter().any(|one| one.eq_ignore_ascii_case(ending));
    let last = flag.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let flag = flag.to_ascii_lowercase();
    let is_chosen = CHOSEN.iter().any(|part| flag.contains(part));
    let mut words = flag.split(|c: char| !c.is_ascii_alphanumeric());
    let is_count = word.len() <= COUNT_DIGITS_MAX
        && word.bytes().all(|byte| byte.is_ascii_digit())
        && words.any(|word| COUNTED.contains(&word));
    let is_file = !word.contains(|c: char| c == ':' || c.is_whitespace())
        && word.rsplit_once('.').is_some_and(|(_, ending)| is_one_of(ending, &KEY_FILES));
    is_one_of(last, &ABOUT_SECRETS) || (!is_chosen && (is_count || is_file))
}

/// The words of a command without those that are secrets by the flags before them.
fn without_flags(text: &str) -> String {
    let (mut shown, mut rest, mut flag) = (String::with_capacity(text.len()), text, "");
    while !rest.is_empty() {
        let (blanks, from) = rest.split_at(rest.len() - rest.trim_start().len());
        let word = from.split(char::is_whitespace).next().unwrap_or_default();
        let bare = word.trim_matches(['"', '\'', '[', ']', ',']);
        let is_secret = !bare.is_empty() && is_secret_after(flag, bare);
        // In quotes it may have blanks.
        let is_quoted = is_secret && word.starts_with(QUOTES);
        let end = if is_quoted { value_end(from) } else { word.len() };
        let (word, more) = from.split_at(end);
        shown.push_str(blanks);
        shown.push_str(if is_secret { HIDDEN } else { word });
        (rest, flag) = (more, bare);
    }
    shown
}

/// `name=value`, `name: value` and `"name": value` without the values of names of secrets; all else
/// stays.
fn without_values(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at);
        let (sign, after) = after.split_at(1);
        shown.push_str(before);
        shown.push_str(sign);
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let quoted = before.trim_end();
        // Of JSON within JSON, quotes have backslashes.
        let bare = quoted.trim_end_matches(QUOTES).trim_end_matches('\\');
        let (_, name_quote) = quoted.split_at(bare.len());
        let name = bare.rsplit(|c: char| !is_word(c)).next().unwrap_or_default();
        rest = after;
        // Neither a scheme nor a host with a port is the name of a header.
        let is_host = before.strip_suffix(name).is_some_and(|part| part.ends_with(['/', '@']));
        let is_place = is_host || name.contains('.') || after.starts_with("//");
        if (sign == ":" && is_place) || !is_secret_at(name) {
            continue;
        }
        let value = after.trim_start();
        let (blanks, _) = after.split_at(after.len() - value.len());
        let has_members = sign == ":" && !name_quote.is_empty() && begins_members(value);
        let end = match sign {
            "=" => value_end(value),
            _ if has_members => members_end(value),
            _ => header_end(value),
        };
        let (value, more) = value.split_at(end);
        let is_flag = sign == "=" && name.starts_with('-');
        if is_flag && is_about_secret(name, value.trim_matches(QUOTES)) {
            continue;
        }
        // What a command or a chat sends stays JSON.
        let quote = if has_members { name_quote } else { quote_of(value) };
        rest = more;
        if is_reference(value) || (has_members && has_references(value)) {
            shown.extend([blanks, value]);
        } else if sign == ":" {
            shown.extend([blanks, quote, HIDDEN, quote]);
        } else {
            shown.push_str(HIDDEN);
        }
    }
    shown.push_str(rest);
    shown
}

/// A text without what follows the words of [`COMMANDS`] in its line.
fn without_credentials(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(' ') {
        let (before, after) = rest.split_at(at + 1);
        shown.push_str(before);
        rest = after;
        let is_part = |c: char| !c.is_ascii_alphanumeric();
        let command = before.trim_end().rsplit(is_part).next().unwrap_or_default();
        if COMMANDS.contains(&command) {
            let (value, more) = after.split_at(header_end(after));
            let is_told = is_reference(value) || SCHEMES.contains(&value.trim());
            shown.push_str(if is_told { value } else { HIDDEN });
            rest = more;
        }
    }
    shown.push_str(rest);
    shown
}

/// The end of the value of a header, which has blanks and commas: that of its quotes, or of those
/// around it, or of its line.
fn header_end(value: &str) -> usize {
    match quote_of(value) {
        "" => value.find(['"', '\'', '\n']).unwrap_or(value.len()),
        _ => value_end(value),
    }
}

/// The quote that a value begins with, of JSON within JSON with its backslashes; empty if none.
fn quote_of(value: &str) -> &str {
    let bare = value.trim_start_matches('\\');
    let length = value.len() - bare.len() + 1;
    value.get(..length).filter(|_| bare.starts_with(QUOTES)).unwrap_or_default()
}

/// The end of a value among others: that of its quotes, or the next separator.
fn value_end(value: &str) -> usize {
    let quote = quote_of(value);
    let inner = value.get(quote.len()..).unwrap_or_default();
    if quote.is_empty() {
        // The brace of a variable is no separator.
        let (_, after) = value.split_at(variable_len(value));
        let is_end = |c: char| c.is_whitespace() || ",&;\"'}".contains(c);
        return value.len() - after.len() + after.find(is_end).unwrap_or(after.len());
    }
    let is_inner = |at: usize| inner.get(..at).is_some_and(|text| text.ends_with('\\'));
    let end = inner.match_indices(quote).find(|(at, _)| !is_inner(*at));
    end.map_or(value.len(), |(at, _)| at + 2 * quote.len())
}

/// How long the variable of a chat is that a text begins with; 0: it begins with none.
fn variable_len(text: &str) -> usize {
    let word = text.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(word, _)| word);
    word.filter(|word| ChatVariable::is_word(word)).map_or(0, |word| word.len() + 2)
}

/// Whether a value of JSON is a list or a table.
fn begins_members(value: &str) -> bool {
    value.starts_with(['[', '{']) && variable_len(value) == 0
}

/// The end of a list or table of JSON.
fn members_end(value: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some((_, rest)) = value.split_at_checked(at)
        && let Some(found) = rest.find(['"', '[', '{', ']', '}'])
    {
        let (_, rest) = rest.split_at(found);
        let (change, length) = match rest.chars().next() {
            Some('[' | '{') => (1, 1),
            Some('"') => (0, value_end(rest)),
            Some(_) | None => (-1, 1),
        };
        depth = depth.saturating_add_signed(change);
        at += found + length;
        if depth == 0 {
            return at;
        }
    }
    value.len()
}

/// Whether all texts in a list or table of JSON say where secrets are, and it has no number.
fn has_references(members: &str) -> bool {
    let mut pieces = members.split('"').peekable();
    while let Some(between) = pieces.next() {
        let Some(text) = pieces.next() else { return !between.contains(char::is_numeric) };
        let is_name = pieces.peek().is_some_and(|after| after.trim_start().starts_with(':'));
        if between.contains(char::is_numeric) || !(is_name || is_reference(text)) {
            return false;
        }
    }
    true
}

#[cfg(test)]
#[path = "masked_tests.rs"]
mod tests;

//! Secrets behind the flags of a command: `--token S3CRET`.

use throng_observation::masked::HIDDEN;

use super::quotes::text_end;
use super::{QUOTES, is_reference, names_a_secret};

/// Whether a word of a command is a secret by the flag before it, as in `--token S3CRET` and
/// `curl -u NAME:S3CRET`.
pub(super) fn is_secret_after(flag: &str, word: &str) -> bool {
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
pub(super) fn is_about_secret(flag: &str, word: &str) -> bool {
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
pub(super) fn without_flags(text: &str) -> String {
    let (mut shown, mut rest, mut flag) = (String::with_capacity(text.len()), text, "");
    while !rest.is_empty() {
        let (blanks, from) = rest.split_at(rest.len() - rest.trim_start().len());
        let word = from.split(char::is_whitespace).next().unwrap_or_default();
        let bare = word.trim_matches(['"', '\'', '[', ']', ',']);
        let is_secret = !bare.is_empty() && is_secret_after(flag, bare);
        // In quotes it may have blanks.
        let is_quoted = is_secret && word.starts_with(QUOTES);
        let end = if is_quoted { text_end(from) } else { word.len() };
        let (word, more) = from.split_at(end);
        shown.push_str(blanks);
        shown.push_str(if is_secret { HIDDEN } else { word });
        (rest, flag) = (more, bare);
    }
    shown
}

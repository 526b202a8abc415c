//! Which names are those of secrets, and which values may be shown.

use super::IN_SENTENCES;
use super::whole::masked_url;

/// Words that are names of secrets: of keys in files, variables of the environment, parameters.
const SECRET_WORDS: [&str; 9] =
    ["auth", "authorization", "bearer", "cookie", "jwt", "pin", "sig", "signature", "streamid"];

/// Words of names of secrets end with one of these: `privateKey`, `PGPASS`, `DB_CRED`.
const SECRET_ENDS: [&str; 6] = ["key", "keys", "pass", "pwd", "cred", "creds"];

/// Parts of words that are names of secrets.
pub const SECRET_STEMS: [&str; 8] =
    ["token", "password", "passwd", "passphrase", "secret", "apikey", "authkey", "streamkey"];

/// Parameters of URLs whose names contain one of these may be signatures or credentials too; other
/// things have names with them (`codec`, `access_log`).
const SECRET_PARAMETERS: [&str; 14] = [
    "key", "pass", "pwd", "pin", "sig", "auth", "policy", "cred", "hash", "hmac", "session",
    "ticket", "code", "access",
];

/// Names of streams and rooms are no longer.
pub(super) const SHOWN_BYTES_MAX: usize = 64;

/// A word that mixes letters and digits and is at least this long counts as random.
const WORD_BYTES_MIN: usize = 20;

/// Whether the query parameter `NAME=VALUE` of a URL that a user wrote may be shown with its value:
/// its name is not that of a secret, and its value looks like a name. Stream names in a query stay
/// visible this way.
#[must_use]
pub fn may_be_shown(pair: &str) -> bool {
    let Some((name, value)) = pair.split_once('=') else { return false };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/:".contains(c);
    let is_random = |word: &str| {
        let has = |is: fn(char) -> bool| word.contains(is);
        // `conference-room-2024` is of words and numbers.
        let is_plain = |piece: &str| {
            piece.bytes().all(|b| b.is_ascii_digit())
                || piece.bytes().all(|b| b.is_ascii_lowercase())
        };
        word.len() >= WORD_BYTES_MIN
            && has(|c| c.is_ascii_digit())
            && has(|c| c.is_ascii_alphabetic())
            && !word.split(['-', '_']).all(is_plain)
    };
    // Signatures in base64url have hyphens and low lines within.
    let is_between = |c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c);
    !is_secret_parameter(name)
        && (1..=SHOWN_BYTES_MAX).contains(&value.len())
        && name.trim_end_matches("[]").chars().chain(value.chars()).all(is_plain)
        && (!value.contains("://") || masked_url(value, IN_SENTENCES) == value)
        && (is_uuid(value) || !value.split(is_between).any(is_random))
}

/// Whether a value of this name is a secret, wherever the name is one of a value.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.map(str::to_ascii_lowercase).any(|word| {
        SECRET_WORDS.contains(&word.as_str())
            || SECRET_ENDS.iter().any(|end| word.ends_with(end))
            || SECRET_STEMS.iter().any(|stem| word.contains(stem))
    })
}

pub(super) fn is_secret_parameter(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    names_a_secret(name) || SECRET_PARAMETERS.iter().any(|part| lower.contains(part))
}

/// The id of a room or a video, by its form (RFC 9562, section 4).
fn is_uuid(value: &str) -> bool {
    let mut parts = value.split('-');
    let is_part = |length: usize| {
        move |part: &str| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    [8, 4, 4, 4, 12].into_iter().all(|length| parts.next().is_some_and(is_part(length)))
        && parts.next().is_none()
}

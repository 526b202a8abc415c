//! Secrets in URLs. A host mask of IRC, `:{nick}!*@*`, is no user with a password.

use throng_observation::masked::masked_with;

use crate::chat::ChatVariable;
use crate::url_template::WITH_NAMES;

/// A text without the secrets in its URLs.
pub(super) fn without_secrets_of_urls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_end) {
        match is_host_mask(piece.trim_end_matches(is_end)) {
            true => shown.push_str(piece),
            false => shown.push_str(&masked_with(piece, WITH_NAMES)),
        }
    }
    shown
}

/// Whether a URL and a host mask end at this character.
fn is_end(letter: char) -> bool {
    letter.is_whitespace() || letter == '"'
}

/// Whether a word has nothing but variables and signs before its last `@`, and a host behind it.
fn is_host_mask(word: &str) -> bool {
    let is_of_host = |c: char| c.is_ascii_alphanumeric() || ".*-_".contains(c);
    let bare = without_variables(word);
    bare.rsplit_once('@').is_some_and(|(user, host)| {
        user.chars().all(|c| ":*!@".contains(c)) && host.chars().all(is_of_host)
    })
}

/// A text without the variables of a chat.
fn without_variables(text: &str) -> String {
    let (mut bare, mut rest) = (String::new(), text);
    while let Some((before, braced)) = rest.split_once('{') {
        bare.push_str(before);
        let variable = braced.split_once('}').filter(|(word, _)| ChatVariable::is_word(word));
        rest = variable.map_or(braced, |(_, after)| after);
        if variable.is_none() {
            bare.push('{');
        }
    }
    bare + rest
}

//! Tokens and API secrets: written as themselves, or read from an environment variable or a file.

use std::collections::BTreeSet;
use std::io;

use throng_observation::masked::HIDDEN;
use throng_protocol::factory::ApiSecret;
use throng_scenario::{ApiKey, Secret, TokenSource, masked_override, names_a_secret};
use toml::{Table, Value};

use crate::console::CliError;

/// Shorter words are replaced between quotes only.
const WORD_BYTES_MIN: usize = 4;

/// Random bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(bytes)
}

/// 128 random bits, hexadecimal.
pub(crate) fn random_text() -> io::Result<String> {
    let bytes: [u8; 16] = random()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads a secret of the command line: the text itself, `env:NAME` or `file:PATH`.
pub(crate) fn secret(text: &str) -> Result<Secret, CliError> {
    token(&TokenSource::parse(text))
}

/// Reads a token that a scenario names.
pub(crate) fn token(source: &TokenSource) -> Result<Secret, CliError> {
    match source {
        TokenSource::Inline(secret) => Ok(secret.clone()),
        TokenSource::Environment(name) => std::env::var(name).map(Secret::new).map_err(|_| {
            CliError::usage(format!(
                "the environment variable {name}, which holds the token, is not set"
            ))
        }),
        TokenSource::File(path) => {
            std::fs::read_to_string(path).map(|text| Secret::new(text.trim())).map_err(|error| {
                CliError::usage(format!("cannot read the token from {path}: {error}"))
            })
        }
    }
}

/// A `--set` as it was given, or as the variable or file says that it names. A path has no colon.
pub(crate) fn override_text(set: &str) -> Result<String, CliError> {
    flag_text("--set", set)
}

/// The value of a flag of the form `KEY=VALUE` as it was given, or as the variable or file says
/// that it names: such a value has a key, in which no colon is.
pub(crate) fn flag_text(flag: &str, given: &str) -> Result<String, CliError> {
    match TokenSource::parse(given) {
        TokenSource::Inline(_) => Ok(given.to_owned()),
        TokenSource::Environment(name) => std::env::var(&name).map_err(|_| {
            CliError::usage(format!("{flag} env:{name}: this environment variable is not set"))
        }),
        TokenSource::File(path) => std::fs::read_to_string(&path)
            .map(|text| text.trim().to_owned())
            .map_err(|error| CliError::usage(format!("{flag} file:{path}: {error}"))),
    }
}

/// An API key with its secret, from which access tokens are signed.
pub(crate) fn api_secret(api: &ApiKey) -> Result<ApiSecret, CliError> {
    Ok(ApiSecret { key: api.key.clone(), secret: token(&api.secret)?, room: api.room.clone() })
}

/// `text`, which repeats words of the command line, without the secrets among them: values of flags
/// and overrides with a secret's name, also in the next word, and parts of URLs.
pub(crate) fn hidden_in(text: &str, words: impl Iterator<Item = String>) -> String {
    let mut shown = text.to_owned();
    let mut is_value = false;
    for word in words {
        let is_name = names_a_secret(&word) && !word.contains('=') && !word.contains("://");
        let masked = if is_value && !word.starts_with("--") {
            HIDDEN.to_owned()
        } else {
            masked_override(&word)
        };
        if masked != word {
            // clap shows a word in quotes, and of `--flag=value` the value alone.
            let (value, instead) = match (word.split_once('='), masked.split_once('=')) {
                (Some((_, value)), Some((_, instead))) => (value, instead),
                (Some(_) | None, _) => (word.as_str(), masked.as_str()),
            };
            shown = shown.replace(&format!("'{value}'"), &format!("'{instead}'"));
            // A shorter one may be a part of any word.
            if word.len() >= WORD_BYTES_MIN {
                shown = shown.replace(&word, &masked);
            }
        }
        // A secret with spaces that was not quoted is several words.
        is_value = is_name || (is_value && !word.starts_with('-'));
    }
    shown
}

/// The text of a token that a scenario may name.
pub(crate) fn token_text(source: Option<&TokenSource>) -> Result<Option<String>, CliError> {
    Ok(source.map(token).transpose()?.map(|token| token.expose().to_owned()))
}

/// The secrets that a scenario, as it writes itself, names by reference: `env:NAME` and
/// `file:PATH`. It is read as TOML, whose quotes are others around text with `"`, `\` and line
/// ends.
///
/// # Errors
/// When it is no TOML: then nobody knows what it names.
pub(crate) fn references(said: &str) -> Result<BTreeSet<String>, String> {
    let file = said.parse::<Table>().map_err(|error| {
        format!("the secrets that the scenario names are not known: {}", error.message())
    })?;
    let mut all = BTreeSet::new();
    file.values().for_each(|value| collect_references(value, &mut all));
    Ok(all)
}

/// Keys are names of throng or of HTTP headers, and no reference.
fn collect_references(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !matches!(TokenSource::parse(text), TokenSource::Inline(_)) => {
            all.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, all)),
        Value::Table(table) => table.values().for_each(|value| collect_references(value, all)),
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_command_line_has_no_secret() {
        for (words, text, shown) in [
            (&["view", "--token", "S3CRET", "x y"][..], "unexpected 'S3CRET'", "unexpected '…'"),
            (&["--set", "target.token", "S3CRET"][..], "unexpected 'S3CRET'", "unexpected '…'"),
            (&["--tokenn=S3CRET"][..], "no '--tokenn=S3CRET'", "no '--tokenn=…'"),
            (&["--consent-secret=S3CRET"][..], "invalid 'S3CRET'", "invalid '…'"),
            (&["http://a:S3CRET@h/"][..], "no 'http://a:S3CRET@h/'", "no 'http://…@h/'"),
            (&["--token", "two", "S3CRET"][..], "unexpected 'S3CRET'", "unexpected '…'"),
            (&["-n", "x"][..], "invalid value 'x' for '-n <N>'", "invalid value 'x' for '-n <N>'"),
        ] {
            assert_eq!(hidden_in(text, words.iter().map(|word| (*word).to_owned())), shown);
        }
    }

    #[test]
    fn a_reference_is_found_in_whatever_quotes_it_stands() {
        let names = ["env:A", r"env:A\B", "env:A\"B", "file:/a'b\"c", "env:A\nB", "file:a\tb"];
        let table = |name: &str| Table::from_iter([("token".to_owned(), Value::from(name))]);
        for name in names {
            let token = table(name);
            let mut file = Table::from_iter([("target".to_owned(), Value::Table(token.clone()))]);
            let expect = BTreeSet::from([name.to_owned()]);
            assert_eq!(references(&file.to_string()).unwrap(), expect, "{name}");
            let others = vec![Value::Table(token), Value::from("file:other"), Value::from(1)];
            file = Table::from_iter([("crowd".to_owned(), Value::Array(others))]);
            let expect = BTreeSet::from([name.to_owned(), "file:other".to_owned()]);
            assert_eq!(references(&file.to_string()).unwrap(), expect, "{name}");
        }
        let none = "a = \"an env:A\"\n[b]\n\"env:C\" = 1\n";
        assert!(references(none).unwrap().is_empty());
        assert!(references("a = \"env:A\nb = 1\n").is_err(), "it is not known what it names");
    }

    #[test]
    fn random_texts_differ() {
        let [one, other] = [(), ()].map(|()| random_text().unwrap());
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn an_override_may_be_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "target.token=S3CRET\n").unwrap();
        let named = format!("file:{}", file.path().display());
        assert_eq!(override_text(&named).ok().as_deref(), Some("target.token=S3CRET"));
        assert_eq!(override_text("crowd.size=5").ok().as_deref(), Some("crowd.size=5"));
        assert_eq!(flag_text("--watch", &named).ok().as_deref(), Some("target.token=S3CRET"));
        let missing = flag_text("--watch", "env:THRONG_TEST_NO_SUCH_SET").unwrap_err();
        assert!(missing.error.to_string().starts_with("--watch env:"), "{}", missing.error);
        let missing = override_text("env:THRONG_TEST_NO_SUCH_SET").unwrap_err();
        assert!(missing.error.to_string().contains("THRONG_TEST_NO_SUCH_SET"));
    }
}

//! Tokens and API secrets: written as themselves, or read from an environment variable or a file.

use std::io::Read;

use throng_protocol::factory::ApiSecret;
use throng_scenario::{ApiKey, Secret, TokenSource};

use crate::CliError;

/// Random bytes from the kernel.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
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

/// An API key with its secret, from which access tokens are signed.
pub(crate) fn api_secret(api: &ApiKey) -> Result<ApiSecret, CliError> {
    Ok(ApiSecret { key: api.key.clone(), secret: token(&api.secret)?, room: api.room.clone() })
}

/// The text of a token that a scenario may name.
pub(crate) fn token_text(source: Option<&TokenSource>) -> Result<Option<String>, CliError> {
    Ok(source.map(token).transpose()?.map(|token| token.expose().to_owned()))
}

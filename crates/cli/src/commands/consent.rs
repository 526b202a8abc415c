//! `throng consent`: makes the two halves of a consent proof. The tester keeps the secret; the
//! owner publishes the file, which holds the terms sealed with that secret and is valid for no
//! other tester.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use throng_observation::shell;
use throng_scenario::consent::WELL_KNOWN_PATH;
use throng_scenario::{ConsentProof, ConsentSecret, Target};

use crate::args::Consent;
use crate::console::{CliError, Exit, print, say_lines};
use crate::secrets;

/// Makes both halves, or none.
pub(crate) fn make(command: &Consent) -> Result<Exit, CliError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let secret = secrets::random()
        .map(ConsentSecret::new)
        .map_err(|error| CliError::usage(format!("no secret can be made: {error}")))?;
    let target = target(&command.target);
    let published =
        ConsentProof::sealed(&terms(command, &target)?, &secret, now).map_err(CliError::usage)?;
    keep(&command.secret, &secret)?;
    if let Some(path) = &command.output {
        std::fs::write(path, &published).map_err(|error| {
            // A secret without its file is useless, and would block the next attempt.
            let _ = std::fs::remove_file(&command.secret);
            CliError::usage(format!("{}: {error}", path.display()))
        })?;
    } else {
        print(&published);
    }
    let (file, host) =
        (command.secret.display(), target.rsplit_once(':').map_or(&*target, |(host, _)| host));
    let what = command
        .output
        .as_ref()
        .map_or("the text above".to_owned(), |path| path.display().to_string());
    let mut named = OsString::from("file:");
    named.push(&command.secret);
    let flag = shell::flag("--consent-secret", named);
    say_lines(&format!(
        "the owner publishes {what}\n  as http(s)://{target}{WELL_KNOWN_PATH}, or at ports 443 or \
         80 of {host},\n  at each address that {host} points to; {file} is the secret: keep it, \
         and never publish it.\n  The test then runs with {flag}"
    ));
    Ok(Exit::Met)
}

/// Host and port of a target's URL; any other text unchanged.
fn target(text: &str) -> String {
    let parsed = text.contains("://").then(|| Target::parse(text).ok()).flatten();
    let Some((host, port)) = parsed.map(|target| target.host_and_port()) else {
        return text.to_owned();
    };
    format!("{host}:{port}")
}

/// The terms, as they will be published.
fn terms(command: &Consent, target: &str) -> Result<String, CliError> {
    let Consent { tester, expires, max_users, max_bit_rate, max_joins, max_duration, .. } = command;
    let (users, target) = (max_users.to_string(), target.to_owned());
    let ports = [("ports", command.ports.as_ref()), ("media_ports", command.media_ports.as_ref())];
    let limits = [
        ("max_users", Some(&users)),
        ("max_bit_rate", Some(max_bit_rate)),
        ("max_joins", max_joins.as_ref()),
        ("max_duration", max_duration.as_ref()),
    ];
    let all = [("tester", Some(tester)), ("target", Some(&target)), ("expires", Some(expires))]
        .into_iter()
        .chain(ports)
        .chain(limits)
        .filter_map(|(key, value)| Some((key, value?)))
        .map(|(key, value)| {
            // These end a value in the file, so the sealed terms would not be those that were
            // typed.
            if value.contains(['#', ';', '\n']) {
                return Err(CliError::usage(format!(
                    "{key} must hold no `#`, no `;` and no line end"
                )));
            }
            Ok(format!("{key} = {value}\n"))
        });
    all.collect()
}

/// Writes the secret, readable to its owner only. An existing file is kept: its proof may be
/// published.
fn keep(path: &Path, secret: &ConsentSecret) -> Result<(), CliError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.and_then(|mut file| writeln!(file, "{}", secret.expose())).map_err(|error| {
        let help = "name another file with --secret, or remove that one if no test needs it";
        CliError::usage(format!("the secret cannot be kept in {}: {error}; {help}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_targets_url_stands_for_its_host_and_port() {
        for (text, expect) in [
            ("media.example.org:3333", "media.example.org:3333"),
            ("janus+ws://media.example.org:8188/streaming/1", "media.example.org:8188"),
            ("whep+https://media.example.org/whep", "media.example.org:443"),
            ("whep+http://[2001:db8::1]:7080/whep", "[2001:db8::1]:7080"),
        ] {
            assert_eq!(target(text), expect);
        }
    }
}

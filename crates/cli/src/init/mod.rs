//! `throng init`: looks which protocol answers at a URL and what it offers, and writes a scenario
//! for it.
//!
//! ```text
//! URL -> look: what answers? -> play: one viewer for 4 s -> text: the scenario
//! ```

mod file;
mod follow;
mod look;
mod play;
mod played;
mod text;

use throng_observation::{RefusalKind, units, untrusted};
use throng_protocol::recognition::{Access, Found, Given, Tried};
use throng_scenario::{Carriage, Part};

use self::played::Played;
use crate::args::Init;
use crate::console::{CliError, Exit, Interrupt, print, say};
use crate::secrets;

/// Looks, plays, writes.
pub(crate) fn init(command: &Init) -> Result<Exit, CliError> {
    let given = Given::parse(&command.url).map_err(CliError::usage)?;
    check_token(command)?;
    file::check(command)?;
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let tried = look::look(&given, command, &interrupt)?;
    let recognised = tried.iter().rev().find_map(|tried| tried.found.clone());
    let is_recognised = recognised.is_some();
    // A name of the user's is believed where a viewer can show that it is right.
    let Some(mut found) = recognised.or_else(|| given.named()) else {
        return Err(unknown(&tried));
    };
    let play = || play::play(&found, command, &interrupt);
    let played = may_play(&found, command).then(play).transpose()?;
    found.access = access(&found, played.as_ref());
    let has_played = played.as_ref().is_some_and(|played| played.failure.is_none());
    let is_refused = played.as_ref().and_then(refusal) == Some(RefusalKind::Credentials);
    if !is_recognised && !has_played && !is_refused {
        tell_played(played.as_ref());
        return Err(unknown(&tried));
    }
    follow::go_on(&interrupt)?;
    tell(&found, played.as_ref(), command);
    let text = text::scenario(&found, played.as_ref(), command);
    if command.output.as_os_str() == "-" {
        print(&text);
        return Ok(Exit::Met);
    }
    file::write(command, &text)?;
    let (shown, played_by) = (text::file(command), text::file_and_flags(command));
    say(&format!("wrote     {shown}; next: throng check {shown}, throng run {played_by}"));
    Ok(Exit::Met)
}

/// A token in the file would be read by whoever gets the file.
fn check_token(command: &Init) -> Result<(), CliError> {
    let Some(token) = &command.token else { return Ok(()) };
    if !token.starts_with("env:") && !token.starts_with("file:") {
        let why = "--token: the scenario would have it in clear: give env:NAME or file:PATH";
        return Err(CliError::usage(why));
    }
    secrets::secret(token).map(drop)
}

/// Whether one viewer may be played: it needs nothing that is not there, and nobody else sees it,
/// as those of a conference or chat would.
fn may_play(found: &Found, command: &Init) -> bool {
    let has_access = match found.access {
        // An account is in the URL, if anywhere.
        Access::Open | Access::Account => true,
        Access::Token => command.token.is_some(),
        Access::ApiKey => false,
    };
    let is_alone = found.protocol.part() == Part::Watch;
    is_alone && has_access && found.to_name.is_none() && !command.no_play
}

/// What the server asks of who comes, once a viewer came: one that it refused for its credentials,
/// or one that played with those that the URL has.
fn access(found: &Found, played: Option<&Played>) -> Access {
    let Some(played) = played else { return found.access };
    match refusal(played) {
        Some(RefusalKind::Credentials) if found.protocol.carriage() == Carriage::Rtsp => {
            Access::Account
        }
        Some(RefusalKind::Credentials) => Access::Token,
        None if played.failure.is_none() && found.access == Access::Account => Access::Open,
        Some(_) | None => found.access,
    }
}

/// How the server refused the viewer, if it did.
fn refusal(played: &Played) -> Option<RefusalKind> {
    played.failure.as_ref().and_then(|failure| failure.reason.refusal())
}

/// What was seen.
fn tell(found: &Found, played: Option<&Played>, command: &Init) {
    let server = found.server.as_ref().map(|server| format!(", {server}")).unwrap_or_default();
    say(&format!("found     {}{server}", found.protocol.name()));
    text::offers(found).for_each(|offer| say(&format!("offers    {offer}")));
    tell_played(played);
    if let Some(what) = text::asks(found, command) {
        say(&format!("asks      {what}"));
    }
    if let Some(what) = found.to_name {
        say(&format!("to name   {what}"));
    }
}

fn tell_played(played: Option<&Played>) {
    let Some(played) = played else { return };
    match &played.failure {
        Some(failure) => {
            let (key, detail) = (failure.reason.key(), failure.detail.to_string());
            say(&format!("played    one viewer, which failed: {key}, {detail}"));
        }
        None => {
            let all = played.in_words();
            let time = units::duration(play::LASTS);
            say(&format!("played    one viewer for {time}: {}", all.join("; ")));
        }
    }
}

/// The error where no protocol is known of what answers.
fn unknown(tried: &[Tried]) -> CliError {
    let mut lines = vec!["no protocol that throng knows answers there; tried:".to_owned()];
    lines.extend(tried.iter().map(|Tried { kind, asked, answered, .. }| {
        format!("  {kind}: {}: {}", untrusted::line(asked), untrusted::line(answered))
    }));
    lines.push(
        "write the URL of what is watched, or one that names its protocol: `throng init --help`"
            .to_owned(),
    );
    CliError::target(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use throng_observation::{Failure, FailureReason};

    use super::*;

    #[test]
    fn a_server_that_let_a_viewer_in_asks_for_nothing_more() {
        let url = "rtsp://ada:secret@h/cam";
        let named = Given::parse(url).unwrap().named().unwrap();
        let camera = Found { access: Access::Account, ..named };
        let refused = |reason| {
            let mut played = Played::default();
            played.failure = Some(Failure::new(reason, "refused"));
            played
        };
        for (played, expect) in [
            (None, Access::Account),
            (Some(Played::default()), Access::Open),
            (Some(refused(FailureReason::RtspStatus(401))), Access::Account),
            (Some(refused(FailureReason::Tcp)), Access::Account),
        ] {
            assert_eq!(access(&camera, played.as_ref()), expect, "{played:?}");
        }
        // The token is that of the command line, which the scenario names.
        let whep = Given::parse("whep+http://h/whep").unwrap().named().unwrap();
        let whep = Found { access: Access::Token, ..whep };
        assert_eq!(access(&whep, Some(&Played::default())), Access::Token);
    }
}

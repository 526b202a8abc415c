//! The scenario that `throng init` writes: the target as it was found, a crowd of ten, objectives
//! that fit the protocol, and comments that say what to change.

use std::fmt::Write as _;

use throng_observation::{MediaKind, shell, untrusted};
use throng_protocol::recognition::{Access, Found};
use throng_scenario::{Carriage, Part, Protocol, TokenSource, units};

use super::played::Played;
use crate::args::Init;

/// The environment variables that hold what is not written into the file.
const TOKEN: &str = "env:THRONG_TOKEN";
const API_SECRET: &str = "env:LIVEKIT_API_SECRET";
const CONSENT_SECRET: &str = "env:THRONG_CONSENT_SECRET";

/// The scenario of what was found; `played`: what one viewer received.
pub(super) fn scenario(found: &Found, played: Option<&Played>, command: &Init) -> String {
    let parts = [
        head(found, played, command),
        objectives(found, played),
        format!("{}{}", target(&found.url, found.to_name, command), access(found, command)),
        crowd(found).to_owned(),
        run(found).to_owned(),
        played.map(stream).unwrap_or_default(),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The file, as a word of the commands that come next.
pub(super) fn file(command: &Init) -> String {
    if command.output.as_os_str() == "-" { "FILE".to_owned() } else { shell::path(&command.output) }
}

/// The same with the flags without which the server does not get its load: no scenario has them. A
/// secret that is not named elsewhere is not repeated.
pub(super) fn file_and_flags(command: &Init) -> String {
    let tls_ca = command.tls_ca.as_ref().map(|file| shell::flag("--tls-ca", file));
    let secret = command.consent_secret.as_deref().map(|secret| match TokenSource::parse(secret) {
        TokenSource::Environment(_) | TokenSource::File(_) => secret,
        TokenSource::Inline(_) => CONSENT_SECRET,
    });
    let secret = secret.map(|secret| shell::flag("--consent-secret", secret));
    let words = [Some(file(command)), tls_ca, secret];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The first lines: the schema for editors, and what was seen.
fn head(found: &Found, played: Option<&Played>, command: &Init) -> String {
    let (file, played_by) = (file(command), file_and_flags(command));
    let mut text = String::from("#:schema scenario.schema.json\n");
    let mut line = |words: &str| {
        let _ = writeln!(text, "# {}", untrusted::line(words).trim_end());
    };
    line(&format!("{}, as `throng init` found it.", found.protocol.name()));
    found.server.iter().for_each(|server| line(&format!("Server: {server}")));
    offers(found).for_each(|offer| line(&format!("Offers: {offer}")));
    let arrived = played.filter(|played| played.failure.is_none()).map(Played::in_words);
    arrived.iter().flatten().for_each(|kind| line(&format!("Received: {kind}")));
    line("");
    line(&format!("  throng check {file}"));
    line(&format!("  throng run {played_by}"));
    line(&format!("  throng find {played_by}"));
    line("");
    line(
        "All keys: docs/scenario.md. The first line is for editors, which then know all keys too:",
    );
    line("throng schema scenario > scenario.schema.json");
    text.replace("# \n", "#\n")
}

/// What the server offers, and whether it goes on.
pub(super) fn offers(found: &Found) -> impl Iterator<Item = &str> {
    let is_live = found.is_live.map(|live| if live { "a live stream" } else { "a recording" });
    found.offers.iter().map(String::as_str).chain(is_live)
}

fn objectives(found: &Found, played: Option<&Played>) -> String {
    let of_sound = played.is_some_and(Played::is_audio_only);
    let of_live = found.is_live == Some(true);
    let all: &[&str] = match (found.protocol.part(), found.protocol.carriage()) {
        (Part::Chat, _) => &["chat.delivery p95 < 1s", "chat.missing < 0.1%"],
        (Part::Publish, _) => &["connect p99 < 3s"],
        (Part::Watch | Part::Visit, Carriage::Http) if of_live => {
            &["startup p95 < 3s", "stall_ratio p95 < 1%", "latency p95 < 30s"]
        }
        (Part::Watch | Part::Visit, Carriage::Http) => {
            &["startup p95 < 3s", "stall_ratio p95 < 1%"]
        }
        (Part::Watch | Part::Visit | Part::Confer, _) if of_sound => {
            &["first_frame p95 < 4s", "audio.loss p95 < 1%"]
        }
        (Part::Watch | Part::Visit | Part::Confer, Carriage::Rtsp) => {
            &["first_frame p95 < 4s", "video.loss p95 < 1%", "video.freeze p95 < 2%"]
        }
        (Part::Watch | Part::Visit, Carriage::WebRtc | Carriage::Ingest | Carriage::Nothing)
        | (Part::Confer, _) => {
            &["connect p99 < 3s", "video.loss p95 < 1%", "video.delay p95 < 400ms"]
        }
    };
    let lines = std::iter::once(&"failed < 1%").chain(all);
    let lines: String = lines.map(|objective| format!("    \"{objective}\",\n")).collect();
    format!(
        "# What users must have: `throng run` exits with 0 if all is met, with 1 if something is \
         missed.\nobjectives = [\n{lines}]\n"
    )
}

/// `[target]` without what gives access.
pub(super) fn target(url: &str, to_name: Option<&str>, command: &Init) -> String {
    let mut text = String::from("[target]\n");
    if let Some(what) = to_name {
        let _ = writeln!(text, "# CHANGE: {what}.");
    }
    let _ = writeln!(text, "url = {}", quoted(url));
    if !command.allow_target.is_empty() {
        let all: Vec<String> = command.allow_target.iter().map(|network| quoted(network)).collect();
        let _ =
            writeln!(text, "# Private networks that may get load.\nallow = [{}]", all.join(", "));
    }
    if command.tls_insecure {
        text.push_str("tls_insecure = true\n");
    }
    text
}

/// The keys of `[target]` that give access.
fn access(found: &Found, command: &Init) -> String {
    let asked = asks(found, command).map(|what| format!("# The server asks for {what}.\n"));
    let asked = asked.unwrap_or_default();
    let keys = match (&command.token, found.access) {
        (Some(token), _) => format!("token = {}\n", quoted(token)),
        (None, Access::Token) => format!("token = \"{TOKEN}\"\n"),
        (None, Access::ApiKey) => {
            format!("api_key = \"KEY\"\napi_secret = \"{API_SECRET}\"\n")
        }
        (None, Access::Account | Access::Open) => String::new(),
    };
    format!("{asked}{keys}")
}

/// What the server asks for, and where it is written.
pub(super) fn asks(found: &Found, command: &Init) -> Option<String> {
    let token = command.token.as_deref().unwrap_or(TOKEN);
    match found.access {
        Access::Open => None,
        Access::Token => Some(format!("a token; the scenario reads it from {token}")),
        Access::ApiKey => Some(format!(
            "a token of an API key; write the key, its secret is read from {API_SECRET}"
        )),
        Access::Account => {
            let scheme = found.url.split("://").next().unwrap_or_default();
            Some(format!("user name and password; write {scheme}://USER:PASSWORD@… as the URL"))
        }
    }
}

fn crowd(found: &Found) -> &'static str {
    match (found.protocol.part(), found.protocol) {
        (Part::Watch | Part::Visit, _) => concat!(
            "# Ten viewers, one each 200 ms. More of them: `--set crowd.size=100`; `throng find`\n",
            "# looks for the largest crowd that is served well.\n",
            "[crowd]\nsize = 10\narrival = { every = \"200ms\" }\n",
        ),
        (Part::Publish, _) => concat!(
            "# Ten publishers, one a second. Most servers take one at a path: write {n} into the\n",
            "# URL, so that each has a path of its own.\n",
            "[crowd]\nname = \"publishers\"\nsize = 10\narrival = { every = \"1s\" }\n",
            "publish = { video = \"360p\", codec = \"h264\", audio = true }\n",
            "subscribe = \"none\"\n",
        ),
        (Part::Confer, Protocol::JanusVideoRoom) => concat!(
            "# Ten members, one a second, who all send and receive. The room must have place for\n",
            "# ten publishers.\n",
            "[crowd]\nname = \"members\"\nsize = 10\narrival = { every = \"1s\" }\n",
            "publish = { video = \"240p\", audio = true }\nsubscribe = \"all\"\n",
        ),
        (Part::Confer, _) => concat!(
            "# Ten members, one a second, who all send and receive.\n",
            "[crowd]\nname = \"members\"\nsize = 10\narrival = { every = \"1s\" }\n",
            "publish = { video = \"240p\", audio = true }\nsubscribe = \"all\"\n",
        ),
        (Part::Chat, _) => concat!(
            "# Ten people, one each 200 ms; each says something every ten seconds.\n",
            "[crowd]\nsize = 10\narrival = { every = \"200ms\" }\nchat = { every = \"10s\" }\n",
        ),
    }
}

fn run(found: &Found) -> &'static str {
    match found.protocol.part() {
        Part::Confer | Part::Publish => concat!(
            "[run]\n# From the first join until all leave.\nduration = \"60s\"\n",
            "# The beginning, in which the crowd joins: its media do not count.\n",
            "warm_up = \"20s\"\n",
        ),
        Part::Watch | Part::Visit | Part::Chat => concat!(
            "[run]\n# From the first join until all leave.\nduration = \"60s\"\n",
            "# The beginning, in which the crowd joins: its media do not count.\n",
            "warm_up = \"10s\"\n",
        ),
    }
}

/// What one viewer receives, for the plan and its caps.
fn stream(played: &Played) -> String {
    let rate = |kind: MediaKind| {
        // Two digits are enough of what varies.
        let bps = played.bits_per_s(kind)?;
        let scale = 10_f64.powf(bps.log10().floor() - 1.0);
        let rounded = (bps / scale).round() * scale;
        Some(format!("{} = \"{}\"\n", kind.key(), units::write_bit_rate(rounded.round())))
    };
    let rates: String = [MediaKind::Video, MediaKind::Audio].into_iter().filter_map(rate).collect();
    if rates.is_empty() {
        return rates;
    }
    format!(
        "# What one viewer received, for the plan that `throng check` prints.\n[stream]\n{rates}"
    )
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;

//! Writes a scenario as TOML: defaults written out, secrets redacted.

use super::{Duration, File, OneOrMany, TargetFile, watch};
use crate::keys::{NameOf, Table};
use crate::scenario::Scenario;
use crate::target::{IceTransportPolicy, RtspTransport};
use crate::units::write_duration;

impl Scenario {
    /// The scenario as TOML, with defaults and overrides, secrets redacted (`…`).
    #[must_use]
    pub fn to_toml(&self) -> String {
        // A tree of text, numbers and tables: serialisation does not fail.
        toml::to_string(&file(self)).unwrap_or_default()
    }
}

fn file(scenario: &Scenario) -> File {
    let Scenario {
        target,
        crowd,
        run,
        stream,
        conversation,
        room,
        watch,
        tap,
        canary,
        objectives,
        output,
        caps,
        source: _,
    } = scenario;
    File {
        objectives: objectives.iter().map(|objective| objective.text.clone()).collect(),
        target: TargetFile {
            url: target.display(),
            token: target.token.as_ref().map(ToString::to_string),
            api_key: target.api_key.as_ref().map(|api| api.key.clone()),
            api_secret: target.api_key.as_ref().map(|api| api.secret.to_string()),
            room: target.api_key.as_ref().and_then(|api| api.room.clone()),
            rooms: (target.rooms > 1).then_some(target.rooms),
            allow: target.allow.iter().map(ToString::to_string).collect(),
            tls_insecure: target.tls_insecure,
            ice_transport_policy: (target.ice_transport_policy != IceTransportPolicy::All
                || target.endpoint.asks_for_relay())
            .then_some(NameOf(target.ice_transport_policy)),
            stun: target.stun.as_ref().map(ToString::to_string),
            turn: target.turn.as_ref().map(|turn| turn.uri.clone()),
            turn_username: target.turn.as_ref().map(|turn| turn.username.clone()),
            turn_password: target.turn.as_ref().map(|turn| turn.password.to_string()),
            rtsp_transport: (target.rtsp_transport != RtspTransport::Auto)
                .then_some(NameOf(target.rtsp_transport)),
        },
        crowd: match crowd.as_slice() {
            [only] => OneOrMany::One(Table::of(only)),
            several => OneOrMany::Many(several.iter().map(Table::of).collect()),
        },
        run: Table::of(run),
        stream: Table::of(stream),
        conversation: conversation.as_ref().map(Table::of),
        room: room.as_ref().map(Table::of),
        watch: watch.iter().map(watch::watch_file).collect(),
        tap: tap.as_ref().map(Table::of),
        canary: canary.as_ref().map(Table::of),
        output: Table::of(output),
        caps: Table::of(caps),
    }
}

pub(crate) fn duration(duration: std::time::Duration) -> Duration {
    Duration(write_duration(duration))
}

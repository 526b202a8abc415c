//! Writes a scenario as TOML: defaults written out, secrets redacted.

use super::{
    ArrivalFile, AudioFile, BurstFile, BurstsFile, CohortFile, Duration, EveryFile, File, Layer,
    LayerStep, LayersFile, Nothing, OneOrMany, PoissonArrivalFile, PoissonFile, PublishFile,
    PublishTable, RampFile, Rate, StayFile, StayTable, SubscribeFile, SubscribeTable, TargetFile,
    Whom, conference, streams, watch,
};
use crate::arrival::{ArrivalKind, Every, Ramp};
use crate::chat::ChatConfig;
use crate::churn::StayTime;
use crate::keys::{NameOf, Table};
use crate::player::PlayerConfig;
use crate::role::{Role, SubscribePolicy, Subscription};
use crate::scenario::{Cohort, Scenario};
use crate::target::{IceTransportPolicy, RtspTransport, Target};
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
            [only] => OneOrMany::One(cohort(only)),
            several => OneOrMany::Many(several.iter().map(cohort).collect()),
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

fn cohort(cohort: &Cohort) -> CohortFile {
    let Cohort {
        name,
        size,
        arrival: joins,
        starts_at,
        stay,
        source_ips,
        streams,
        target,
        role,
        reconnect,
    } = cohort;
    let role = role.as_ref();
    CohortFile {
        name: Some(name.clone()),
        size: *size,
        arrival: Some(arrival(joins)),
        starts_at: (!starts_at.is_zero()).then(|| duration(*starts_at)),
        stay: stay.map(|stay| {
            if let (StayTime::Constant(time), false) = (stay.time, stay.rejoin) {
                return StayFile::Short(duration(time));
            }
            let (exactly, mean, seed) = match stay.time {
                StayTime::Constant(time) => (Some(duration(time)), None, None),
                StayTime::Exponential { mean, seed } => (None, Some(duration(mean)), Some(seed)),
            };
            StayFile::Table(StayTable { exactly, mean, seed, rejoin: stay.rejoin })
        }),
        source_ips: source_ips.iter().map(ToString::to_string).collect(),
        url: target.as_ref().map(Target::display),
        streams: streams.as_ref().map(streams::streams),
        publish: member(cohort).map(publish),
        subscribe: member(cohort).map(|role| {
            let Subscription { video, audio } = role.subscribe;
            if video == audio {
                return SubscribeFile::Word(whom(video));
            }
            let (video, audio) = (Some(whom(video)), Some(whom(audio)));
            SubscribeFile::Table(SubscribeTable { video, audio })
        }),
        connection_per_feed: role.is_some_and(|role| role.connection_per_feed),
        layers: role.filter(|role| !role.layers.is_empty()).map(layers),
        speaking_weight: role
            .map(|role| role.speaking_weight)
            .filter(|speaking_weight| *speaking_weight != 1),
        script: role
            .into_iter()
            .flat_map(|role| &role.script)
            .map(conference::script_step)
            .collect(),
        player: role
            .filter(|role| role.player != PlayerConfig::default())
            .map(|role| Table::of(&role.player)),
        chat: role
            .filter(|role| role.chat != ChatConfig::default())
            .map(|role| Table::of(&role.chat)),
        reconnect: reconnect.as_ref().map(Table::of),
    }
}

fn arrival(arrival: &ArrivalKind) -> ArrivalFile {
    match arrival {
        ArrivalKind::Every(Every { interval, jitter }) => ArrivalFile::Every(EveryFile {
            every: duration(*interval),
            jitter: jitter.is_some(),
            seed: jitter.map(|jitter| jitter.seed),
        }),
        ArrivalKind::Ramp(Ramp { over, jitter }) => ArrivalFile::Ramp(RampFile {
            ramp: duration(*over),
            jitter: jitter.is_some(),
            seed: jitter.map(|jitter| jitter.seed),
        }),
        ArrivalKind::Burst(burst) => ArrivalFile::Burst(BurstsFile {
            burst: BurstFile { size: burst.size, every: duration(burst.every) },
        }),
        ArrivalKind::Poisson(poisson) => ArrivalFile::Poisson(PoissonArrivalFile {
            poisson: PoissonFile {
                rate: Rate(format!("{}/s", poisson.rate_per_s)),
                seed: Some(poisson.seed),
            },
        }),
    }
}

/// The role of a cohort that sends or subscribes otherwise than by default.
fn member(cohort: &Cohort) -> Option<&Role> {
    let role = cohort.role.as_ref()?;
    let viewer = Role { player: role.player.clone(), chat: role.chat.clone(), ..Role::default() };
    let is_usual = role.player == PlayerConfig::default() && role.chat == ChatConfig::default();
    (is_usual || *role != viewer).then_some(role)
}

fn layers(role: &Role) -> LayersFile {
    let layer = |layer: throng_observation::Layer| match layer {
        throng_observation::Layer::Off => Layer::Off,
        throng_observation::Layer::Low => Layer::Low,
        throng_observation::Layer::Medium => Layer::Medium,
        throng_observation::Layer::High => Layer::High,
    };
    match role.layers.as_slice() {
        [only] if only.after.is_zero() => LayersFile::Word(layer(only.layer)),
        steps => {
            let step = |request: &crate::role::LayerRequest| LayerStep {
                after: Some(duration(request.after)),
                layer: layer(request.layer),
            };
            LayersFile::Script(steps.iter().map(step).collect())
        }
    }
}

fn publish(role: &Role) -> PublishFile {
    let Some(publish) = &role.publish else { return PublishFile::Word(Nothing::None) };
    let mut table = PublishTable {
        video: publish.video.clone(),
        simulcast: publish.simulcast.clone(),
        audio: Some(AudioFile::Speech(publish.audio)),
        adapt: (!publish.adapts).then_some(false),
        burn_clock: publish.burns_clock.then_some(true),
        ..PublishTable::default()
    };
    if publish.video.is_some() || !publish.simulcast.is_empty() {
        table.codec = Some(publish.codec.name().to_ascii_lowercase());
    }
    if let Some(file) = &publish.video_file {
        table.video = Some(file.path.clone());
        table.codec = file.codec.map(|codec| codec.name().to_owned());
        table.fps = file.fps_milli.map(|milli| f64::from(milli) / 1e3);
        table.ssrc = file.ssrc;
    }
    if let Some(file) = &publish.audio_file {
        table.audio = Some(AudioFile::File(file.path.clone()));
        table.audio_ssrc = file.ssrc;
    }
    PublishFile::Table(table)
}

fn whom(subscribe: SubscribePolicy) -> Whom {
    Whom(subscribe.name())
}

pub(super) fn duration(duration: std::time::Duration) -> Duration {
    Duration(write_duration(duration))
}

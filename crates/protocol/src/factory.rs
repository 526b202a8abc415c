//! Creates the participants of a target.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use throng_media::card::Rung;
use throng_media::manifest::PlaylistCache;
use throng_media::quality::WallClock;
use throng_media::source::Clip;
use throng_media::timing::IndexCache;
use throng_observation::run::ParticipantId;
use throng_observation::seed;
use throng_scenario::har::PagePlan;
use throng_scenario::{
    Account, Action, Conversation, Endpoint, IceTransportPolicy, IpProtocol, JanusId, MediaFile,
    Place, PlayerConfig, RecordedPage, Role, RtspTransport, Secret, StunServer, SubscribePolicy,
    TapSelection,
};
use url::{Host, Url};

use crate::chat::RoomLogs;
use crate::composite::Composite;
use crate::ingest::{self, IngestProtocol};
use crate::participant::Participant;
use crate::player::Swarms;
use crate::signalling::janus::SubscriberMode;
use crate::signalling::room::{RoomSignalling, Subscriptions};
use crate::signalling::{RelayServer, RunMark, Signalling, janus, livekit, ome, whep, whip};
use crate::webrtc::member::{Member, MemberOptions};
use crate::webrtc::sender::Ladder;
use crate::webrtc::viewer::Viewer;
use crate::webrtc::{Behaviour, MayReach, ParticipantOptions, StepTimeouts, Weights};
use crate::{peertube, player, rtsp};

mod chat;
mod media;
mod servers;

pub use servers::Servers;

use media::{card_ladder, fed, outgoing, picture, published, sent_layers};

/// Everything that the participants of one target share.
#[derive(Clone)]
pub struct TargetFactory {
    /// The endpoint to join.
    pub endpoint: Endpoint,
    /// Bearer token (WHEP, WHIP, OvenMediaEngine), Janus `token` or LiveKit token, as the scenario
    /// configures it.
    pub token: Option<String>,
    /// LiveKit's API key, which signs a separate token for each participant.
    pub api_key: Option<ApiSecret>,
    /// The consent guard's check of addresses.
    pub may_reach: MayReach,
    /// One reading of both clocks, shared by the whole run.
    pub clock: WallClock,
    /// The addresses of the server. The first one selects the interface on which a viewer that
    /// makes the offer receives; publishers by a process take them in turns.
    pub servers: Servers,
    /// Seed of the run, from which each participant has its identities: session ids, SSRCs, names
    /// among peers. What participants do is by the seeds of the scenario.
    pub seed: u64,
    /// How long each step of a session may take.
    pub timeouts: StepTimeouts,
    /// The participants whose coded frames are reported.
    pub tapped: TapSelection,
    /// What the participants of a conference share.
    pub conference: ConferenceConfig,
    /// The suffix that distinguishes the run's names from those of other runs in the same room.
    pub mark: RunMark,
    /// Whether media may use all candidates, or relayed ones only.
    pub ice_transport_policy: IceTransportPolicy,
    /// The STUN server that participants ask for a server-reflexive candidate.
    pub stun: Option<StunServer>,
    /// The TURN server that participants use, with the password that the scenario configures.
    pub turn: Option<RelayServer>,
    /// The transport of RTP on RTSP.
    pub rtsp_transport: RtspTransport,
    /// The indexes of files that several viewers play over HTTP, each kept once.
    pub indexes: IndexCache,
    /// The playlists that several participants receive.
    pub playlists: PlaylistCache,
    /// The viewers that get segments from each other.
    pub swarms: Swarms,
    /// The pages around players, each read once.
    pub pages: Pages,
    /// What is said in the rooms of chats.
    pub rooms: RoomLogs,
}

/// The pages around players, by what the scenario says of them.
pub type Pages = Arc<BTreeMap<RecordedPage, Arc<PagePlan>>>;

/// What the participants of a conference share.
#[derive(Clone, Default)]
pub struct ConferenceConfig {
    /// Which participants talk at which time; `None` if all talk all the time.
    pub conversation: Option<Conversation>,
    /// How often each participant talks; `None` if all talk equally often.
    pub weights: Option<Weights>,
    /// The media files that are played, each read once.
    pub clips: Arc<BTreeMap<MediaFile, Arc<Clip>>>,
    /// The room that the run creates on Janus, if any.
    pub new_room: Option<janus::NewRoom>,
}

/// LiveKit's API key with its secret, as the scenario configures it.
#[derive(Clone, Debug)]
pub struct ApiSecret {
    /// The key's name.
    pub key: String,
    /// Its secret.
    pub secret: Secret,
    /// The room, where the target's URL names none.
    pub room: Option<String>,
}

impl TargetFactory {
    /// Participant `number` of a cohort with `role`, whose intended time is `joins_at` after the
    /// start of the run.
    #[must_use]
    pub fn participant(
        &self,
        number: u32,
        joins_at: Duration,
        role: &Role,
    ) -> Box<dyn Participant> {
        self.participant_at(&self.endpoint.in_room(role.room), number, joins_at, role)
    }

    /// Like [`Self::participant`], at another endpoint on the same host.
    #[must_use]
    pub fn participant_at(
        &self,
        endpoint: &Endpoint,
        number: u32,
        joins_at: Duration,
        role: &Role,
    ) -> Box<dyn Participant> {
        let url = &endpoint.url;
        match &endpoint.place {
            Place::JanusVideoRoom { id, pin } => {
                self.member(number, joins_at, role, |subscriptions| {
                    self.video_room(number, role, subscriptions, (url, id, pin.as_ref()))
                })
            }
            Place::OvenMediaEngine => self.viewer(number, self.ome(url)),
            Place::Janus { id, pin } => self.viewer(number, self.streaming(url, id, pin.as_ref())),
            Place::LiveKit { room } => self.member(number, joins_at, role, |subscriptions| {
                self.livekit(number, role, subscriptions, (url, room))
            }),
            Place::HttpVideo => {
                let player = self.player(number, url, &role.player);
                match role.chat.beside.as_deref() {
                    Some(chat) => {
                        let chat = self.participant_at(chat, number, joins_at, role);
                        Box::new(Composite::new(vec![("player", player), ("chat", chat)]))
                    }
                    None => player,
                }
            }
            Place::PeerTube => self.visitor(number, url, role),
            Place::Rtsp { account } => {
                let config = self.rtsp(endpoint, account.as_ref());
                let (playback, options) = (role.player.script(number), self.options(number));
                Box::new(rtsp::Viewer::with_playback(config, playback, options))
            }
            Place::RtspPublish { account } => {
                let config = self.rtsp(endpoint, account.as_ref());
                let media = published(role, number, &self.conference.clips);
                Box::new(rtsp::Publisher::new(config, media, self.options(number)))
            }
            Place::Rtmp => self.ingest(number, url, IngestProtocol::Rtmp, role),
            Place::Srt => self.ingest(number, url, IngestProtocol::Srt, role),
            Place::Xmpp { domain, room, account } => {
                self.chat_member(number, role, (url, domain, room, account.as_ref()))
            }
            Place::Chat => self.chat_by_template(number, role, endpoint),
            Place::Whep => self.viewer(number, Box::new(whep::Whep::new(self.whep(url)))),
            Place::Whip => self.member(number, joins_at, role, |_| {
                let room =
                    self.api_key.as_ref().and_then(|api| api.room.as_deref()).unwrap_or_default();
                let access = self
                    .api_key
                    .is_some()
                    .then(|| self.access(&publisher_name(number), role, room));
                Box::new(whip::Whip::new(self.whep(url), access))
            }),
        }
    }

    /// The seed of what tells participant `number` from those of this and other runs; its
    /// connections have seeds of it.
    fn identity_seed(&self, number: u32) -> u64 {
        seed::step(self.seed, u64::from(number))
    }

    fn options(&self, number: u32) -> ParticipantOptions {
        ParticipantOptions {
            may_reach: Arc::clone(&self.may_reach),
            clock: self.clock,
            toward: self.servers.first().or_else(|| named_address(&self.endpoint.url)),
            seed: self.identity_seed(number),
            timeouts: self.timeouts,
            is_tapped: self.tapped.holds(number),
            relay_only: self.ice_transport_policy == IceTransportPolicy::Relay,
            stun: self.stun.clone(),
            turn: self.turn.clone(),
        }
    }

    fn member(
        &self,
        number: u32,
        joins_at: Duration,
        role: &Role,
        signalling: impl FnOnce(Subscriptions) -> Box<dyn RoomSignalling>,
    ) -> Box<dyn Participant> {
        let behaviour = self.behaviour(number, joins_at, role);
        let subscriptions = behaviour.subscriptions();
        let options = MemberOptions {
            participant: self.options(number),
            outgoing: outgoing(role, number, &self.conference.clips),
            behaviour,
            layers: role.layers.clone(),
        };
        Box::new(Member::new(signalling(subscriptions), options))
    }

    fn behaviour(&self, number: u32, joins_at: Duration, role: &Role) -> Behaviour {
        let screens = role.script.iter().filter_map(|cue| match &cue.action {
            Action::ScreenShare(size) => Some(size.as_str()),
            Action::Mute(_) => None,
        });
        let usual =
            role.publish.as_ref().and_then(|publish| picture(publish, &self.conference.clips));
        let screens = |usual: &Ladder| -> Vec<Ladder> {
            let card = |size| card_ladder(Rung::from_name(size)?, usual.top().codec());
            screens.map(|size| card(size).unwrap_or_else(|| usual.clone())).collect()
        };
        let pictures = usual.map(|usual| {
            let screens = screens(&usual);
            [vec![usual], screens].concat()
        });
        Behaviour {
            name: member_name(number),
            joins_at,
            conversation: self.conference.conversation,
            weights: self.conference.weights.clone().unwrap_or_else(|| Arc::new(|_| 1)),
            has_voice: role.publish.as_ref().is_some_and(|publish| publish.audio),
            video: role.video,
            audio: role.audio,
            script: role.script.clone(),
            pictures: pictures.unwrap_or_default(),
        }
    }

    fn video_room(
        &self,
        number: u32,
        role: &Role,
        subscriptions: Subscriptions,
        (url, room, pin): (&Url, &JanusId, Option<&Secret>),
    ) -> Box<dyn RoomSignalling> {
        let receives = role.video != SubscribePolicy::None || role.audio != SubscribePolicy::None;
        let way = if role.connection_per_feed {
            SubscriberMode::HandlePerFeed
        } else {
            SubscriberMode::Multistream
        };
        Box::new(janus::VideoRoom::new(janus::VideoRoomConfig {
            url: url.clone(),
            room: room.clone(),
            pin: pin.map(|pin| pin.expose().to_owned()),
            display: member_name(number),
            mark: self.mark.clone(),
            publishes: role.publish.is_some(),
            subscribes: receives.then_some(way),
            subscriptions,
            new_room: self.conference.new_room.clone(),
            session: self.janus_session(),
        }))
    }

    fn janus_session(&self) -> janus::SessionConfig {
        janus::SessionConfig {
            token: self.token.clone(),
            answer_within: self.timeouts.signalling,
            ..janus::SessionConfig::default()
        }
    }

    fn viewer(&self, number: u32, signalling: Box<dyn Signalling>) -> Box<dyn Participant> {
        Box::new(Viewer::new(signalling, self.options(number)))
    }

    fn rtsp(&self, endpoint: &Endpoint, account: Option<&Account>) -> rtsp::Config {
        let credentials = account.map(|account| rtsp::Credentials {
            username: account.name.clone(),
            password: account.password.clone(),
        });
        rtsp::Config {
            url: endpoint.rtsp_url().unwrap_or_else(|| endpoint.url.clone()),
            credentials,
            transport: self.rtsp_transport,
        }
    }

    fn ingest(
        &self,
        number: u32,
        url: &Url,
        protocol: IngestProtocol,
        role: &Role,
    ) -> Box<dyn Participant> {
        let burns_clock = role.publish.as_ref().is_some_and(|publish| publish.burns_clock);
        let mut config = ingest::Config { url: url.clone(), protocol, burns_clock, chosen: None };
        if config.needs_ffmpeg() {
            config.chosen = self.servers.take_turn();
        }
        let media = fed(role, number, &self.conference.clips);
        Box::new(ingest::Publisher::new(config, media, self.options(number)))
    }

    fn player(&self, number: u32, url: &Url, player: &PlayerConfig) -> Box<dyn Participant> {
        Box::new(player::Viewer::new(self.player_config(number, url, player)))
    }

    fn player_config(&self, number: u32, url: &Url, player: &PlayerConfig) -> player::Config {
        player::Config {
            url: url.clone(),
            http: player.http.of(player.seed, number),
            player: player.clone(),
            page: player.recorded_page.as_ref().and_then(|page| {
                let plan = self.pages.get(page)?;
                let is_warm = page.is_warm(player.seed, number);
                Some(player::PageVisit { plan: Arc::clone(plan), is_warm })
            }),
            token: self.token.clone().map(Secret::new),
            may_reach: Arc::clone(&self.may_reach),
            clock: self.clock,
            number,
            identity_seed: self.identity_seed(number),
            head_timeout: self.timeouts.signalling,
            indexes: self.indexes.clone(),
            playlists: self.playlists.clone(),
            swarms: self.swarms.clone(),
        }
    }

    /// A visitor of a watch page, in its chat where the role has one.
    fn visitor(&self, number: u32, url: &Url, role: &Role) -> Box<dyn Participant> {
        let (factory, role_of_chat) = (self.clone(), role.clone());
        let make: peertube::MakeChat = Box::new(move |room| {
            let place = (&room.url, &*room.domain, &*room.room, None);
            factory.xmpp_config(number, &role_of_chat, place)
        });
        let config = peertube::Config {
            page: url.clone(),
            player: self.player_config(number, url, &role.player),
            chat: role.chat.is_wanted.then_some(make),
        };
        Box::new(peertube::Visitor::new(config, self.options(number)))
    }

    fn ome(&self, url: &Url) -> Box<dyn Signalling> {
        let mut url = url.clone();
        if self.ice_transport_policy == IceTransportPolicy::Relay
            && self.turn.is_none()
            && !url.query_pairs().any(|(key, _)| key == "transport")
        {
            // Without this parameter the server does not announce its relay.
            url.query_pairs_mut().append_pair("transport", "tcp");
        }
        let mut config = ome::Config::new(url);
        config.answer_within = self.timeouts.signalling;
        let bearer = |token: &String| ("Authorization".to_owned(), format!("Bearer {token}"));
        config.headers.extend(self.token.as_ref().map(bearer));
        Box::new(ome::Ome::new(config))
    }

    fn streaming(
        &self,
        url: &Url,
        mountpoint: &JanusId,
        pin: Option<&Secret>,
    ) -> Box<dyn Signalling> {
        Box::new(janus::Streaming::new(janus::Config {
            url: url.clone(),
            mountpoint: match mountpoint {
                JanusId::Number(id) => janus::MountpointId::Number(*id),
                JanusId::Text(id) => janus::MountpointId::Text(id.clone()),
            },
            pin: pin.map(|pin| pin.expose().to_owned()),
            session: self.janus_session(),
        }))
    }

    fn livekit(
        &self,
        number: u32,
        role: &Role,
        subscriptions: Subscriptions,
        (url, room): (&Url, &str),
    ) -> Box<dyn RoomSignalling> {
        Box::new(livekit::LiveKit::new(livekit::Config {
            url: url.clone(),
            access: self.access(&member_name(number), role, room),
            mark: self.mark.clone(),
            publishes: role.publish.is_some(),
            subscriptions,
            layers: sent_layers(role),
            answer_within: self.timeouts.signalling,
        }))
    }

    fn access(&self, name: &str, role: &Role, room: &str) -> livekit::Access {
        match &self.api_key {
            Some(api) => livekit::Access::Key(Box::new(livekit::Key {
                name: api.key.clone(),
                secret: api.secret.expose().to_owned(),
                room: room.to_owned(),
                identity: self.mark.put(name),
                can_publish: role.publish.is_some(),
                can_subscribe: role.video != SubscribePolicy::None
                    || role.audio != SubscribePolicy::None,
                clock: self.clock,
            })),
            None => livekit::Access::Token(self.token.clone().unwrap_or_default()),
        }
    }

    /// The HTTP configuration of WHEP and WHIP.
    fn whep(&self, url: &Url) -> whep::Config {
        let mut config = whep::Config::new(url.clone());
        config.token.clone_from(&self.token);
        config.answer_within = self.timeouts.signalling;
        let may_reach = Arc::clone(&self.may_reach);
        // Host names are checked by the driver, by the address that they resolve to.
        config.may_reach = Arc::new(move |url| {
            named_address(url).is_none_or(|place| may_reach(IpProtocol::Tcp, place))
        });
        config
    }
}

/// The name of participant `number` as the other participants of a conference see it.
#[must_use]
pub fn member_name(number: u32) -> String {
    ParticipantId(number).name()
}

/// The identity of a WHIP publisher on LiveKit. It differs from those of conference participants,
/// because LiveKit removes a participant when another one joins with the same identity.
fn publisher_name(number: u32) -> String {
    format!("throng-whip-{number}")
}

/// The address in a URL whose host is an IP address; nothing is resolved.
fn named_address(url: &Url) -> Option<SocketAddr> {
    let port = url.port_or_known_default().unwrap_or(9);
    let ip = match url.host()? {
        Host::Ipv4(ip) => IpAddr::V4(ip),
        Host::Ipv6(ip) => IpAddr::V6(ip),
        Host::Domain(name) if name.eq_ignore_ascii_case("localhost") => {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        }
        Host::Domain(_) => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests;

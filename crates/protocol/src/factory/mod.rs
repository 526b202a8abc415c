//! Creates the participants of a target.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use throng_media::manifest::PlaylistCache;
use throng_media::quality::WallClock;
use throng_media::source::Clip;
use throng_media::timing::IndexCache;
use throng_observation::run::ParticipantId;
use throng_observation::{Url, seed};
use throng_scenario::har::PagePlan;
use throng_scenario::{
    Conversation, Endpoint, IceTransportPolicy, MediaFile, Place, RecordedPage, Role,
    RtspTransport, Secret, StunServer, TapSelection,
};
use url::Host;

use crate::chat::RoomLogs;
use crate::ingest::IngestProtocol;
use crate::participant::Participant;
use crate::player::Swarms;
use crate::signalling::janus::{self, Streaming, VideoRoom};
use crate::signalling::livekit::LiveKit;
use crate::signalling::ome::Ome;
use crate::signalling::whep::Whep;
use crate::signalling::whip::Whip;
use crate::signalling::{RelayServer, RunMark};
use crate::webrtc::{MayReach, ParticipantOptions, StepTimeouts, Weights};

mod chat;
mod ingest;
mod media;
mod player;
mod rtsp;
mod servers;
mod webrtc;

pub(crate) use media::sent_layers;
pub use servers::Servers;

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

/// Who is to come.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a> {
    pub(crate) number: u32,
    /// Its intended time, after the start of the run.
    pub(crate) joins_at: Duration,
    pub(crate) role: &'a Role,
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
        self.seated(endpoint, Seat { number, joins_at, role })
    }

    fn seated(&self, endpoint: &Endpoint, seat: Seat<'_>) -> Box<dyn Participant> {
        let url = &endpoint.url;
        match &endpoint.place {
            Place::Whep => self.viewer(seat, Whep::of(self, url)),
            Place::OvenMediaEngine => self.viewer(seat, Ome::of(self, url)),
            Place::Janus { id, pin } => {
                self.viewer(seat, Streaming::of(self, (url, id, pin.as_ref())))
            }
            Place::JanusVideoRoom { id, pin } => self.member(seat, |subscriptions| {
                VideoRoom::of(self, seat, subscriptions, (url, id, pin.as_ref()))
            }),
            Place::LiveKit { room } => self
                .member(seat, |subscriptions| LiveKit::of(self, seat, subscriptions, (url, room))),
            Place::HttpVideo => self.video(seat, url),
            Place::PeerTube => self.visitor(seat, url),
            Place::Rtsp { account } => self.rtsp_viewer(seat, endpoint, account.as_ref()),
            Place::Whip => self.member(seat, |_| Whip::of(self, seat, url)),
            Place::RtspPublish { account } => self.rtsp_publisher(seat, endpoint, account.as_ref()),
            Place::Rtmp => self.ingest(seat, url, IngestProtocol::Rtmp),
            Place::Srt => self.ingest(seat, url, IngestProtocol::Srt),
            Place::Xmpp { domain, room, account } => {
                self.chat_member(seat, (url, domain, room, account.as_ref()))
            }
            Place::Chat => self.chat_by_template(seat, endpoint),
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
}

/// The name of participant `number` as the other participants of a conference see it.
#[must_use]
pub fn member_name(number: u32) -> String {
    ParticipantId(number).name()
}

/// The address in a URL whose host is an IP address; nothing is resolved.
pub(crate) fn named_address(url: &Url) -> Option<SocketAddr> {
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
mod life_tests;
#[cfg(test)]
mod tests;

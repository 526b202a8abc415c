//! Participants that send by WebRTC: members of conferences, and publishers by WHIP.

use std::sync::Arc;

use throng_media::card::Rung;
use throng_observation::Url;
use throng_scenario::{Action, JanusId, Role, Secret, Subscription};

use super::media::{card_ladder, outgoing, picture, sent_layers};
use super::{Seat, TargetFactory, member_name};
use crate::participant::Participant;
use crate::signalling::janus::SubscriberMode;
use crate::signalling::room::{RoomSignalling, Subscriptions};
use crate::signalling::{janus, livekit, whip};
use crate::webrtc::Behaviour;
use crate::webrtc::member::{Member, MemberOptions};
use crate::webrtc::sender::Ladder;

impl TargetFactory {
    pub(super) fn member(
        &self,
        seat: Seat<'_>,
        signalling: impl FnOnce(Subscriptions) -> Box<dyn RoomSignalling>,
    ) -> Box<dyn Participant> {
        let Seat { number, role, .. } = seat;
        let behaviour = self.behaviour(seat);
        let subscriptions = behaviour.subscriptions();
        let options = MemberOptions {
            participant: self.options(number),
            outgoing: outgoing(role, number, &self.conference.clips),
            behaviour,
            layers: role.layers.clone(),
        };
        Box::new(Member::new(signalling(subscriptions), options))
    }

    fn behaviour(&self, Seat { number, joins_at, role }: Seat<'_>) -> Behaviour {
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
            video: role.subscribe.video,
            audio: role.subscribe.audio,
            script: role.script.clone(),
            pictures: pictures.unwrap_or_default(),
        }
    }

    pub(super) fn video_room(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        subscriptions: Subscriptions,
        (url, room, pin): (&Url, &JanusId, Option<&Secret>),
    ) -> Box<dyn RoomSignalling> {
        let receives = role.subscribe != Subscription::NONE;
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

    pub(super) fn livekit(
        &self,
        Seat { number, role, .. }: Seat<'_>,
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

    /// The signalling of a publisher by WHIP; LiveKit's has a token of its own.
    pub(super) fn whip(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        url: &Url,
    ) -> Box<dyn RoomSignalling> {
        let access = self.api_key.as_ref().map(|api| {
            let room = api.room.as_deref().unwrap_or_default();
            self.access(&publisher_name(number), role, room)
        });
        Box::new(whip::Whip::new(self.whep(url), access))
    }

    fn access(&self, name: &str, role: &Role, room: &str) -> livekit::Access {
        match &self.api_key {
            Some(api) => livekit::Access::Key(Box::new(livekit::Key {
                name: api.key.clone(),
                secret: api.secret.expose().to_owned(),
                room: room.to_owned(),
                identity: self.mark.put(name),
                can_publish: role.publish.is_some(),
                can_subscribe: role.subscribe != Subscription::NONE,
                clock: self.clock,
            })),
            None => livekit::Access::Token(self.token.clone().unwrap_or_default()),
        }
    }
}

/// The identity of a WHIP publisher on LiveKit. It differs from those of conference participants,
/// because LiveKit removes a participant when another one joins with the same identity.
fn publisher_name(number: u32) -> String {
    format!("throng-whip-{number}")
}

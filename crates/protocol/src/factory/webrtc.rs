//! Participants by WebRTC: viewers, and those that may send too, which are members of conferences
//! and publishers by WHIP. Each signalling makes its own adapter.

use std::sync::Arc;

use throng_media::card::Rung;
use throng_scenario::Action;

use super::media::{card_ladder, outgoing, picture};
use super::{Seat, TargetFactory, member_name};
use crate::participant::Participant;
use crate::signalling::Signalling;
use crate::signalling::room::{RoomSignalling, Subscriptions};
use crate::webrtc::Behaviour;
use crate::webrtc::member::{Member, MemberOptions};
use crate::webrtc::sender::Ladder;
use crate::webrtc::viewer::Viewer;

impl TargetFactory {
    pub(super) fn viewer(
        &self,
        seat: Seat<'_>,
        signalling: impl Signalling + 'static,
    ) -> Box<dyn Participant> {
        Box::new(Viewer::new(Box::new(signalling), self.options(seat.number)))
    }

    pub(super) fn member<S: RoomSignalling + 'static>(
        &self,
        seat: Seat<'_>,
        signalling: impl FnOnce(Subscriptions) -> S,
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
        Box::new(Member::new(Box::new(signalling(subscriptions)), options))
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
}

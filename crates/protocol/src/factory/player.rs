//! Viewers of video over HTTP, with a chat beside it or on the page of PeerTube.

use std::sync::Arc;

use throng_observation::Url;
use throng_scenario::{PlayerConfig, Secret};

use super::{Seat, TargetFactory};
use crate::composite::Composite;
use crate::participant::Participant;
use crate::{peertube, player};

impl TargetFactory {
    /// A viewer, and the same user in a chat where the role has one.
    pub(super) fn video(&self, seat: Seat<'_>, url: &Url) -> Box<dyn Participant> {
        let config = self.player_config(seat.number, url, &seat.role.player);
        let player: Box<dyn Participant> = Box::new(player::Viewer::new(config));
        match seat.role.chat.beside.as_deref() {
            Some(chat) => {
                let chat = self.seated(chat, seat);
                Box::new(Composite::new(vec![("player", player), ("chat", chat)]))
            }
            None => player,
        }
    }

    pub(super) fn player_config(
        &self,
        number: u32,
        url: &Url,
        player: &PlayerConfig,
    ) -> player::Config {
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
    pub(super) fn visitor(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        url: &Url,
    ) -> Box<dyn Participant> {
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
}

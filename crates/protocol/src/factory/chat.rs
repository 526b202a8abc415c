//! Participants of chats.

use std::sync::Arc;

use throng_observation::{Url, seed};
use throng_scenario::{Account, Endpoint, Role, Secret};

use super::{Seat, TargetFactory, member_name};
use crate::chat::template::TemplateConfig;
use crate::chat::xmpp::{Credentials, XmppConfig};
use crate::chat::{Config, Member, Protocol, Rename};
use crate::participant::Participant;

impl TargetFactory {
    /// A participant of a room of XMPP.
    pub(super) fn chat_member(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        (url, domain, room, account): (&Url, &str, &str, Option<&Account>),
    ) -> Box<dyn Participant> {
        let config = self.xmpp_config(number, role, (url, domain, room, account));
        Box::new(Member::new(config, self.options(number)))
    }

    /// What it is made of.
    pub(super) fn xmpp_config(
        &self,
        number: u32,
        role: &Role,
        (url, domain, room, account): (&Url, &str, &str, Option<&Account>),
    ) -> Config {
        let (nick, rename) = self.nickname(number, role);
        let xmpp = XmppConfig {
            domain: domain.to_owned(),
            credentials: account.map(|account| Credentials {
                username: account.name.clone(),
                password: account.password.clone(),
            }),
            room: room.to_owned(),
            nick,
            vcards: role.chat.vcards,
            history_max: role.chat.history,
            has_chat_states: role.chat.chat_states,
            has_management: role.chat.stream_management,
            answer_within: self.timeouts.signalling,
        };
        self.chatting(number, role, url, (Protocol::Xmpp(Box::new(xmpp)), room), rename)
    }

    /// A participant of a chat that the scenario describes.
    pub(super) fn chat_by_template(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        endpoint: &Endpoint,
    ) -> Box<dyn Participant> {
        let url = &endpoint.url;
        // The scenario has one wherever it has such a target.
        let template = role.chat.template.clone().unwrap_or_default();
        // Rooms of the same name on other servers are others.
        let room = format!("{} {}", url.in_clear(), template.room.written());
        let config = TemplateConfig {
            template: Arc::new(template),
            nick: self.mark.put(&member_name(number)),
            number,
            token: self.token.clone().map(Secret::new),
            answer_within: self.timeouts.signalling,
            has_event_stream: endpoint.is_event_stream(),
        };
        let config = self.chatting(number, role, url, (Protocol::Template(config), &room), None);
        Box::new(Member::new(config, self.options(number)))
    }

    fn chatting(
        &self,
        number: u32,
        role: &Role,
        url: &Url,
        (protocol, room): (Protocol, &str),
        rename: Option<Rename>,
    ) -> Config {
        Config {
            url: url.clone(),
            protocol,
            chat: role.chat.clone(),
            mark: self.mark.letters().to_owned(),
            log: self.rooms.log(room),
            rename,
            // Another sequence than that of its nickname.
            speech_seed: !seed_of(role, number),
        }
    }

    /// The nickname that a participant comes with, and the one that it chooses.
    fn nickname(&self, number: u32, role: &Role) -> (String, Option<Rename>) {
        let chosen = self.mark.put(&member_name(number));
        let Some(renames) = role.chat.renames else { return (chosen, None) };
        let mut rng = fastrand::Rng::with_seed(seed_of(role, number));
        // Visitors of a page have a nickname like this until they choose one.
        let given = format!("Anonymous {}", rng.u32(100_000..1_000_000));
        let (chooses, after) =
            (rng.u32(..1_000) < renames.share_milli, renames.within.mul_f64(rng.f64()));
        (given, chooses.then_some(Rename { nick: chosen, after }))
    }
}

/// The seed of what participant `number` chooses in the chat.
fn seed_of(role: &Role, number: u32) -> u64 {
    seed::weyl(role.chat.seed, u64::from(number))
}

//! XMPP over WebSocket, as ConverseJS speaks it: one stream of one participant, from bytes to
//! bytes.

use std::time::Duration;

use throng_scenario::VcardPolicy;

mod ids;
mod management;
mod room;
mod sasl;
mod session;
mod stanzas;
mod xml;

#[cfg(test)]
mod tests;

pub(in crate::chat) use management::Resumption;
pub use sasl::Credentials;
pub(in crate::chat) use session::Stream;
pub(crate) use stanzas::open as open_stream;

/// A stream and what it is for.
#[derive(Clone, Debug)]
pub struct XmppConfig {
    /// The domain of its account (`to` of `<open>`).
    pub domain: String,
    /// Its account; `None`: anonymous.
    pub credentials: Option<Credentials>,
    /// The address of the room.
    pub room: String,
    /// The nickname that it takes there.
    pub nick: String,
    /// Whose vCards it fetches.
    pub vcards: VcardPolicy,
    /// Messages of the archive that it fetches when it joins (ConverseJS: 50).
    pub history_max: u32,
    /// It says that it types (XEP-0085), which the room passes to everybody.
    pub has_chat_states: bool,
    /// Uses stream management where the server offers it (XEP-0198; ConverseJS: `enable_smacks`).
    pub has_management: bool,
    /// How long each answer may take.
    pub answer_within: Duration,
}

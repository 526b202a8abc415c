//! Stream management (XEP-0198), as ConverseJS keeps it: what each side has received, and a stream
//! that goes on over another connection.

use std::collections::VecDeque;

use super::stanzas;

/// After so many stanzas the server is asked what it has received (`smacks_max_unacked_stanzas`).
const ASK_AFTER: u32 = 5;

/// A server that acknowledges nothing must not make the generator keep everything: beyond so many
/// stanzas the stream cannot be resumed.
const UNACKED_MAX: usize = 1_000;

/// What was received and acknowledged on a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Management {
    /// The name of the stream on the server; `None`: it cannot be resumed.
    id: Option<String>,
    /// Stanzas received, modulo 2³² as the XEP counts.
    handled: u32,
    /// Stanzas that the server says to have received.
    acked: u32,
    sent_since_ack: u32,
    /// How many were sent and not acknowledged; where the stream can be resumed, they are kept,
    /// oldest first.
    unacked_count: usize,
    unacked: VecDeque<String>,
}

/// A stream that may go on over another connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat) struct Resumption {
    pub(super) management: Management,
    /// Its full address.
    pub(super) jid: String,
}

impl Management {
    /// Of a stream that was enabled, with the id by which it can be resumed.
    pub(super) fn enabled(id: Option<String>) -> Self {
        Self { id, ..Self::default() }
    }

    pub(super) fn is_resumable(&self) -> bool {
        self.id.is_some()
    }

    /// Asks for the stream of before.
    pub(super) fn resume(&self) -> String {
        stanzas::resume(self.handled, self.id.as_deref().unwrap_or_default())
    }

    /// What was received.
    pub(super) fn answer(&self) -> String {
        stanzas::acknowledge(self.handled)
    }

    /// A stanza came.
    pub(super) fn received(&mut self) {
        self.handled = self.handled.wrapping_add(1);
    }

    /// A stanza is sent; whether the server is to be asked what it has received.
    pub(super) fn sent(&mut self, frame: &str) -> bool {
        self.unacked_count += 1;
        if self.unacked.len() >= UNACKED_MAX {
            self.unacked.clear();
            self.id = None;
        }
        // What cannot be sent again need not be kept.
        if self.id.is_some() {
            self.unacked.push_back(frame.to_owned());
        }
        self.sent_since_ack += 1;
        self.sent_since_ack.is_multiple_of(ASK_AFTER)
    }

    /// The server says that it has received `handled` stanzas; what is wrong with that, if
    /// anything. ConverseJS goes on either way.
    pub(super) fn acknowledged(&mut self, handled: &str) -> Result<(), String> {
        let handled: u32 =
            handled.parse().map_err(|_| "an acknowledgement without a number".to_owned())?;
        let more = handled.wrapping_sub(self.acked);
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        let unacked = self.unacked_count;
        self.sent_since_ack = 0;
        if more > unacked {
            return Err(format!(
                "an acknowledgement of {more} stanzas, of which {unacked} were sent"
            ));
        }
        self.acked = handled;
        self.unacked_count -= more;
        self.unacked.drain(..more.min(self.unacked.len()));
        Ok(())
    }

    /// Takes what has to be sent again on a resumed stream; it counts as sent again.
    pub(super) fn take_unacked(&mut self) -> VecDeque<String> {
        self.unacked_count = 0;
        std::mem::take(&mut self.unacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fifth_stanza_asks_and_what_is_acknowledged_is_forgotten() {
        let mut management = Management::enabled(Some("s1".to_owned()));
        let asks: Vec<bool> =
            (0..6).map(|at| management.sent(&format!("<iq id='{at}'/>"))).collect();
        assert_eq!(asks, [false, false, false, false, true, false]);
        management.acknowledged("4").unwrap();
        assert_eq!(management.take_unacked(), ["<iq id='4'/>", "<iq id='5'/>"]);
        management.received();
        assert!(
            management.answer().contains(r#"h="1""#)
                && management.resume().contains(r#"previd="s1""#)
        );
    }

    #[test]
    fn a_server_that_acknowledges_nonsense_is_named_and_one_that_acknowledges_nothing_is_bounded() {
        let mut management = Management::enabled(Some("s1".to_owned()));
        management.sent("<iq/>");
        for (handled, expect) in
            [("9", "of 9 stanzas, of which 1 were sent"), ("-1", "without a number")]
        {
            assert!(management.acknowledged(handled).unwrap_err().contains(expect), "{handled}");
        }
        assert_eq!(management.acknowledged("1"), Ok(()));
        for _ in 0..10 * UNACKED_MAX {
            management.sent("<iq/>");
        }
        assert!(
            management.unacked.is_empty() && !management.is_resumable(),
            "nothing is kept in vain"
        );
        let sent = 10 * UNACKED_MAX + 1;
        assert_eq!(
            management.acknowledged(&sent.to_string()),
            Ok(()),
            "it acknowledges them after all"
        );
        assert!(management.acknowledged(&(sent + 1).to_string()).is_err());
    }

    #[test]
    fn counts_go_round_at_their_end() {
        let mut management =
            Management { acked: u32::MAX, handled: u32::MAX, ..Management::enabled(None) };
        management.sent("<iq/>");
        management.received();
        assert_eq!((management.acknowledged("0"), management.handled), (Ok(()), 0));
        assert!(management.unacked.is_empty());
    }
}

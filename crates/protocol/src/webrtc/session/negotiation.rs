//! Offers and answers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use str0m::Rtc;
use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::media::{
    Direction as MediaDirection, MediaKind as StrMediaKind, Mid, Simulcast, SimulcastLayer,
};
use throng_observation::MediaKind;

use super::completed::completed;
use super::{Session, SessionError};
use crate::webrtc::sdp::{Description, SDP_BYTES_MAX, to_negotiate};

/// A section of media to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaToSend {
    /// Audio or video.
    pub kind: MediaKind,
    /// The RIDs of its simulcast layers, the most preferred first; empty without simulcast.
    pub rids: Vec<String>,
}

/// The result of negotiation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The content of the answer: payload types, feedback and extensions that may be used.
    pub answer: Description,
    /// The local description: the SSRCs that are sent from.
    pub local: Description,
    /// The peer's description: the SSRCs that it will send from, and its candidates.
    pub remote: Description,
}

impl Session {
    /// Makes an offer to send `media`, one section each.
    ///
    /// # Errors
    /// [`SessionError::Order`] when there is nothing to offer.
    pub fn create_sending_offer(&mut self, media: &[MediaToSend]) -> Result<String, SessionError> {
        let mut change = self.rtc.sdp_api();
        for media in media {
            let kind = match media.kind {
                MediaKind::Audio => StrMediaKind::Audio,
                MediaKind::Video => StrMediaKind::Video,
            };
            let layers: Vec<_> = media.rids.iter().map(|rid| SimulcastLayer::new(rid)).collect();
            let simulcast =
                (!layers.is_empty()).then(|| Simulcast { send: layers, recv: Vec::new() });
            change.add_media(kind, MediaDirection::SendOnly, None, None, simulcast);
        }
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        let text = self.await_answer(&offer, pending);
        self.offered = Description::parse(&text);
        Ok(text)
    }

    /// Makes an offer to receive one audio and one video stream.
    ///
    /// # Errors
    /// [`SessionError::Order`] when there is nothing to offer.
    pub fn create_offer(&mut self) -> Result<String, SessionError> {
        let mut change = self.rtc.sdp_api();
        for kind in [StrMediaKind::Audio, StrMediaKind::Video] {
            change.add_media(kind, MediaDirection::RecvOnly, None, None, None);
        }
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        Ok(self.await_answer(&offer, pending))
    }

    /// Keeps what the answer to this offer is compared with; the offer's text.
    fn await_answer(&mut self, offer: &SdpOffer, pending: SdpPendingOffer) -> String {
        self.pending = Some(pending);
        let text = offer.to_sdp_string();
        let mids = text.lines().filter_map(|line| line.strip_prefix("a=mid:"));
        self.offered_mids = mids.map(str::to_owned).collect();
        text
    }

    /// Makes an offer as a server sends it during a session: one more video stream, or fresh ICE
    /// credentials.
    #[cfg(test)]
    pub(in crate::webrtc) fn create_later_offer(
        &mut self,
        later: LaterOffer,
    ) -> Result<String, SessionError> {
        let mut change = self.rtc.sdp_api();
        match later {
            LaterOffer::MoreVideo => {
                change.add_media(StrMediaKind::Video, MediaDirection::SendOnly, None, None, None);
            }
            LaterOffer::IceRestart => drop(change.ice_restart(true)),
        }
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        Ok(self.await_answer(&offer, pending))
    }

    /// Applies the peer's answer to the local offer. Its candidates are not used yet: the caller
    /// checks those in the result and adds them.
    ///
    /// # Errors
    /// [`SessionError::Sdp`] and, without an open offer, [`SessionError::Order`].
    pub fn accept_answer(&mut self, text: &str) -> Result<Negotiated, SessionError> {
        let pending = self
            .pending
            .take()
            .ok_or(SessionError::Order("an answer arrived without a pending offer"))?;
        self.checks.begin_anew();
        let text = completed(text, &std::mem::take(&mut self.offered_mids));
        apply_answer(&mut self.rtc, pending, &text)?;
        let remote = Description::parse(&text);
        self.keys.only_media(remote.has_only_media());
        self.free_senders(&remote);
        Ok(Negotiated { answer: remote.clone(), local: std::mem::take(&mut self.offered), remote })
    }

    /// Applies the peer's offer, first or later, and makes the local answer. As with
    /// [`Self::accept_answer`] the candidates in it are left to the caller.
    ///
    /// # Errors
    /// [`SessionError::Sdp`].
    pub fn accept_offer(&mut self, text: &str) -> Result<(String, Negotiated), SessionError> {
        self.pending = None;
        self.checks.begin_anew();
        let text = &completed(text, &[]);
        let answer = answer_to(&mut self.rtc, text)?.to_sdp_string();
        let local = Description::parse(&answer);
        let negotiated =
            Negotiated { answer: local.clone(), local, remote: Description::parse(text) };
        self.keys.only_media(negotiated.remote.has_only_media());
        self.free_senders(&negotiated.remote);
        Ok((answer, negotiated))
    }

    /// Frees what str0m prepares to send in each section, a cache of sent packets among it, where
    /// nothing is sent.
    fn free_senders(&mut self, described: &Description) {
        if !self.only_receives {
            return;
        }
        let mut api = self.rtc.direct_api();
        for section in &described.sections {
            let sender = api.stream_tx_by_mid(Mid::from(section.mid.as_str()), None);
            if let Some(ssrc) = sender.map(|sender| sender.ssrc()) {
                api.remove_stream_tx(ssrc);
            }
        }
    }
}

/// See [`Session::create_later_offer`].
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::webrtc) enum LaterOffer {
    MoreVideo,
    IceRestart,
}

/// Applies an offer of the peer; the answer to it.
pub(in crate::webrtc) fn answer_to(rtc: &mut Rtc, offer: &str) -> Result<SdpAnswer, SessionError> {
    guarded(offer, |text| {
        let offer =
            SdpOffer::from_sdp_string(&left_to_us(text)).map_err(|error| error.to_string())?;
        rtc.sdp_api().accept_offer(offer).map_err(|error| error.to_string())
    })
}

/// Applies the peer's answer to the offer that is `pending`.
pub(in crate::webrtc) fn apply_answer(
    rtc: &mut Rtc,
    pending: SdpPendingOffer,
    answer: &str,
) -> Result<(), SessionError> {
    guarded(answer, |text| {
        let answer = SdpAnswer::from_sdp_string(text).map_err(|error| error.to_string())?;
        rtc.sdp_api().accept_answer(pending, answer).map_err(|error| error.to_string())
    })
}

/// Runs an SDP through str0m. A panic there is a defect that must cost one participant, not the
/// run.
fn guarded<T>(
    text: &str,
    agree: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, SessionError> {
    if text.len() > SDP_BYTES_MAX {
        return Err(SessionError::Sdp(format!(
            "{} bytes are more than the {SDP_BYTES_MAX} allowed",
            text.len()
        )));
    }
    let text = to_negotiate(text);
    catch_unwind(AssertUnwindSafe(|| agree(&text)))
        .unwrap_or_else(|_| Err("the SDP library failed on it".into()))
        .map_err(SessionError::Sdp)
}

/// Rewrites an offer that leaves the DTLS role open so that this side is the client. The answerer
/// should start DTLS (RFC 5763 section 5), as every browser does; str0m would wait for the server,
/// whose role would then differ from that with browsers.
fn left_to_us(offer: &str) -> String {
    offer.replace("a=setup:actpass", "a=setup:passive")
}

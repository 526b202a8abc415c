//! The negotiated payload types: section, content and feedback of each.

use throng_observation::{Codec, MediaKind};

use super::sdp::Feedback;
use super::session::Negotiated;

/// One payload type of one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) payload_type: u8,
    /// Index of the media section.
    pub(super) section: u16,
    pub(super) kind: MediaKind,
    /// For a retransmission format: the codec of the repeated packets.
    pub(super) codec: Codec,
    pub(super) clock_rate_hz: u32,
    pub(super) feedback: Feedback,
    pub(super) is_retransmission: bool,
}

/// All negotiated payload types and SSRCs, as the receiver needs them.
#[derive(Clone, Debug, Default)]
pub(super) struct Assignments {
    list: Vec<Assignment>,
    /// (SSRC, section) as the peer declared them.
    declared: Vec<(u32, u16)>,
    /// `a=mid` by section.
    mids: Vec<String>,
    pub(super) expects_video: bool,
    /// For each section in which the peer sends and this side receives: the index of the peer's
    /// preferred format.
    sent: Vec<usize>,
    pub(super) reduced_size_rtcp: bool,
}

impl Assignments {
    pub(super) fn of(negotiated: &Negotiated) -> Self {
        let mut all = Self::default();
        // A section without a track: some servers nevertheless mark it `sendonly`, and name no
        // track there although they do in other sections.
        let any_named = negotiated.remote.sections.iter().any(|remote| remote.names_track);
        for (index, section) in negotiated.answer.sections.iter().enumerate() {
            let index = index as u16; // at most 256 sections are kept
            all.mids.push(section.mid.clone());
            let Some(kind) = section.kind.filter(|_| !section.rejected) else { continue };
            let remote = negotiated.remote.sections.get(usize::from(index));
            let sends = remote.is_some_and(|remote| {
                remote.direction.sends() && (remote.names_track || !any_named)
            });
            all.expects_video |= kind == MediaKind::Video && sends;
            let begin = all.list.len();
            all.reduced_size_rtcp |= section.reduced_size_rtcp;
            for format in &section.formats {
                let repeated = format
                    .repeats
                    .and_then(|pt| section.formats.iter().find(|f| f.payload_type == pt));
                let is_retransmission = format.is_retransmission();
                let of = if is_retransmission { repeated } else { Some(format) };
                let Some(of) = of else { continue };
                all.list.push(Assignment {
                    payload_type: format.payload_type,
                    section: index,
                    kind,
                    codec: of.codec,
                    clock_rate_hz: of.clock_rate_hz,
                    feedback: of.feedback,
                    is_retransmission,
                });
            }
            // Formats of a local offer are not kept: it lists all supported ones.
            let ours = negotiated.local.sections.get(usize::from(index));
            if sends && ours.is_none_or(|ours| ours.direction.receives()) {
                let formats = all.list.iter().enumerate().skip(begin);
                all.sent.extend(
                    formats
                        .filter(|(_, format)| !format.is_retransmission)
                        .map(|(at, _)| at)
                        .next(),
                );
            }
            if let Some(remote) = remote {
                let repeats =
                    remote.retransmissions.iter().flat_map(|(media, repeat)| [*media, *repeat]);
                all.declared
                    .extend(remote.ssrcs.iter().copied().chain(repeats).map(|ssrc| (ssrc, index)));
            }
        }
        all
    }

    /// The section of a packet by its `mid` extension, then by its declared SSRC (RFC 9143 9.2).
    pub(super) fn section(&self, ssrc: u32, mid: Option<&str>) -> Option<u16> {
        let by_mid =
            mid.and_then(|mid| self.mids.iter().position(|known| known == mid)).map(|at| at as u16);
        by_mid.or_else(|| {
            self.declared.iter().find(|(known, _)| *known == ssrc).map(|(_, section)| *section)
        })
    }

    /// `a=mid` of a section.
    pub(super) fn mid(&self, section: u16) -> Option<&str> {
        self.mids.get(usize::from(section)).map(String::as_str)
    }

    /// The meaning of `payload_type`, in `section` when that is known.
    pub(super) fn find(&self, payload_type: u8, section: Option<u16>) -> Option<&Assignment> {
        let mut of_type =
            self.list.iter().filter(|assignment| assignment.payload_type == payload_type);
        match section {
            Some(section) => of_type.find(|assignment| assignment.section == section),
            None => of_type.next(),
        }
    }

    /// The sections in which media is expected, each with the peer's preferred format.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Assignment> {
        self.sent.iter().filter_map(|at| self.list.get(*at))
    }

    /// Whether the peer announced SSRCs for `section`, and `ssrc` is not among those of any
    /// section.
    pub(super) fn is_unannounced(&self, ssrc: u32, section: u16) -> bool {
        self.declared.iter().any(|(_, known)| *known == section)
            && !self.declared.iter().any(|(known, _)| *known == ssrc)
    }

    /// Whether any payload type gets this feedback.
    pub(super) fn any(&self, feedback: impl Fn(&Feedback) -> bool) -> bool {
        self.list.iter().any(|assignment| feedback(&assignment.feedback))
    }
}

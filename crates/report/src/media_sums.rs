//! The sums of received tracks that `summary.json` has as they are counted: each is named once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::TrackCounters;

use crate::Media;

/// Declares them: each is the counter of its name, `row` the name of its row in the page's table.
/// New ones come at the end, and have `#[serde(default)]`, as earlier summaries lack them.
macro_rules! media_sums {
    ($( $(#[$($attribute:tt)+])+ $field:ident $(row $row:literal)?, )+) => {
        /// Sums of the tracks of a kind, warm-up left out.
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
        )]
        pub struct MediaSums {
            $( $(#[$($attribute)+])+ pub $field: u64, )+
        }

        impl MediaSums {
            /// Those that have a row of their own, with its name.
            pub(crate) const ROWS: &'static [(&'static str, fn(&Media) -> String)] =
                &[$( $( ($row, |media| media.sums.$field.to_string()), )? )+];

            /// Of a run; what is negative, as packets lost may be within an interval, is none.
            pub(crate) fn of(counters: &TrackCounters) -> Self {
                Self { $( $field: u64::try_from(i128::from(counters.$field)).unwrap_or(0), )+ }
            }
        }
    };
}

impl MediaSums {
    /// The packets, by which loss is measured.
    pub(crate) fn packets(&self) -> TrackCounters {
        TrackCounters {
            packets_original: self.packets_original,
            packets_recovered: self.packets_recovered,
            packets_lost: i64::try_from(self.packets_lost).unwrap_or(i64::MAX),
            ..TrackCounters::default()
        }
    }
}

media_sums! {
    /// Packets received in their first transmission: no duplicates, no retransmissions.
    #[serde(alias = "packets_received")]
    packets_original,
    /// Packets lost for good.
    packets_lost,
    /// Packets that arrived after they were counted lost.
    packets_late row "late",
    /// Packets that had arrived before.
    packets_duplicate row "duplicate",
    /// Packets out of order.
    packets_reordered row "reordered",
    /// Packets recovered by retransmission.
    packets_recovered,
    /// Packets that could not be decrypted or parsed.
    #[serde(alias = "packets_discarded")]
    packets_unreadable row "unreadable",
    /// RTP payload bytes.
    payload_bytes,
    /// Bytes on the wire.
    wire_bytes,
    /// Generic NACKs sent.
    nack_sent,
    /// Picture Loss Indications sent.
    pli_sent,
    /// Full Intra Requests sent.
    fir_sent,
    /// Complete frames.
    frames_complete,
    /// Decodable frames.
    frames_decodable,
    /// Incomplete frames that were abandoned.
    frames_dropped,
    /// Decodable key frames.
    key_frames,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_that_were_counted_and_keys_beside_the_others() {
        let counters = TrackCounters {
            packets_original: 7,
            packets_lost: -2,
            key_frames: 3,
            header_bytes: 9,
            ..TrackCounters::default()
        };
        let sums = MediaSums::of(&counters);
        assert_eq!((sums.packets_original, sums.packets_lost, sums.key_frames), (7, 0, 3));
        let lossy = MediaSums { packets_recovered: 1, packets_lost: 2, ..sums }.packets();
        assert_eq!((lossy.packets_expected(), lossy.packet_loss_ratio()), (10, Some(0.2)));
        let json = serde_json::to_string(&Media { sums, ..Media::default() }).unwrap();
        let begin = "\"track_bps\":null,\"packets_original\":7,\"packets_lost\":0,";
        assert!(json.contains(begin), "{json}");
        assert!(json.contains("\"key_frames\":3,\"oven_rtc_tester_delay_ms_p50\":null"), "{json}");
        let names = MediaSums::ROWS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names, ["late", "duplicate", "reordered", "unreadable"]);
        let media = Media { sums: MediaSums { packets_late: 4, ..sums }, ..Media::default() };
        assert_eq!(MediaSums::ROWS.first().map(|(_, figure)| figure(&media)), Some("4".into()));
        let earlier = json.replace("packets_original", "packets_received");
        assert_eq!(serde_json::from_str::<Media>(&earlier).unwrap().sums, sums);
    }
}

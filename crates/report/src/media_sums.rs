//! The sums of received tracks in `summary.json`.

use throng_observation::TrackCounters;

use crate::sums::summed;

summed! {
    /// Sums of the tracks of a kind, warm-up left out.
    MediaSums of TrackCounters {
        #[serde(alias = "packets_received")] packets_original;
        /// Packets lost for good.
        packets_lost;
        packets_late;
        packets_duplicate;
        packets_reordered;
        packets_recovered;
        #[serde(alias = "packets_discarded")] packets_unreadable;
        payload_bytes;
        wire_bytes;
        nack_sent;
        pli_sent;
        fir_sent;
        frames_complete;
        frames_decodable;
        frames_dropped;
        key_frames;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Media;

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
        let earlier = json.replace("packets_original", "packets_received");
        assert_eq!(serde_json::from_str::<Media>(&earlier).unwrap().sums, sums);
    }
}

//! Fifty viewers at a time on each real server: no failure.

use throng_sim::rtsp::{GstRtspServer, MediaFile, Options, Vlc};

use super::view;
use crate::throng::figure;

/// Longer than `make test` allows for one protocol; the same with five viewers is part of it.
mod long {
    use super::*;

    const CROWD: u32 = 50;

    /// All of the crowd play, and none fails.
    #[track_caller]
    fn assert_all_play(url: &str, transport: &str, what: &str) {
        let ran = view(url, CROWD, transport, 8, &[]).expect_code(0);
        let summary = ran.summary();
        assert_eq!(figure(&summary, "participants.failed"), 0.0, "{what}\n{ran}");
        assert_eq!(figure(&summary, "participants.playing"), f64::from(CROWD), "{what}\n{ran}");
    }

    #[test]
    #[ignore = "a minute and a half of fifty viewers: scripts/proof.sh long"]
    fn fifty_viewers_play_each_format_over_udp_and_tcp_without_a_failure() {
        if !GstRtspServer::is_installed() {
            return;
        }
        let server = GstRtspServer::start(&Options::default()).unwrap();
        for mount in ["/h264", "/mpeg2", "/ts"] {
            for transport in ["udp", "tcp"] {
                assert_all_play(&server.url(mount), transport, &format!("{mount} {transport}"));
            }
        }
    }

    #[test]
    #[ignore = "fifty viewers: scripts/proof.sh long"]
    fn fifty_viewers_play_from_vlc_over_udp_without_a_failure() {
        if !Vlc::is_installed() {
            return;
        }
        let vlc = Vlc::start(MediaFile::Mpeg2).unwrap();
        assert_all_play(&vlc.url(), "udp", "VLC");
    }
}

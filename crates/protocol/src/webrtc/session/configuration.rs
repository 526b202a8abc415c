//! How the library is set up.

use std::time::Duration;

use str0m::RtcConfig;
use str0m::rtp::Extension;
use throng_observation::Codec;

use super::SessionError;
use crate::webrtc::crypto;

/// The interval of str0m's own statistics, which are not used. Longer than any run.
const NEVER: Duration = Duration::from_secs(365 * 86_400);

/// From the first connectivity check of a pair to the second: a server that reads the answer after
/// the first check arrives would otherwise cost 250 ms. libwebrtc checks a pair that has not
/// answered each 48 ms (`WEAK_PING_INTERVAL`).
const FIRST_RETRANSMISSION: Duration = Duration::from_millis(50);

/// Retransmissions of a check, at intervals that double to 3 s: as long as with the library's 9
/// from 250 ms.
const RETRANSMISSIONS: usize = 11;

pub(super) fn configuration(codecs: &[Codec]) -> Result<RtcConfig, SessionError> {
    let has = |codec| codecs.contains(&codec);
    let shared = crypto::shared()?;
    let mut configuration = RtcConfig::new();
    configuration.set_initial_stun_rto(FIRST_RETRANSMISSION);
    configuration.set_max_stun_retransmits(RETRANSMISSIONS);
    Ok(configuration
        .set_crypto_provider(std::sync::Arc::clone(&shared.provider))
        .set_dtls_cert(shared.certificate.clone())
        .clear_codecs()
        .enable_opus(has(Codec::Opus), false)
        .enable_pcmu(has(Codec::Pcmu), false)
        .enable_pcma(has(Codec::Pcma), false)
        .enable_h264(has(Codec::H264))
        .enable_h265(has(Codec::H265))
        .enable_vp8(has(Codec::Vp8))
        .enable_vp9(has(Codec::Vp9))
        .enable_av1(has(Codec::Av1))
        .set_extension(9, Extension::AbsoluteCaptureTime)
        .set_rtp_mode(true)
        .set_rtcp_report_interval_audio(NEVER)
        .set_rtcp_report_interval_video(NEVER)
        .set_stats_interval(None))
}

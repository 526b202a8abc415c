//! How each figure was measured, with its source.

use std::fmt::Write as _;

use throng_observation::limits::{
    LAG_P99_MS_MAX, LIMITED_RATIO_MAX, STEAL_RATIO_MAX, THREAD_CPU_RATIO_MAX,
};

use super::markup::escape;

const ENTRIES: [(&str, &str); 10] = [
    (
        "Connect, first frame",
        "From the planned moment of the join, whether or not the generator was late. Percentiles \
         cover all intended participants (Kaplan–Meier): failed ones count as infinitely late; \
         those that left before are censored, and count for as long as they waited.",
    ),
    (
        "Packet loss",
        "Packets expected from the sequence numbers less packets received in the end, over \
         packets expected (RFC 3550 A.3). Packets recovered by retransmission are not lost.",
    ),
    (
        "Delay above floor",
        "Arrival time less RTP time of each complete frame, above the lowest of its own track. It \
         needs no synchronised clock and shows growing queues; it does not show a constant delay.",
    ),
    (
        "One-way delay",
        "Arrival less the capture time that the stream carries: an in-media mark, else \
         abs-capture-time, else the RTCP sender reports, never a mixture; the figures name their \
         basis. Sender reports are most often the server's own: they cover the path from its \
         egress, not from the source. The stated clock error bounds its error. Where frames seem \
         to arrive before their capture by more than the clock error, the clocks disagree: their \
         share and by how much is said. A percentile that lies among such frames is not shown.",
    ),
    (
        "Frame rate",
        "Frames of which every packet arrived and whose references were decodable too, per second \
         and track. The source's rate is by its RTP timestamps.",
    ),
    (
        "Freeze",
        "An interval between frames of at least max(3δ, δ + 150 ms), δ being the mean of the last \
         30 (W3C webrtc-stats).",
    ),
    (
        "Startup, stall",
        "Of players, which fetch media and play it from a buffer. Startup: from the planned \
         moment of the join until enough was buffered and playback began. Stall: playback had \
         begun and the buffer ran empty; the stall ratio is time stalled over time stalled and \
         playing, without startup and the pauses of users (CTA-2066).",
    ),
    (
        "Delivery",
        "Media time received over time, of players that wanted data throughout the last seconds. \
         Below 100 % the server delivers less than the media's bit rate, and a buffer only delays \
         the stall.",
    ),
    ("Jitter", "RFC 3550 interarrival jitter at the end of each second."),
    (
        "Percentiles",
        "Of all samples together (HDR histograms, 1 % of the value), never averages of averages.",
    ),
];

fn generator_limited() -> String {
    format!(
        "An engine thread above {:.0} % of its core, a loop more than {LAG_P99_MS_MAX:.0} ms late \
         (p99) or more than {:.0} % CPU steal, in more than {:.0} % of the seconds; or any \
         datagram or observation dropped by the generator. Such a run is invalid, not failed.",
        THREAD_CPU_RATIO_MAX * 100.0,
        STEAL_RATIO_MAX * 100.0,
        LIMITED_RATIO_MAX * 100.0,
    )
}

pub(crate) fn render() -> String {
    let mut out = String::from("<h2>How this was measured</h2><dl class=\"glossary\">");
    let limited = generator_limited();
    for (name, text) in ENTRIES.into_iter().chain([("Generator limited", limited.as_str())]) {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(text));
    }
    out.push_str("</dl>");
    out
}

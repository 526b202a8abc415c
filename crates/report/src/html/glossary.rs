//! How each figure was measured, with its source.

use std::fmt::Write as _;

use throng_observation::limits::{
    LAG_P99_MS_MAX, LIMITED_RATIO_MAX, STEAL_RATIO_MAX, THREAD_CPU_RATIO_MAX,
};

use super::markup::{escape, slug};

/// A term, how the heads of tables and cards begin that show it, and how it is measured.
const ENTRIES: [(&str, &[&str], &str); 10] = [
    (
        "Connect, first frame",
        &["connect", "first frame"],
        "From the planned moment of the join, whether or not the generator was late. Percentiles \
         cover all intended participants (Kaplan–Meier): failed ones count as infinitely late; \
         those that left before are censored, and count for as long as they waited.",
    ),
    (
        "Packet loss",
        &["packet loss", "loss"],
        "Packets expected from the sequence numbers less packets received in the end, over \
         packets expected (RFC 3550 A.3). Packets recovered by retransmission are not lost.",
    ),
    (
        "Delay above floor",
        &["delay above floor"],
        "Arrival time less RTP time of each complete frame, above the lowest of its own track. It \
         needs no synchronised clock and shows growing queues; it does not show a constant delay.",
    ),
    (
        "One-way delay",
        &["p50 from capture"],
        "Arrival less the capture time that the stream carries: an in-media mark, else \
         abs-capture-time, else the RTCP sender reports, never a mixture; the figures name their \
         basis. Sender reports are most often the server's own: they cover the path from its \
         egress, not from the source. The stated clock error bounds its error. Where frames seem \
         to arrive before their capture by more than the clock error, the clocks disagree: their \
         share and by how much is said. A percentile that lies among such frames is not shown.",
    ),
    (
        "Frame rate",
        &["frames per second", "fps"],
        "Frames of which every packet arrived and whose references were decodable too, per second \
         and track. The source's rate is by its RTP timestamps.",
    ),
    (
        "Freeze",
        &["freezes", "frozen", "time frozen"],
        "An interval between frames of at least max(3δ, δ + 150 ms), δ being the mean of the last \
         30 (W3C webrtc-stats).",
    ),
    (
        "Startup, stall",
        &["startup", "time stalled"],
        "Of players, which fetch media and play it from a buffer. Startup: from the planned \
         moment of the join until enough was buffered and playback began. Stall: playback had \
         begun and the buffer ran empty; the stall ratio is time stalled over time stalled and \
         playing, without startup and the pauses of users (CTA-2066).",
    ),
    (
        "Delivery",
        &["delivery, p5"],
        "Media time received over time, of players that wanted data throughout the last seconds. \
         Below 100 % the server delivers less than the media's bit rate, and a buffer only delays \
         the stall.",
    ),
    ("Jitter", &["jitter"], "RFC 3550 interarrival jitter at the end of each second."),
    (
        "Percentiles",
        &["p50"],
        "Of all samples together (HDR histograms, 1 % of the value), never averages of averages.",
    ),
];

/// The term whose text has figures in it, and the heads that show it.
const LIMITED: (&str, &[&str]) = ("Generator limited", &["generator"]);

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

/// The id of the term that a head shows; `None` for what the glossary does not have.
pub(super) fn id_of(head: &str) -> Option<String> {
    let begins = |begin: &&str| {
        head.strip_prefix(*begin).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let mut terms = ENTRIES.into_iter().map(|(name, heads, _)| (name, heads)).chain([LIMITED]);
    terms.find(|(_, heads)| heads.iter().any(begins)).map(|(name, _)| id(name))
}

fn id(name: &str) -> String {
    format!("term-{}", slug(name))
}

pub(crate) fn render() -> String {
    let mut out = String::from("<h2>How this was measured</h2><dl class=\"glossary\">");
    let limited = generator_limited();
    let texts = ENTRIES.into_iter().map(|(name, _, text)| (name, text));
    for (name, text) in texts.chain([(LIMITED.0, limited.as_str())]) {
        let (id, name, text) = (id(name), escape(name), escape(text));
        let _ = write!(out, "<dt id=\"{id}\">{name}</dt><dd>{text}</dd>");
    }
    out.push_str("</dl>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_lead_to_the_term_that_they_show() {
        let of = |head| id_of(head).unwrap_or_default();
        assert_eq!(of("connect, p50"), "term-connect-first-frame");
        assert_eq!(of("p50 from capture: to picture"), "term-one-way-delay");
        assert_eq!(of("generator"), "term-generator-limited");
        // Delivery of a chat's messages is no delivery of media; another word may begin alike.
        for head in ["delivery, p95", "losses", "generators", ""] {
            assert_eq!(id_of(head), None, "{head}");
        }
    }

    #[test]
    fn every_term_can_be_led_to() {
        let page = render();
        for (name, heads, _) in ENTRIES {
            assert!(page.contains(&format!("<dt id=\"{}\">", id(name))), "{name}");
            for head in heads {
                assert_eq!(id_of(head), Some(id(name)), "{head}");
            }
        }
    }
}

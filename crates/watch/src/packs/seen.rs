//! Log lines that servers wrote, and the patterns for which none is known yet.
//!
//! A pattern that was taken from a server's source may name a line that no server writes. Each has
//! a line here that was seen of the running program, at its limit.

use throng_observation::pack::LogPattern;

use super::*;

/// Pack, pattern, and a line that was seen. A line that several patterns match is there for each.
pub(crate) const SEEN: &[(&str, &str, &str)] = &[
    ("galene", "connection_limit", "2026/11/29 17:18:52 WHIP: too many users"),
    ("generic", "address_in_use", "OSError: [Errno 98] Address already in use"),
    ("generic", "crashed", "bash: line 1:  7229 Segmentation fault      sleep 5"),
    ("generic", "disk_full", "bash: line 1: echo: write error: No space left on device"),
    ("generic", "no_ports", "OSError: [Errno 99] Cannot assign requested address"),
    ("generic", "out_of_memory", "OSError: [Errno 12] Cannot allocate memory"),
    // go2rtc.
    (
        "generic",
        "too_many_open_files",
        "2026/11/29 17:19:43 http: Accept error: accept tcp [::]:1984: accept4: too many open \
         files; retrying in 5ms",
    ),
    ("generic", "would_block", "BlockingIOError: [Errno 11] Resource temporarily unavailable"),
    (
        "live555",
        "frame_too_large",
        "MultiFramedRTPSink::afterGettingFrame1(): The input frame data was too large for our \
         buffer size (300552).  430843 bytes of trailing data was dropped!  Correct this by \
         increasing \"OutPacketBuffer::maxSize\" to at least 730843, *before* creating this \
         'RTPSink'.  (Current value is 300000.)",
    ),
    (
        "mediamtx",
        "connection_limit",
        "2026/11/29 17:17:14 INF [RTSP] [conn 10.84.1.1:46654] closed: maximum reader count \
         reached",
    ),
    (
        "mediamtx",
        "reader_too_slow",
        "2026/11/29 17:18:18 WAR [RTSP] [session f6e8ff40] reader is too slow, discarding 43 \
         frames",
    ),
    ("ovenmediaengine", "queue_over_threshold", FULL_OUTBOUND_WORKER),
    ("ovenmediaengine", "queue_over_threshold", FULL_STREAM_WORKER),
    ("ovenmediaengine", "stream_worker_queue", FULL_STREAM_WORKER),
    (
        "srs",
        "circuit_breaker",
        "[2026-11-29 17:16:58.517][INFO][16682][z9494750] CircuitBreaker: cpu=4.00%,29MB, \
         break=1,1,0, cond=4.00%",
    ),
];

const FULL_OUTBOUND_WORKER: &str = "[2026-11-27 10:04:11.501] W [OutboundWorker:4705] ManagedQueue | managed_queue.h:470  | [3] mngq:v=#default#app:p=imr:n=outbound has exceeded the threshold and increased peak. size: 501, threshold: 500, peak: 501, imps: 90, omps: 12";

const FULL_STREAM_WORKER: &str = "[2026-11-27 10:04:11.327] W [AW-WebRTC0:4711] ManagedQueue | managed_queue.h:470  | [12] mngq:v=#default#app:s=live:p=pub:n=streamworker_webrtc has exceeded the threshold and increased peak. size: 922, threshold: 500, peak: 922, imps: 309, omps: 230";

/// Pack, pattern, and why no line of it is in [`SEEN`].
const UNSEEN: &[(&str, &str, &str)] = &[
    ("caddy", "dial_failed", DRIVEN),
    ("caddy", "handled_5xx", DRIVEN),
    ("coturn", "no_ports", DRIVEN),
    ("coturn", "quota_reached", DRIVEN),
    ("coturn", "unauthorised", DRIVEN),
    ("ffmpeg", "bad_input", DRIVEN),
    ("ffmpeg", "connection_lost", DRIVEN),
    ("ffmpeg", "dropped", DRIVEN),
    ("ffmpeg", "progress", DRIVEN),
    ("ffmpeg", "queue_blocking", DRIVEN),
    ("ffmpeg", "too_late", DRIVEN),
    ("generic", "conntrack_full", KERNEL),
    ("generic", "no_buffer_space", KERNEL),
    ("generic", "syn_flood", KERNEL),
    ("gstreamer", "not_negotiated", DRIVEN),
    ("gstreamer", "resource_error", DRIVEN),
    ("gstreamer", "too_slow", DRIVEN),
    ("janus", "dtls_alert", DRIVEN),
    ("janus", "ice_failed", DRIVEN),
    ("janus", "old_packet_discarded", "of a report by others: its thread has to wait for seconds"),
    ("janus", "session_timeout", DRIVEN),
    ("janus", "srtp_error", "needs packets that are replayed or of an earlier negotiation"),
    ("lighttpd", "connection_limit", DRIVEN),
    ("lighttpd", "out_of_fds", DRIVEN),
    ("livekit", "high_cpu_load", "needs a host that is full for as long as LiveKit looks at it"),
    ("livekit", "join_failed", DRIVEN),
    ("livekit", "peer_connection_failed", DRIVEN),
    ("nginx", "buffered_to_file", DRIVEN),
    ("nginx", "limited", DRIVEN),
    ("nginx", "no_live_upstreams", DRIVEN),
    ("nginx", "status_502", DRIVEN),
    ("nginx", "status_5xx", DRIVEN),
    ("nginx", "upstream_closed", DRIVEN),
    ("nginx", "upstream_no_ports", DRIVEN),
    ("nginx", "upstream_refused", DRIVEN),
    ("nginx", "upstream_timed_out", DRIVEN),
    ("nginx", "worker_connections", DRIVEN),
    ("ovenmediaengine", "queue_full", "needs a transcoder that does not keep up"),
    ("prosody", "accept_failed", DRIVEN),
    ("prosody", "rate_limited", DRIVEN),
    ("prosody", "traceback", DRIVEN),
];

const DRIVEN: &str = "scripts/drive-logs.py drives the server to it";
const KERNEL: &str = "words of the kernel, on a host that lacks room";

/// How many there are. There is no reason for more: who adds a pattern has seen its line.
const UNSEEN_MAX: usize = 41;

fn is_of((of, id, _): &(&str, &str, &str), pack: &Pack, log: &LogPattern) -> bool {
    *of == pack.pack && *id == log.id
}

/// The first line of a pattern.
pub(crate) fn line_of(pack: &str, id: &str) -> &'static str {
    let found = SEEN.iter().find(|(of, known, _)| (*of, *known) == (pack, id));
    found.map(|(_, _, line)| *line).unwrap()
}

#[test]
fn every_pattern_matches_a_line_that_was_seen() {
    for pack in built_in() {
        for log in &pack.logs {
            let name = format!("{}: {}", pack.pack, log.id);
            let pattern = compile(&log.pattern).unwrap();
            let lines: Vec<_> = SEEN.iter().filter(|row| is_of(row, &pack, log)).collect();
            for (_, _, line) in &lines {
                assert!(pattern.is_match(line.as_bytes()), "{name} does not match {line}");
            }
            let is_unseen = UNSEEN.iter().any(|row| is_of(row, &pack, log));
            assert_eq!(
                lines.is_empty(),
                is_unseen,
                "{name}: drive the server to its limit, and write a line of it into SEEN"
            );
        }
    }
}

#[test]
fn what_was_seen_and_what_was_not_are_patterns_of_packs() {
    let packs = built_in();
    for row in SEEN.iter().chain(UNSEEN) {
        let is_known = packs.iter().any(|pack| pack.logs.iter().any(|log| is_of(row, pack, log)));
        assert!(is_known, "{row:?}");
    }
    assert!(UNSEEN.len() <= UNSEEN_MAX, "a pattern needs a line that was seen");
}

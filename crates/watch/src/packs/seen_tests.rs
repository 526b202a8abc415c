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
    // By scripts/drive-logs.py.
    (
        "caddy",
        "dial_failed",
        "{\"level\":\"error\",\"ts\":1795990316.6846926,\"logger\":\"http.log.error\",\"msg\":\"dial tcp 127.0.0.1:9003: connect: connection refused\",\"request\":{\"remote_ip\":\"127.0.0.1\",\"remote_port\":\"34938\",\"proto\":\"HTTP/1.1\",\"method\":\"GET\",\"host\":\"localhost\",\"uri\":\"/\",\"headers\":{\"Connection\":[\"close\"],\"Content-Length\":[\"0\"]}},\"duration\":0.000332684,\"status\":502,\"err_id\":\"hwtrn81y5\",\"err_trace\":\"reverseproxy.statusError (reverseproxy.go:1272)\"}",
    ),
    (
        "caddy",
        "handled_5xx",
        "{\"level\":\"error\",\"ts\":1795990316.6846926,\"logger\":\"http.log.error\",\"msg\":\"dial tcp 127.0.0.1:9003: connect: connection refused\",\"request\":{\"remote_ip\":\"127.0.0.1\",\"remote_port\":\"34938\",\"proto\":\"HTTP/1.1\",\"method\":\"GET\",\"host\":\"localhost\",\"uri\":\"/\",\"headers\":{\"Connection\":[\"close\"],\"Content-Length\":[\"0\"]}},\"duration\":0.000332684,\"status\":502,\"err_id\":\"hwtrn81y5\",\"err_trace\":\"reverseproxy.statusError (reverseproxy.go:1272)\"}",
    ),
    ("coturn", "no_ports", "0: : create_relay_ioa_sockets: no available ports 3"),
    (
        "coturn",
        "quota_reached",
        "0: : session 001000000000000002: realm <throng.test> user <viewer>: incoming packet ALLOCATE processed, error 486: Allocation Quota Reached",
    ),
    (
        "coturn",
        "unauthorised",
        "0: : session 000000000000000001: realm <throng.test> user <>: incoming packet message processed, error 401: Unauthorized",
    ),
    ("ffmpeg", "bad_input", "[h264 @ 0x55b648181900] error while decoding MB 24 19"),
    (
        "ffmpeg",
        "connection_lost",
        "[tcp @ 0x559c3ed9b0c0] Connection to tcp://127.0.0.1:9003 failed: Connection refused",
    ),
    (
        "ffmpeg",
        "dropped",
        "frame=   42 fps=0.0 q=-0.0 Lsize=N/A time=00:00:04.20 bitrate=N/A dup=0 drop=158 speed=83.3x    ",
    ),
    (
        "ffmpeg",
        "progress",
        "frame=   42 fps=0.0 q=-0.0 Lsize=N/A time=00:00:04.20 bitrate=N/A dup=0 drop=158 speed=83.3x    ",
    ),
    (
        "ffmpeg",
        "queue_blocking",
        "[mpegts @ 0x55dfd8954a40] Thread message queue blocking; consider raising the thread_queue_size option (current value: 1)",
    ),
    ("ffmpeg", "too_late", "[mpegts @ 0x55f5823f4900] DTS 126000 < 484200 out of order"),
    (
        "generic",
        "no_ports",
        "2026/11/29 22:11:47 [crit] 27290#27290: *22 connect() to 127.0.0.1:9002 failed (99: Cannot assign requested address) while connecting to upstream, client: 127.0.0.1, server: , request: \"GET /silent HTTP/1.1\", upstream: \"http://127.0.0.1:9002/silent\", host: \"localhost\"",
    ),
    (
        "generic",
        "too_many_open_files",
        "servpI_NbT1MNGUj    debug\tError accepting new client: Too many open files, server will be paused for 10s",
    ),
    (
        "gstreamer",
        "not_negotiated",
        "ERROR: from element /GstPipeline:pipeline0/GstFakeSrc:fakesrc0: Internal data stream error.",
    ),
    (
        "gstreamer",
        "resource_error",
        "ERROR: from element /GstPipeline:pipeline0/GstFileSink:filesink0: Could not open file \"FOLDER/none/file\" for writing.",
    ),
    (
        "gstreamer",
        "too_slow",
        "WARNING: from element /GstPipeline:pipeline0/GstFakeSink:fakesink0: A lot of buffers are being dropped.",
    ),
    ("janus", "session_timeout", "Timeout expired for session 2668706879578972..."),
    (
        "lighttpd",
        "connection_limit",
        "2026-11-29 22:11:51: (server.c.1089) [note] sockets disabled, connection limit reached",
    ),
    (
        "lighttpd",
        "out_of_fds",
        "2026-11-29 22:11:51: (server.c.1089) [note] sockets disabled, out-of-fds",
    ),
    (
        "livekit",
        "high_cpu_load",
        "{\"level\":\"info\",\"ts\":1795990394.4512672,\"logger\":\"livekit\",\"caller\":\"hwstats/cpu.go:211\",\"msg\":\"high cpu load\",\"load\":1}",
    ),
    (
        "livekit",
        "peer_connection_failed",
        "{\"level\":\"debug\",\"ts\":1795990418.0990992,\"logger\":\"livekit.transport\",\"caller\":\"rtc/transport.go:847\",\"msg\":\"ice connection state change\",\"room\":\"room\",\"roomID\":\"RM_iuTGJJVQganj\",\"participant\":\"throng-0-6f74e\",\"participantID\":\"PA_sUcZNvgaf7w3\",\"remote\":false,\"transport\":\"PUBLISHER\",\"state\":\"failed\"}",
    ),
    (
        "nginx",
        "buffered_to_file",
        "2026/11/29 22:11:47 [warn] 27290#27290: *15 a client request body is buffered to a temporary file FOLDER/b/0000000001, client: 127.0.0.1, server: , request: \"POST /closed HTTP/1.1\", host: \"localhost\"",
    ),
    (
        "nginx",
        "limited",
        "2026/11/29 22:11:47 [error] 27290#27290: *14 limiting requests, excess: 1.000 by zone \"requests\", client: 127.0.0.1, server: , request: \"GET /often HTTP/1.1\", host: \"localhost\"",
    ),
    (
        "nginx",
        "no_live_upstreams",
        "2026/11/29 22:11:47 [error] 27290#27290: *11 no live upstreams while connecting to upstream, client: 127.0.0.1, server: , request: \"GET /down HTTP/1.1\", upstream: \"http://down/down\", host: \"localhost\"",
    ),
    (
        "nginx",
        "status_502",
        "127.0.0.1 - - [29/Nov/2026:22:11:46 +0000] \"GET /closed HTTP/1.1\" 502 157 \"-\" \"-\"",
    ),
    (
        "nginx",
        "status_5xx",
        "127.0.0.1 - - [29/Nov/2026:22:11:46 +0000] \"GET /closed HTTP/1.1\" 502 157 \"-\" \"-\"",
    ),
    (
        "nginx",
        "upstream_closed",
        "2026/11/29 22:11:46 [error] 27290#27290: *2 upstream prematurely closed connection while reading response header from upstream, client: 127.0.0.1, server: , request: \"GET /closed HTTP/1.1\", upstream: \"http://127.0.0.1:9001/closed\", host: \"localhost\"",
    ),
    (
        "nginx",
        "upstream_no_ports",
        "2026/11/29 22:11:47 [crit] 27290#27290: *22 connect() to 127.0.0.1:9002 failed (99: Cannot assign requested address) while connecting to upstream, client: 127.0.0.1, server: , request: \"GET /silent HTTP/1.1\", upstream: \"http://127.0.0.1:9002/silent\", host: \"localhost\"",
    ),
    (
        "nginx",
        "upstream_refused",
        "2026/11/29 22:11:47 [error] 27290#27290: *6 connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1, server: , request: \"GET /refused HTTP/1.1\", upstream: \"http://127.0.0.1:9003/refused\", host: \"localhost\"",
    ),
    (
        "nginx",
        "upstream_timed_out",
        "2026/11/29 22:11:47 [error] 27290#27290: *4 upstream timed out (110: Connection timed out) while reading response header from upstream, client: 127.0.0.1, server: , request: \"GET /silent HTTP/1.1\", upstream: \"http://127.0.0.1:9002/silent\", host: \"localhost\"",
    ),
    (
        "nginx",
        "worker_connections",
        "2026/11/29 22:11:49 [warn] 27312#27312: 8 worker_connections are not enough, reusing connections",
    ),
    (
        "prosody",
        "accept_failed",
        "servpI_NbT1MNGUj    debug\tError accepting new client: Too many open files, server will be paused for 10s",
    ),
    (
        "prosody",
        "traceback",
        "c2s55fae1598770     error\tTraceback[c2s]: FOLDER/modules/mod_broken.lua:1: broken",
    ),
];

const FULL_OUTBOUND_WORKER: &str = "[2026-11-27 10:04:11.501] W [OutboundWorker:4705] ManagedQueue | managed_queue.h:470  | [3] mngq:v=#default#app:p=imr:n=outbound has exceeded the threshold and increased peak. size: 501, threshold: 500, peak: 501, imps: 90, omps: 12";

const FULL_STREAM_WORKER: &str = "[2026-11-27 10:04:11.327] W [AW-WebRTC0:4711] ManagedQueue | managed_queue.h:470  | [12] mngq:v=#default#app:s=live:p=pub:n=streamworker_webrtc has exceeded the threshold and increased peak. size: 922, threshold: 500, peak: 922, imps: 309, omps: 230";

/// Pack, pattern, and why no line of it is in [`SEEN`].
const UNSEEN: &[(&str, &str, &str)] = &[
    ("generic", "conntrack_full", KERNEL),
    ("generic", "no_buffer_space", KERNEL),
    ("generic", "syn_flood", KERNEL),
    ("janus", "dtls_alert", "viewers that leave in good order cause none"),
    ("janus", "ice_failed", "viewers that fall silent for 50 s cause none"),
    ("janus", "old_packet_discarded", "of a report by others: its thread has to wait for seconds"),
    ("janus", "srtp_error", "needs packets that are replayed or of an earlier negotiation"),
    ("livekit", "join_failed", "a room that does not exist causes none"),
    ("ovenmediaengine", "queue_full", "needs a transcoder that does not keep up"),
];

const KERNEL: &str = "words of the kernel, on a host that lacks room";

/// How many there are; not more: who adds a pattern has seen its line.
const UNSEEN_MAX: usize = 9;

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

//! A short fuzz test in every `cargo test`: messages of real servers, damaged in simple ways, many
//! times per parser. The seed is fixed, so a failure is reproducible; `fuzz/` has the long-running
//! targets.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

const ROUNDS: usize = 20_000;

#[test]
fn descriptions_hold_their_laws_for_any_bytes() {
    hunt::hunt(laws::sdp, &hunt::seeds_in("fuzz/seeds/sdp"), hunt::TEXT, ROUNDS);
}

#[test]
fn janus_holds_its_laws_for_any_bytes() {
    hunt::hunt(laws::janus, &hunt::seeds_in("fuzz/seeds/janus"), hunt::TEXT, ROUNDS);
}

#[test]
fn ome_holds_its_laws_for_any_bytes() {
    hunt::hunt(laws::ome, &hunt::seeds_in("fuzz/seeds/ome"), hunt::TEXT, ROUNDS);
}

#[test]
fn whep_holds_its_laws_for_any_bytes() {
    hunt::hunt(laws::whep, &hunt::seeds_in("fuzz/seeds/whep"), hunt::TEXT, ROUNDS);
}

#[test]
fn videorooms_hold_their_laws_for_any_bytes() {
    let words = [
        hunt::TEXT,
        &[
            b"\nwait\n",
            b"\nnobody\n",
            b"\nall\n",
            b"\nmute\n",
            b"\nspeak\n",
            b"\noff\n",
            b"\nlost\n",
        ],
    ];
    hunt::hunt(laws::videoroom, &hunt::seeds_in("fuzz/seeds/videoroom"), &words.concat(), ROUNDS);
}

#[test]
fn whip_holds_its_laws_for_any_bytes() {
    hunt::hunt(laws::whip, &hunt::seeds_in("fuzz/seeds/whep"), hunt::TEXT, ROUNDS);
}

#[test]
fn rtsp_holds_its_laws_for_any_bytes() {
    let words = [
        hunt::TEXT,
        &[
            b"$\x00\x00\x10",
            b"$\x01",
            b"\r\n\r\n",
            b"RTSP/1.0 200 OK\r\nCSeq: 2\r\n",
            b"Session: 1\r\n",
            b"Content-Length: ",
        ],
    ];
    hunt::hunt(laws::rtsp, &hunt::seeds_in("fuzz/seeds/rtsp"), &words.concat(), ROUNDS);
}

#[test]
fn relays_hold_their_laws_for_any_bytes() {
    hunt::hunt(laws::relay, &hunt::seeds_in("fuzz/seeds/relay"), hunt::TEXT, 10 * ROUNDS);
}

#[test]
fn chats_hold_their_laws_for_any_bytes() {
    let words = [
        hunt::TEXT,
        &[
            b"\n@cut@\n",
            b"@id@",
            b"<a>",
            b"</a>",
            b"'/>",
            b"&#x1f600;",
            b"&lt;",
            b"[k3f9.0]",
            b" xmlns='urn:xmpp:sm:3'",
            b"<status code='110'/>",
            b"]]>",
            b"<!--",
        ],
    ];
    hunt::hunt(laws::chat, &hunt::seeds_in("fuzz/seeds/chat"), &words.concat(), ROUNDS / 4);
}

#[test]
fn messages_of_peers_hold_their_laws_for_any_bytes() {
    let words = [
        hunt::TEXT,
        &[
            b"cstr",
            b"cend",
            b"dstr",
            b"dend",
            b"l\x10\x01",
            b"i\x01",
            b"r\x01",
            b"s\x04",
            b"{\"c\":",
            b"|",
        ],
    ];
    hunt::hunt(laws::peers, &hunt::seeds_in("fuzz/seeds/peers"), &words.concat(), 10 * ROUNDS);
}

#[test]
fn event_streams_hold_their_laws_for_any_bytes() {
    let words = [
        hunt::TEXT,
        &[
            b"\r",
            b"\n\n",
            b"\r\r\n",
            b"data",
            b"data: ",
            b"event: ping\n",
            b"id: 7\n",
            b"id\n",
            b"retry: 0\n",
            b"\xef\xbb\xbf",
            b"\xc3",
            b"welcome\n\n",
        ],
    ];
    hunt::hunt(laws::events, &hunt::seeds_in("fuzz/seeds/events"), &words.concat(), ROUNDS / 4);
}

/// A message of RTMP in one chunk: a command with a name, a number, and further values.
fn command(name: &str, transaction: f64, values: &[u8]) -> Vec<u8> {
    let mut body = vec![2, 0, name.len() as u8];
    body.extend(name.bytes());
    body.push(0);
    body.extend(transaction.to_be_bytes());
    body.extend(values);
    [&[3, 0, 0, 0, 0, 0, body.len() as u8, 20, 0, 0, 0, 0], &body[..]].concat()
}

#[test]
fn rtmp_holds_its_laws_for_any_bytes() {
    // Null, and an object with a code.
    let status = |code: &str| {
        let text = [&[2, 0, code.len() as u8], code.as_bytes()].concat();
        [&[5, 3, 0, 4], &b"code"[..], &text, &[0, 0, 9]].concat()
    };
    let control = |kind: u8, body: &[u8]| {
        [&[2, 0, 0, 0, 0, 0, body.len() as u8, kind, 0, 0, 0, 0], body].concat()
    };
    let dialogue = [
        control(5, &[0, 0x26, 0x25, 0xa0]),
        control(6, &[0, 0x26, 0x25, 0xa0, 2]),
        control(1, &[0, 0, 0x10, 0]),
        command("_result", 1.0, &status("NetConnection.Connect.Success")),
        control(4, &[0, 6, 0, 0, 0, 9]),
        command("_result", 4.0, &[5, 0, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
        command("onStatus", 0.0, &status("NetStream.Publish.Start")),
    ];
    let refusal = command("_error", 1.0, &status("NetConnection.Connect.Rejected"));
    // A list, an array with a date in it, a long text, nothing.
    let values = [
        10, 0, 0, 0, 2, 1, 1, 8, 0, 0, 0, 1, 0, 1, b'a', 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
    ];
    let long = [12, 0, 0, 0, 3, b'a', b'b', b'c', 6, 7, 0, 1];
    let seeds = [dialogue.concat(), refusal, values.to_vec(), long.to_vec()];
    let words: [&[u8]; 6] =
        [&[0xc3], &[0x43], &[0xff; 4], &[3, 0, 1, b'a'], &[0, 0, 9], b"_result"];
    hunt::hunt(laws::rtmp, &seeds, &words, ROUNDS);
}

/// A field of protobuf with a length.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = [content.len() as u8 & 0x7f | 0x80, (content.len() >> 7) as u8];
    [&[tag << 3 | 2], &length[..], content].concat()
}

#[test]
fn livekit_holds_its_laws_for_any_bytes() {
    let number = |tag: u8, value: u8| vec![tag << 3, value];
    let track = |sid: &str, kind: u8| {
        let layer = [number(1, 0), vec![0x10, 0x80, 2], vec![0x18, 0x90, 1]].concat();
        field(4, &[field(1, sid.as_bytes()), number(2, kind), field(10, &layer)].concat())
    };
    let person = |name: &str, state: u8, tracks: &[Vec<u8>]| {
        let told = [field(1, name.as_bytes()), field(2, name.as_bytes()), number(3, state)];
        [told.concat(), tracks.concat()].concat()
    };
    let other = person("PA_1", 2, &[track("TR_a1", 0), track("TR_v1", 1)]);
    let turn = [field(1, b"turn:10.0.0.1:3478"), field(2, b"u"), field(3, b"c")].concat();
    let join = [
        field(2, &person("PA_0", 2, &[])),
        field(3, &other),
        field(5, &turn),
        number(10, 15),
        number(11, 5),
    ];
    let sdp =
        b"v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=sendonly\r\na=msid:s TR_a1\r\n";
    let description =
        |kind: &str| [field(1, kind.as_bytes()), field(2, sdp), number(3, 7)].concat();
    let candidate = br#"{"candidate":"candidate:1 1 udp 1 10.0.0.1 9 typ host","sdpMLineIndex":0}"#;
    let said = [
        field(1, &join.concat()),
        field(3, &description("offer")),
        field(2, &description("answer")),
        field(4, &[field(1, candidate), number(2, 1)].concat()),
        field(5, &field(1, &person("PA_1", 3, &[]))),
        field(
            6,
            &[field(1, b"cid"), field(2, &[field(1, b"TR_x"), number(2, 1)].concat())].concat(),
        ),
        field(9, &[field(1, b"TR_x"), number(2, 1)].concat()),
        field(13, &field(1, &[field(2, b"TR_v1"), number(3, 1)].concat())),
        field(8, &[number(2, 4), number(3, 0)].concat()),
    ];
    let framed = |message: &Vec<u8>| [&(message.len() as u16).to_be_bytes(), &message[..]].concat();
    let session: Vec<u8> = said.iter().flat_map(framed).collect();
    let acting = [&framed(&said[0])[..], &[0xff, 0, 0xff, 3, 0xff, 1], &framed(&said[1])].concat();
    let words: [&[u8]; 5] = [&[0xff, 0], &[0xff, 6], &[0x80, 0x80, 1], &[0x0a], &[0x1a, 0]];
    hunt::hunt(laws::livekit, &[session, acting], &words, ROUNDS / 4);
}

#[test]
fn watch_pages_hold_their_laws_for_any_bytes() {
    let words: [&[u8]; 6] =
        [b"\0", b"\x1e", b"42/live-videos,", b"[\"state-change\",{\"state\":1}]", b"2", b"3probe"];
    let words = [hunt::TEXT, &words].concat();
    hunt::hunt(laws::peertube, &hunt::seeds_in("fuzz/seeds/peertube"), &words, ROUNDS);
}

#[test]
fn trackers_hold_their_laws_for_any_bytes() {
    let words: [&[u8]; 4] = [b"@hash@", b"@offer@", b"\"interval\":1e-9", b"\"announce\""];
    let words = [hunt::TEXT, &words].concat();
    hunt::hunt(laws::tracker, &hunt::seeds_in("fuzz/seeds/tracker"), &words, ROUNDS / 10);
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

#[test]
fn content_encodings_hold_their_laws_for_any_bytes() {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    /// A playlist by Google's encoder.
    const BROTLI: &str = "1b5b00f88dd44ef7426d6ac9ced6828a9d693a9ba0f9ed4bff4f051aa7d4e59d82d281157081f2eef8e1fa8a14003b1a31fd2f";

    let text = "#EXTM3U\n#EXTINF:4.000,\nsegment-1.ts\n".repeat(5);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
    for to in [&mut gzip as &mut dyn Write, &mut zlib, &mut bare] {
        to.write_all(text.as_bytes()).unwrap();
    }
    let seeds = [
        gzip.finish().unwrap(),
        zlib.finish().unwrap(),
        bare.finish().unwrap(),
        hex(BROTLI),
        ruzstd::encoding::compress_to_vec(
            text.as_bytes(),
            ruzstd::encoding::CompressionLevel::Fastest,
        ),
    ];
    hunt::hunt(laws::encoding, &seeds, &[], ROUNDS / 10);
}

#[test]
fn recognition_holds_its_laws_for_any_bytes() {
    let words: [&[u8]; 6] =
        [b"\0", b"#EXTM3U\n", b"\"data\":{\"id\":1}", b"<MPD", b"\"list\":[", b"RTSP/1.0 200 OK"];
    let words = [hunt::TEXT, &words].concat();
    hunt::hunt(laws::recognition, &hunt::seeds_in("fuzz/seeds/recognition"), &words, ROUNDS / 4);
}

#[test]
fn cookies_hold_their_laws_for_any_bytes() {
    let words: [&[u8]; 6] =
        [b"; Domain=", b"; Path=/", b"; Secure", b"; SameSite=None", b"; Max-Age=-1", b"__Host-"];
    let words = [hunt::TEXT, &words].concat();
    hunt::hunt(laws::cookies, &hunt::seeds_in("fuzz/seeds/cookies"), &words, ROUNDS / 4);
}

#[test]
fn cors_holds_its_laws_for_any_bytes() {
    let words: [&[u8]; 4] = [b"*", b"\naccess-control-allow-origin: ", b"null", b", "];
    let words = [hunt::TEXT, &words].concat();
    hunt::hunt(laws::cors, &hunt::seeds_in("fuzz/seeds/cors"), &words, ROUNDS / 2);
}

#[test]
fn what_fuzzing_has_kept_holds_the_laws() {
    hunt::replay("chat", laws::chat);
    hunt::replay("cookies", laws::cookies);
    hunt::replay("cors", laws::cors);
    hunt::replay("encoding", laws::encoding);
    hunt::replay("events", laws::events);
    hunt::replay("janus", laws::janus);
    hunt::replay("livekit", laws::livekit);
    hunt::replay("ome", laws::ome);
    hunt::replay("peers", laws::peers);
    hunt::replay("peertube", laws::peertube);
    hunt::replay("recognition", laws::recognition);
    hunt::replay("relay", laws::relay);
    hunt::replay("rtmp", laws::rtmp);
    hunt::replay("rtsp", laws::rtsp);
    hunt::replay("sdp", laws::sdp);
    hunt::replay("tracker", laws::tracker);
    hunt::replay("videoroom", laws::videoroom);
    hunt::replay("whep", laws::whep);
    hunt::replay("whip", laws::whip);
}

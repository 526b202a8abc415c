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

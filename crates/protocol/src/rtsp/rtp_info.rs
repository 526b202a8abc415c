//! `RTP-Info` of a response to PLAY (RFC 2326 section 12.33): the first packet of each track. After
//! a seek it tells packets of the position before from those of the position after.

/// The first packet of one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirstPacket {
    /// The track's URL, absolute or relative; empty where the server wrote none.
    url: String,
    /// Its sequence number, where the server wrote one.
    sequence: Option<u16>,
}

/// Reads the header's value; parts that are not understood are ignored.
pub(super) fn read(value: &str) -> Vec<FirstPacket> {
    // A comma may be part of a URL: only one before `url=` separates tracks.
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = value;
    while let Some(at) = next_track(rest) {
        let (part, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        parts.push(part);
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    parts.push(rest);
    parts.into_iter().filter(|part| !part.trim().is_empty()).map(first_packet).collect()
}

/// Where the part of the next track begins, at its comma.
fn next_track(value: &str) -> Option<usize> {
    let commas = value.match_indices(',').map(|(at, _)| at);
    commas.into_iter().find(|at| {
        value
            .get(at + 1..)
            .is_some_and(|after| after.trim_start().to_ascii_lowercase().starts_with("url="))
    })
}

fn first_packet(part: &str) -> FirstPacket {
    let mut first = FirstPacket { url: String::new(), sequence: None };
    for field in part.split(';') {
        match field.trim().split_once('=') {
            Some((name, value)) if name.eq_ignore_ascii_case("url") => {
                value.trim().trim_matches('"').clone_into(&mut first.url);
            }
            Some((name, value)) if name.eq_ignore_ascii_case("seq") => {
                first.sequence = value.trim().parse().ok();
            }
            _ => {}
        }
    }
    first
}

/// The sequence numbers of tracks with these control URLs; a header that names as many tracks as
/// there are, by other URLs, has them in order.
pub(super) fn sequences(first: &[FirstPacket], urls: &[String]) -> Vec<Option<u16>> {
    let is = |packet: &FirstPacket, url: &String| {
        let (said, url) = (packet.url.trim_end_matches('/'), url.trim_end_matches('/'));
        !said.is_empty()
            && (said == url || url.strip_suffix(said).is_some_and(|base| base.ends_with('/')))
    };
    let by_url = urls.iter().map(|url| first.iter().find(|packet| is(packet, url)));
    let by_url: Vec<_> = by_url.collect();
    if by_url.iter().all(Option::is_none) && first.len() == urls.len() {
        return first.iter().map(|packet| packet.sequence).collect();
    }
    by_url.into_iter().map(|packet| packet.and_then(|packet| packet.sequence)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_are_found_by_url_or_else_by_order() {
        let urls = ["rtsp://h/a/stream=0".to_owned(), "rtsp://h/a/stream=1".to_owned()];
        let both = [Some(7), Some(65_535)];
        for (what, value, expect) in [
            (
                "gst-rtsp-server",
                "url=rtsp://h/a/stream=0;seq=7;rtptime=9, url=rtsp://h/a/stream=1;seq=65535;rtptime=1",
                both,
            ),
            (
                "other order",
                "url=rtsp://h/a/stream=1;seq=65535,url=rtsp://h/a/stream=0;seq=7",
                both,
            ),
            ("relative URLs", "url=stream=0;seq=7,url=stream=1;seq=65535", both),
            (
                "URLs of another host, in order",
                "url=rtsp://x/1;seq=7,url=rtsp://x/2;seq=65535",
                both,
            ),
            ("a comma in a URL", "url=rtsp://x/1,2;seq=7, url=\"rtsp://x/3\";seq=65535", both),
            ("one track of two", "url=rtsp://h/a/stream=1;seq=65535", [None, Some(65_535)]),
            ("no numbers", "url=rtsp://h/a/stream=0;rtptime=5", [None, None]),
            ("rubbish", ";;seq=99999;=,,url", [None, None]),
            ("nothing", "", [None, None]),
        ] {
            assert_eq!(sequences(&read(value), &urls), expect, "{what}");
        }
    }
}

//! Removes RTX (RFC 4588) from an offer: a stage that answers it retransmits on the stream's own
//! SSRC, as servers without RTX do.

/// `offer` without the payload types of RTX and the SSRC groups that name its streams (FID, RFC
/// 5576).
pub(crate) fn without_rtx(offer: &str) -> String {
    let mapped = offer.lines().filter_map(|line| line.strip_prefix("a=rtpmap:")?.split_once(' '));
    let rtx: Vec<&str> = mapped
        .filter(|(_, name)| name.to_ascii_lowercase().starts_with("rtx/"))
        .map(|(payload_type, _)| payload_type)
        .collect();
    let is_rtx = |payload_type: &str| rtx.contains(&payload_type);
    let mut kept = String::with_capacity(offer.len());
    for line in offer.lines() {
        let of_one =
            ["a=rtpmap:", "a=fmtp:", "a=rtcp-fb:"].iter().find_map(|name| line.strip_prefix(name));
        let is_group = line.starts_with("a=ssrc-group:FID");
        if is_group || of_one.and_then(|rest| rest.split(' ').next()).is_some_and(is_rtx) {
            continue;
        }
        if line.starts_with("m=") {
            // `m=video 9 UDP/TLS/RTP/SAVPF 96 97 …`: media, port and protocol come before the
            // payload types.
            let words =
                line.split(' ').enumerate().filter(|(place, word)| *place < 3 || !is_rtx(word));
            let words: Vec<&str> = words.map(|(_, word)| word).collect();
            kept.push_str(&words.join(" "));
        } else {
            kept.push_str(line);
        }
        kept.push_str("\r\n");
    }
    kept
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_of_rtx_is_left_and_all_else_is() {
        let offer = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n\
                     m=video 9 UDP/TLS/RTP/SAVPF 96 97 9\r\na=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\n\
                     a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=ssrc-group:FID 7 8\r\na=rtpmap:9 VP8/90000\r\n";
        let expect = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n\
                      m=video 9 UDP/TLS/RTP/SAVPF 96 9\r\na=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\n\
                      a=rtpmap:9 VP8/90000\r\n";
        assert_eq!(super::without_rtx(offer), expect);
    }
}

//! What a target URL begins with, for people who do not know yet: help texts and errors.

/// A URL of each protocol, and what it is for; one a line of help.
pub const TARGET_EXAMPLES: [(&str, &str); 14] = [
    ("whep+http://HOST/PATH", "viewers on any WHEP server"),
    ("ws://HOST:3333/APP/STREAM", "viewers on OvenMediaEngine"),
    ("janus+ws://HOST:8188/streaming/ID", "viewers on Janus Streaming"),
    ("janus+ws://HOST:8188/videoroom/ROOM", "a conference on Janus VideoRoom"),
    ("livekit+ws://HOST:7880/ROOM", "a conference on LiveKit"),
    ("http://HOST/PATH", "viewers of video files, HLS and DASH"),
    ("peertube+https://HOST/w/ID", "visitors of a page of PeerTube"),
    ("rtsp://HOST/PATH", "viewers on any RTSP server"),
    ("whip+http://HOST/PATH", "publishers by WHIP"),
    ("publish+rtsp://HOST/PATH", "publishers by RTSP"),
    ("publish+rtmp://HOST/APP/KEY", "publishers by RTMP"),
    ("publish+srt://HOST:9000", "publishers by SRT"),
    ("xmpp+ws://HOST/PATH?room=ROOM@SERVICE", "participants of an XMPP chat"),
    ("chat+ws://HOST/PATH", "participants of another chat, by template"),
];

/// All of them in a sentence, by scheme.
pub(super) fn sentence() -> String {
    let scheme = |url: &str| url.split("://").next().unwrap_or_default().to_owned();
    let all = TARGET_EXAMPLES.iter().map(|(url, what)| format!("`{}://…` for {what}", scheme(url)));
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::target::Target;

    #[test]
    fn each_protocol_has_one_example_which_is_a_target() {
        let protocols: BTreeSet<&str> = TARGET_EXAMPLES
            .iter()
            .map(|(url, _)| {
                let target = Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
                target.protocol().name()
            })
            .collect();
        assert_eq!(protocols.len(), TARGET_EXAMPLES.len(), "{protocols:?}");
        assert!(sentence().contains("`janus+ws://…` for viewers on Janus Streaming"));
    }
}

//! The reading of target URLs; displayed URLs contain no secret.

use super::*;
use crate::secret::Secret;

fn target(text: &str) -> Target {
    Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn the_scheme_names_the_protocol_and_the_real_url() {
    for (text, protocol, url) in [
        ("ws://host:3333/app/stream", Protocol::OvenMediaEngine, "ws://host:3333/app/stream"),
        (
            "wss://host:3334/app/stream/abr?transport=tcp",
            Protocol::OvenMediaEngine,
            "wss://host:3334/app/stream/abr?transport=tcp",
        ),
        ("janus+ws://h:8188/streaming/1", Protocol::Janus, "ws://h:8188/"),
        ("janus+wss://h/streaming/abc?path=/janus", Protocol::Janus, "wss://h/janus"),
        ("livekit+ws://h:7880/lesson", Protocol::LiveKit, "ws://h:7880/rtc"),
        ("livekit+wss://h/a%20b?path=/lk/&region=x", Protocol::LiveKit, "wss://h/lk/rtc?region=x"),
        ("whip+https://h/x?y=1", Protocol::Whip, "https://h/x?y=1"),
        ("whep+http://h/x", Protocol::Whep, "http://h/x"),
        ("publish+rtsp://h/live", Protocol::RtspPublish, "http://h:554/live"),
        ("Publish+RTSPS://h:8322/live", Protocol::RtspPublish, "https://h:8322/live"),
        ("publish+rtmp://h/live/key", Protocol::Rtmp, "http://h:1935/live/key"),
        ("publish+rtmp://h/stream", Protocol::Rtmp, "http://h:1935/stream"),
        ("Publish+RTMPS://h/a/b/key?x=1", Protocol::Rtmp, "https://h/a/b/key?x=1"),
        ("publish+srt://h:9000?streamid=a", Protocol::Srt, "http://h:9000/?streamid=a"),
        ("WHEP+HTTPS://h/x?y=1", Protocol::Whep, "https://h/x?y=1"),
    ] {
        let target = target(text);
        assert_eq!(
            (target.protocol(), target.url().in_clear().as_str()),
            (protocol, url),
            "{text}"
        );
        let is_by_udp = target.ip_protocol() == IpProtocol::Udp;
        assert_eq!(is_by_udp, protocol == Protocol::Srt, "{text}");
    }
}

#[test]
fn janus_mountpoints_are_numbers_or_text_and_may_have_a_pin() {
    for (text, expect) in [
        ("janus+ws://h/streaming/7", JanusId::Number(7)),
        ("janus+ws://h/streaming/seven", JanusId::Text("seven".into())),
        ("janus+ws://h/streaming/a%20b+c", JanusId::Text("a b+c".into())),
        ("janus+ws://h/streaming/a&b", JanusId::Text("a&b".into())),
    ] {
        let Place::Janus { id, .. } = target(text).endpoint.place else { panic!("{text}") };
        assert_eq!(id, expect);
    }
    let Endpoint { url, place } = target("janus+ws://h/streaming/7?pin=s3cret").endpoint;
    let Place::Janus { pin, .. } = place else { panic!("not Janus") };
    assert_eq!((pin.unwrap().expose(), url.in_clear().as_str()), ("s3cret", "ws://h/"));
}

#[test]
fn accounts_of_rtsp_and_xmpp_are_decoded_and_not_in_the_url() {
    for (text, url, shown) in [
        ("rtsp://joe:p%40ss@h/cam", "http://h:554/cam", "rtsp://…@h/cam"),
        ("publish+rtsps://joe:p%40ss@h/a", "https://h:322/a", "publish+rtsps://…@h/a"),
        ("xmpp+ws://joe:p%40ss@h/?room=a@b", "ws://h/", "xmpp+ws://…@h/?room=a@b"),
    ] {
        let target = target(text);
        assert_eq!((target.url().in_clear().as_str(), &*target.display()), (url, shown), "{text}");
        let (Place::Rtsp { account }
        | Place::RtspPublish { account }
        | Place::Xmpp { account, .. }) = target.endpoint.place
        else {
            panic!("{text}")
        };
        let account = account.unwrap();
        assert_eq!((&*account.name, account.password.expose()), ("joe", "p@ss"), "{text}");
    }
    let Place::Rtsp { account } = target("rtsp://h/cam").endpoint.place else { panic!("RTSP") };
    assert_eq!(account, None);
}

#[test]
fn other_urls_are_refused_with_the_mend() {
    for (text, help) in [
        ("http://h/whep", "`whep+http://h/whep`"),
        ("janus://h", "janus+ws://"),
        ("gopher://h/x", "janus+ws://"),
        ("publish+rtmp://h/", "publish+rtmp://127.0.0.1:1935/live/KEY"),
        ("rtmp://h/live/x", "publish+rtmp://HOST/APP/KEY"),
        ("rtmps://h/live/x", "publish+rtmps://"),
        ("rtmpt://h/live/x", "publish+rtmp://HOST/APP/KEY"),
        ("publish+srt://h", "publish+srt://127.0.0.1:9000"),
        ("srt://h:9000?streamid=publish:live", "publish+srt://HOST:PORT"),
        ("publish+srt://h:9000?streamid=#!::h=live/x,m=publish", "write `%23`"),
        ("publish+rtmp://h/live/key#1", "write `%23`"),
        ("publish+rtsp://h/live#1", "write `%23`"),
        ("rtsp://h/cam#1", "write `%23`"),
        ("rtspt://h/x", "rtsp_transport"),
        ("rtsp+publish://h/x", "publish+rtsp://"),
        ("ws://h:8188/", "janus+ws://"),
        ("janus+ws://h:8188/", "streaming/1"),
        ("janus+ws://h:8188/other/1", "streaming/1"),
        ("janus+ws://h:8188/streaming/", "streaming/1"),
        ("127.0.0.1:3333/app", "scheme"),
        ("ws://", "is not a URL"),
        ("whep+http://", "is not a URL"),
        ("whep+http:///whep", "it has no host"),
        ("rtsp:///cam", "it has no host"),
        ("http://?x", "it has no host"),
        ("webrtc://h/live/cam", "whep+http://HOST:1985/rtc/v1/whep/?app=APP&stream=STREAM"),
        ("livekit://h/room", "livekit+ws://"),
        ("livekit+ws://h:7880/", "livekit+ws://127.0.0.1:7880/lesson"),
        ("livekit+ws://h:7880/a/b", "?path="),
    ] {
        let error = Target::parse(text).expect_err(text).to_string();
        assert!(error.contains(help), "{text}: {error}");
    }
}

#[test]
fn what_is_wrong_is_told_from_what_to_write_whatever_the_text_has_in_it() {
    let error = Target::parse("cam; x").unwrap_err();
    assert_eq!(error.message(), "`cam; x` is not a URL (it has no `scheme://`)");
    assert_eq!(error.help(), "write for example `whep+http://127.0.0.1:7080/whep`");
    let scenario = "[target]\nurl = \"cam; x\"\n[run]\nduration = \"9s\"\n[crowd]\nsize = 1\n";
    let said = crate::Scenario::parse(scenario).unwrap_err().to_string();
    assert!(said.contains(&format!("`target.url`: {}", error.message())), "{said}");
}

#[test]
fn what_a_url_tells_its_server_alone_is_known() {
    for (url, expect) in [
        (
            "whep+http://joe:pass%20word@h/x?app=live&sig=a%3Dbcdefg",
            &["pass word", "pass%20word", "a=bcdefg", "a%3Dbcdefg"][..],
        ),
        ("janus+ws://h/videoroom/1?pin=1234", &["1234"]),
        ("publish+rtsp://joe:hunter2@h/x?token=t0ken123&codec=h264", &["hunter2", "t0ken123"]),
        ("xmpp+ws://joe:hunter2@h/ws?room=r@s", &["hunter2"]),
        ("http://h/token=abcdEFGH==/a.m3u8", &["abcdEFGH=="]),
        ("http://h/hmac=ab%2Bcd/a.m3u8", &["ab+cd", "ab%2Bcd"]),
        ("wss://h/app/stream?policy=p0licies&transport=tcp", &["p0licies"]),
        ("publish+srt://h:9000?streamid=live/key", &["live/key"]),
        ("http://h/exp=1~hmac=hunter2/a.m3u8?n=1", &["hunter2"]),
        ("janus+ws://h/streaming/1?path=/janus", &[]),
    ] {
        let secrets: Vec<Secret> = target(url).endpoint.secrets().collect();
        let secrets: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        assert_eq!(secrets, expect, "{url}");
    }
}

#[test]
fn nothing_shown_holds_a_secret() {
    for text in [
        "whep+http://joe:hunter2@h/x?token=hunter2",
        "https://joe:hunter2@h/film.mp4?signature=hunter2",
        "publish+rtsp://joe:hunter2@h/x?token=hunter2",
        "publish+rtmp://h/live/hunter2",
        "publish+rtmp://h/live/hunter2/",
        "publish+rtmp://h/hunter2%7B",
        "publish+rtmp://h/live/hunter2{n}?x={n}",
        "publish+rtmp://h/app{n}/hunter2",
        "publish+rtmp://h/app{n}/hunter2/",
        "publish+rtmp://h/app{n}\\hunter2",
        "publish+srt://h:9000?streamid=live/hunter2",
        // What is given to a server here may be its key elsewhere.
        "publish+rtmp://127.0.0.1/live/hunter2",
        "publish+rtmps://localhost/live/hunter2{n}",
        "publish+srt://127.0.0.1:9000?streamid=hunter2",
        "publish+srt://[::1]:9000?streamid=publish:hunter2{n}",
        "publish+srt://h:9000?streamid=publish:cam:joe:hunter2&latency=20",
        "publish+srt://h:9000?streamid=publish:cam{n}:joe:hunter2",
        "publish+srt://h:9000?latency={n}&streamid=hunter2",
        "publish+rtmps://joe:hunter2@h:8443/live/hunter2?token=hunter2",
        "publish+srt://h:9000?streamid=a&passphrase=hunter2",
        "livekit+ws://h/room?path=/p&secret=hunter2",
        "janus+ws://h/streaming/1?pin=hunter2",
        "janus+ws://h/streaming/1?path=/token=hunter2/janus",
        "janus+ws://h/videoroom/1?path=/exp=1~hmac=hunter2",
        "livekit+ws://h/room?path=/token=hunter2/p",
        "wss://h/app/stream?policy=hunter2&signature=hunter2&transport=tcp",
        "http://proxy/http://joe:hunter2@h/a",
        "http://h/hmac=hunter2/a.ts",
    ] {
        let shown = format!("{} {:?}", target(text).display(), target(text).token);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    for text in [
        "http://joe:hunter2@h/whep?token=hunter2",
        "ws://joe:hunter2@?hunter2",
        "x?hunter2",
        "rtmp://h/live/hunter2",
        "publish+rtmp:///live/hunter2",
        "Publish+RTMP:///hunter2",
        "publish+rtmp:/live/hunter2",
        "publish+rtmps://h:x/live/hunter2",
        "publish+rtmp://joe:a@hunter2@/live/x",
        "whep+http://joe:hunter2#1@h/x",
        "whep+http://joe:hunter2/1@h/x",
        "whep+http://joe:hunter2?1@h/x",
        "joe:hunter2@h/x",
    ] {
        let error = Target::parse(text).expect_err(text).to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
    assert_eq!(
        target("wss://h/app/stream?signature=x&transport=tcp").display(),
        "wss://h/app/stream?signature=…&transport=tcp"
    );
    for (text, shown) in [
        ("publish+rtmp://h/live/key/", "publish+rtmp://h/live/…"),
        ("publish+rtmp://h/app{n}/cam{n}b", "publish+rtmp://h/app{n}/…{n}…"),
        (
            "publish+srt://h:9000?latency=20&streamid=a",
            "publish+srt://h:9000/?latency=20&streamid=…",
        ),
        ("publish+srt://h:9000?streamid=a{n}", "publish+srt://h:9000?streamid=…{n}"),
        ("publish+rtmp://127.0.0.1/live/cam{n}", "publish+rtmp://127.0.0.1/live/…{n}"),
        ("publish+rtmp://127.0.0.1:80/live/key", "publish+rtmp://127.0.0.1:80/live/…"),
        ("publish+rtmps://[::1]:8443/live/key", "publish+rtmps://[::1]:8443/live/…"),
        ("publish+rtmps://localhost/live/key", "publish+rtmps://localhost/live/…"),
        ("publish+srt://127.0.0.1:9000?streamid=a", "publish+srt://127.0.0.1:9000/?streamid=…"),
    ] {
        assert_eq!(target(text).display(), shown);
    }
    // Streams that are named in the query are distinguished.
    assert_eq!(
        target("whep+http://h/rtc/v1/whep/?app=live&stream=lesson-2&token=x").display(),
        "whep+http://h/rtc/v1/whep/?app=live&stream=lesson-2&token=…"
    );
}

#[test]
fn what_is_displayed_without_secrets_reads_back_as_the_same_target() {
    for text in [
        "publish+srt://127.0.0.1:80/",
        "publish+srt://h:9000/",
        "ws://host:3333/app/stream",
        "janus+ws://h:8188/streaming/1",
        "janus+wss://h/streaming/a%2Fb?path=/janus",
        "whep+http://127.0.0.1:7080/whep",
        "whip+http://127.0.0.1:7080/whip",
        "livekit+ws://127.0.0.1:7880/lesson",
        "livekit+wss://h/a%2Fb%20c?path=/lk",
        "rtsp://h/cam",
        "publish+rtsp://127.0.0.1:8554/live-1",
        "publish+rtsps://h:80/live",
    ] {
        assert_eq!(target(&target(text).display()), target(text), "{text}");
    }
}

#[test]
fn loopback_is_recognised_by_name() {
    for (text, expect) in [
        ("ws://127.0.0.9:3333/a/s", true),
        ("ws://[::1]:3333/a/s", true),
        ("ws://[::ffff:127.0.0.1]:3333/a/s", true),
        ("ws://localhost/a/s", true),
        ("ws://LOCALHOST./a/s", true),
        ("ws://localhost.example.org/a/s", false),
        ("ws://10.0.0.1/a/s", false),
    ] {
        assert_eq!(target(text).is_loopback(), expect, "{text}");
    }
}

#[test]
fn the_relay_that_ovenmediaengine_is_asked_for_is_used() {
    for (text, transport) in [
        ("ws://h:3333/app/stream", IceTransportPolicy::All),
        ("ws://h:3333/app/stream?transport=tcp", IceTransportPolicy::Relay),
        ("ws://h:3333/app/stream?policy=x&transport=TCP", IceTransportPolicy::Relay),
        ("ws://h:3333/app/stream?transport=udp", IceTransportPolicy::All),
        ("whep+http://h/x?transport=tcp", IceTransportPolicy::All),
    ] {
        assert_eq!(target(text).ice_transport_policy, transport, "{text}");
    }
}

#[test]
fn rooms_are_numbered_on_from_the_urls_own() {
    for (url, first, third) in [
        ("janus+ws://h:8188/videoroom/1234", "1234", "1236"),
        ("janus+ws://h:8188/videoroom/lesson", "lesson", "lesson-3"),
        ("livekit+ws://h:7880/meeting", "meeting", "meeting-3"),
    ] {
        let target = Target::parse(url).unwrap();
        let shown =
            |place| Target { endpoint: target.endpoint.in_room(place), ..target.clone() }.display();
        assert!(
            shown(0).ends_with(first) && shown(2).ends_with(third),
            "{} {}",
            shown(0),
            shown(2)
        );
    }
}

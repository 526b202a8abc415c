//! No secret of a text is shown, wherever it stands, and all else is.

use super::*;

#[test]
fn no_secret_of_a_url_is_in_what_is_shown() {
    for (text, expect) in [
        ("no answer within 10.00 s", "no answer within 10.00 s"),
        ("is it? no", "is it? no"),
        ("http://h:9/a.mp4: TCP", "http://h:9/a.mp4: TCP"),
        ("http://me:PW@h:9/a.mp4?token=PW: TCP", "http://…@h:9/a.mp4?token=…: TCP"),
        ("`http://h/x?a=PW`b` is not", "`http://h/x?a=…` is not"),
        (
            "https://h/s.ts?Expires=1700000000&Signature=PW~&PW",
            "https://h/s.ts?Expires=1700000000&Signature=…&…",
        ),
        ("http://h/l.m3u8?_HLS_msn=12&_HLS_part=3", "http://h/l.m3u8?_HLS_msn=12&_HLS_part=3"),
        ("http://h/x?pin=1234", "http://h/x?pin=…"),
        ("http://h/x#PW, and http://a@b/", "http://h/x#…, and http://…@b/"),
        ("`seg.ts?sig=PW` is not a URI", "`seg.ts?sig=…` is not a URI"),
        ("http://h/hmac=PW/a.ts", "http://h/hmac=…/a.ts"),
        ("http://proxy/http://me:PW@h/a", "http://proxy/http://…@h/a"),
        ("http://a@b:PW@h\\x", "http://…@h\\x"),
        (r#"{"url":"http://me:PW@h/?k=PW","x":"y"}"#, r#"{"url":"http://…@h/?k=…","x":"y"}"#),
        ("rtmp://h/live/PW", "rtmp://h/live/…"),
        ("publish+rtmps://h/live/PW/ ended", "publish+rtmps://h/live/… ended"),
        ("srt://127.0.0.1:9000?streamid=publish:PW", "srt://127.0.0.1:9000?streamid=…"),
        (
            "publish+srt://h:9000/?latency=20&streamid=1234",
            "publish+srt://h:9000/?latency=20&streamid=…",
        ),
        ("rtsp://me:PW@h/cam\nws://h/?access=PW\t", "rtsp://…@h/cam\nws://h/?access=…\t"),
    ] {
        assert_eq!(masked(text), expect, "{text}");
        assert_eq!(masked(expect), expect, "masked twice");
    }
}

/// Of URLs in the places where they are hard to find. What a scenario shows has no more.
#[test]
fn no_secret_is_shown_wherever_its_url_stands() {
    for (text, expect) in [
        (r#"{"a":"http://h","b":"http://me:PW@x/"}"#, r#"{"a":"http://h","b":"http://…@x/"}"#),
        ("http://a,http://me:PW@b/", "http://a,http://…@b/"),
        ("http://a:80,http://me:PW@b/", "http://a:80,http://…@b/"),
        ("http://h/?x=/y,http://me:PW@b/", "http://h/?x=…"),
        ("http://proxy/http://me:PW@h/a", "http://proxy/http://…@h/a"),
        ("http://h/hmac=PW/a.ts", "http://h/hmac=…/a.ts"),
        ("http://h/hmac=a:PW@PW/a.ts", "http://h/hmac=…/a.ts"),
        // A password with `=`, and with the name of a secret.
        ("http://proxy/me:PW=1@h/a", "http://proxy/…@h/a"),
        ("http://proxy/me:PWkey=1@h/a", "http://proxy/…@h/a"),
        ("http://proxy/http%3A%2F%2Fme%3APW%40h=1/a", "http://proxy/…/a"),
        // A URL that is the name of a parameter.
        ("http://proxy/?http://me:PW@h/x?n=1&m=2", "http://proxy/?…&m=2"),
        ("http://proxy/?rtmp://h/live/PW=1", "http://proxy/?…"),
        ("http://proxy/?http%3A%2F%2Fme%3APW%40h=1", "http://proxy/?…"),
        ("rtmpt://h/live/PW", "rtmpt://h/live/…"),
        ("rtmp:///PW", "rtmp:///…"),
        (
            "[f=flv]rtmp://a/live/PW|[f=flv]rtmp://b/live/PW",
            "[f=flv]rtmp://a/live/…|[f=flv]rtmp://b/live/…",
        ),
        ("rtmp://a/live/PW|http://me:PW@h/x", "rtmp://a/live/…|http://…@h/x"),
        ("rtmp://h/live/a://PW", "rtmp://h/live/a://…"),
        ("http:///me:PW@h/", "http://…@h/"),
        // A password with what ends an authority.
        ("whep+http://me:PW#1@h/x", "whep+http://…@h/x"),
        ("whep+http://me:PW/1@h/x", "whep+http://…@h/x"),
        ("whep+http://me:PW?1@h/x", "whep+http://…@h/x"),
        ("whep+http://a@me:PW/1@h/x", "whep+http://…@h/x"),
        ("http://h:80/a@b", "http://h:80/a@b"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("http://h/m#bearer=PW", "http://h/m#…"),
        ("http://h/m#bearer=env:TOKEN&sha256=ab", "http://h/m#bearer=env:TOKEN&sha256=ab"),
    ] {
        let as_names = |pair: &str| {
            if may_be_shown(pair) { pair.to_owned() } else { masked_pair(pair) }
        };
        let with_names = Shown { pair: as_names, key: hidden };
        assert_eq!(masked(text), expect, "{text}");
        assert_eq!(masked(expect), expect, "masked twice");
        assert_eq!(masked_with(text, with_names), expect, "{text}");
    }
}

/// References without a scheme, and URLs that no parser would take for one.
#[test]
fn no_secret_of_a_reference_without_a_scheme_is_shown() {
    for (text, expect) in [
        ("//me:PW@h:bad/x.ts", "//…@h:bad/x.ts"),
        ("//PW@h/x.ts?token=PW", "//…@h/x.ts?token=…"),
        ("segment //me:PW@h/x: TCP", "segment //…@h/x: TCP"),
        ("(//me:PW@h/x) [//me:PW@h/x]", "(//…@h/x) [//…@h/x]"),
        ("`//me:PW@h/x`, '//me:PW@h/x'", "`//…@h/x`, '//…@h/x'"),
        (r#"URI="//me:PW@h/k""#, r#"URI="//…@h/k""#),
        ("URI=//me:PW@h/k", "URI=//…@h/k"),
        ("//me:P/W@h/x", "//…@h/x"),
        ("//me:P?W=1@h/x", "//…@h/x"),
        ("//me:P@W@h/x", "//…@h/x"),
        ("//me:PW@[::1]:80/x", "//…@[::1]:80/x"),
        ("//me:P%40W@h/x", "//…@h/x"),
        ("\\\\me:PW@h\\x", "\\\\…@h\\x"),
        ("/me:PW@h/x", "/…@h/x"),
        ("/a//me:PW@h/x", "/a//…@h/x"),
        ("me:PW@h/x", "…@h/x"),
        ("me:P/W=@h/x", "…@h/x"),
        (":PW@h", "…@h"),
        ("(me:PW@h:80/x)", "(…@h:80/x)"),
        ("url=me:PW@h/x", "url=…@h/x"),
        ("me:PW@h,http://a@b/", "…@h,http://…@b/"),
        ("http:/me:PW@h/x", "http:/…@h/x"),
        ("http:me:PW@h/x", "…@h/x"),
        ("HTTP://ME:PW@H/X?TOKEN=PW", "HTTP://…@H/X?TOKEN=…"),
        ("RTMP://h/live/PW", "RTMP://h/live/…"),
        ("'http://me:PW@h/' (http://me:PW@h/)", "'http://…@h/' (http://…@h/)"),
        ("http://me:PW@[fe80::1]/a", "http://…@[fe80::1]/a"),
        ("http://a@b:P@W@h/a", "http://…@h/a"),
        ("http://proxy//me:PW@h/a", "http://proxy//…@h/a"),
        ("http://proxy/me:PW@h/a", "http://proxy/…@h/a"),
        ("http://proxy/http%3A%2F%2Fme%3APW%40h%2Fx", "http://proxy/…"),
        ("http://proxy/http%253a%252f%252fme%253aPW%2540h/x", "http://proxy/…/x"),
        ("http://proxy/h%3Ftoken%3DPW/x", "http://proxy/…/x"),
        ("http://proxy/rtmp%3A%2F%2Fh%2Flive%2FPW", "http://proxy/…"),
        ("http%3A%2F%2Fme%3APW%40h", "…"),
        ("x.ts?token=PW", "x.ts?token=…"),
        ("../a/x.ts?PW is no segment", "../a/x.ts?… is no segment"),
        ("x.m3u8#bearer=PW", "x.m3u8#…"),
        // A query without a value is one where its place is certainly a reference.
        ("//h/live?PW", "//h/live?…"),
        ("(/live/stream?PW)", "(/live/stream?…)"),
        ("../live?PW", "../live?…"),
        ("//me:PW@h/x?PW", "//…@h/x?…"),
        ("me:PW@h/x?PW", "…@h/x?…"),
        // Signatures in the path.
        ("//h/hmac=PW/a.ts", "//h/hmac=…/a.ts"),
        ("../hmac=PW/a.ts", "../hmac=…/a.ts"),
        ("..\\HMAC=PW\\a.ts", "..\\HMAC=…\\a.ts"),
        ("/hdntl=exp=1~acl=/*~hmac=PW/a.ts", "/hdntl=exp=1~acl=/*~hmac=…/a.ts"),
        ("/hdntl=exp=1~acl=%2f*~hmac=PW==/a.ts", "/hdntl=…/a.ts"),
        ("live/token=PW/a.ts", "live/token=…/a.ts"),
        ("./me:PWkey=1@h/a", "./…@h/a"),
        // A user without a password.
        ("base_url=//PW@h/x", "base_url=//…@h/x"),
        ("http:/PW@h/x", "http:/…@h/x"),
        ("`url=WSS:\\PW@h/x`", "`url=WSS:\\…@h/x`"),
        ("*//PW@h/x* “//PW@h/x” «//PW@h/x»", "*//…@h/x* “//…@h/x” «//…@h/x»"),
        // Addresses of people have no password and no path, and nothing stands before them.
        ("sip:PW@10.0.0.5/stream", "…@10.0.0.5/stream"),
        ("url=SIPS:PW@h\\x", "url=…@h\\x"),
        ("mailto:PW@h/live?n=1", "…@h/live?n=1"),
        ("/sip:PW@h", "/…@h"),
        ("a/acct:PW@h", "a/…@h"),
        ("http://proxy/sip:PW@h/a", "http://proxy/…@h/a"),
        ("http://proxy/xmpp:PW@h", "http://proxy/…@h"),
        ("xmpp:room@h/xmpp:PW@h", "xmpp:room@h/…@h"),
        ("sip:ada:PW@h", "…@h"),
        ("mailto:a//PW@h/x", "…@h/x"),
        ("mailto%3Ame%3APW%40h", "…"),
        ("x?token%3DPW", "…"),
        ("me:PW@h%3A80/x", "…@h%3A80/x"),
        // Behind others, in a list, a path or behind a proxy.
        ("//PW@h:80,//PW@i", "//…@h:80,//…@i"),
        ("//h/x,//PW@i/y", "//h/x,//…@i/y"),
        ("a.ts;//me:P/W@i/y", "a.ts;//…@i/y"),
        ("//PW@h|//me:P?W=1@i/x", "//…@h|//…@i/x"),
        ("url=//h/x;\\\\PW@i\\y", "url=//h/x;\\\\…@i\\y"),
        ("http://a:80,//PW@b/", "http://a:80,//…@b/"),
        ("http://proxy//PW@h/a", "http://proxy//…@h/a"),
        ("rtmp://a/live/PW,//me:PW@b/live/PW", "rtmp://a/live/…,//…@b/live/…"),
        ("rtmp://a/x//PW|http://me:PW@b/", "rtmp://a/x//…|http://…@b/"),
        ("http://a/x,//h/hmac=a:PW@PW/y", "http://a/x,//h/hmac=…/y"),
        ("http://a//hmac=a:PW@PW/y", "http://a//hmac=…/y"),
        ("a//hmac=PW@PW/y", "a//hmac=…/y"),
        ("hmac=PW//y", "hmac=…//y"),
        ("x.ts?//PW", "x.ts?…"),
        ("x=PW%2F//y?n=1", "x=…//y?n=1"),
        ("a//#n=PW", "a//#…"),
        ("rtmp://h/live/PW,//PW", "rtmp://h/live/…,//…"),
        ("//h,//i/live?PW", "//h,//i/live?…"),
        // Behind a path with a password only, and right behind a host as before.
        ("a//b:PW@d", "a//…@d"),
        ("http://h/img//me:PW@i/x", "http://h/img//…@i/x"),
        ("//h//PW@i/x", "//h//…@i/x"),
        ("me:PW@h//PW@i", "…@h//…@i"),
        ("proxy:80//PW@h", "proxy:80//…@h"),
        ("http://h/x,proxy//PW@i", "http://h/x,proxy//…@i"),
        ("x=1,http:\\\\PW@h", "x=1,http:\\\\…@h"),
        ("/live//stream?PW", "/live//stream?…"),
        ("a//x.ts?PW", "a//x.ts?…"),
        ("url=//h/x//live?PW", "url=//h/x//live?…"),
        ("url=//h/live?PW", "url=//h/live?…"),
    ] {
        assert_eq!(masked(text), expect, "{text}");
        assert_eq!(masked(expect), expect, "masked twice");
    }
    for text in [
        "ada@example.com and room@conference.h/nick",
        "mailto:ada@example.com, `xmpp:room@conference.h/nick`, to=SIP:ada@h, acct:ada@h",
        "registry:5000/image:1.2@sha512:ab",
        "`#EXT-X-BYTERANGE:75232@0` is no range",
        "`#EXT-X-MAP:URI=a.mp4` is not",
        "cpu@core0:95%",
        "cells/codec=vp8/1",
        "--tls-key=/etc/key.pem",
        "is it /a/b? no",
        "10.0.0.1:80/a@b",
        "[::1]:80/a@b",
        "registry:5000/image:1.2@sha256:ab",
        "image:1.2@sha256:ab",
        "git@h.com",
        "//h:80/x",
        "is it? 100 %",
        "what?!",
        "docs/security.md#secrets",
        "#EXT-X-MAP:URI=a.mp4",
        "http://h/a%20b%25",
        "//h:80/x,//i/y and http://h//a/b?n=1",
        "a//b//c: //",
        // Two slashes within a path.
        "http://127.0.0.1/img//logo@2x.mp4",
        "notes//ada@example.com",
        "https://tube/a//@ada/videos",
        "/html//div[@id='x']",
        "C:\\\\Users\\\\ada@corp",
        "a//what?is",
    ] {
        assert_eq!(masked(text), text);
    }
}

#[test]
fn the_path_of_a_request_is_shown_whole_but_for_its_secrets() {
    let long = format!("/{}token=PW/b", "a/".repeat(4_000));
    let shown = long.replace("PW", "…");
    for (path, expect) in [
        ("/live/a.ts", "/live/a.ts"),
        ("/live/a-audio=128000-video=900000-7.ts", "/live/a-audio=128000-video=900000-7.ts"),
        ("/hmac=PW/a.ts", "/hmac=…/a.ts"),
        ("/hdntl=exp=1~acl=/*~hmac=PW/a.ts", "/hdntl=exp=1~acl=/*~hmac=…/a.ts"),
        (long.as_str(), shown.as_str()),
    ] {
        assert_eq!(masked_request_path(path), expect, "{path}");
        assert_eq!(masked_request_path(expect), expect, "masked twice");
    }
}

/// JSON may write `/` as `\/`, and JSON within JSON with more of them.
#[test]
fn a_slash_of_json_is_one_slash() {
    for (text, expect) in [
        ("rtmp://h/live/PW", "rtmp://h/live/…"),
        ("http://me:PW@h/x?k=PW", "http://…@h/x?k=…"),
        ("http://proxy//PW@h/a", "http://proxy//…@h/a"),
        ("//PW@h/x", "//…@h/x"),
        ("http://h/img/logo@2x.mp4", "http://h/img/logo@2x.mp4"),
        ("http://h/img//logo@2x.mp4", "http://h/img//logo@2x.mp4"),
    ] {
        for slash in ["\\/", "\\\\\\/"] {
            let said = |text: &str| format!("{{\"url\":\"{}\"}}", text.replace('/', slash));
            assert_eq!(masked(&said(text)), said(expect), "{text}");
            assert_eq!(masked(&said(expect)), said(expect), "masked twice");
        }
    }
    // Another writer's backslash is a slash of its own.
    assert_eq!(masked("http://proxy\\/PW@h"), "http://proxy\\/…@h");
}

/// The password of a URL that is cut before its `@` looks like a port.
#[test]
fn a_beginning_can_be_cut_anywhere() {
    let said = format!("to http://me:{}@h/", "PW".repeat(200));
    assert_eq!(masked_beginning(&said), "to http://…@h/");
    let (words, long) = ("a ".repeat(TEXT_BYTES_MAX / 2 - 8), "PW".repeat(TEXT_BYTES_MAX));
    for (before, url) in [
        // Of a URL that is most of the text, too.
        ("to ", "http://me:PW@h/"),
        ("to ", "//PW@h/"),
        (words.as_str(), "http://me:PW@h/"),
        (words.as_str(), "http%3A%2F%2Fme%3APW%40h"),
        (words.as_str(), "live?PW=1"),
        (r#"{"url":"http://…@h/?k=…","x":""#, "http://me:PW@h/"),
    ] {
        let said = format!("{before}{}", url.replace("PW", &long));
        assert_eq!(masked_beginning(&said), format!("{before}…"), "{url}");
    }
    for (before, word) in [("//me:PW@h/ ", "é"), (r#"{"url":"//me:PW@h/","x":""#, "z")] {
        let said = format!("{before}{}", word.repeat(TEXT_BYTES_MAX));
        let shown = format!("{}{word}", before.replace("me:PW", "…"));
        assert!(masked_beginning(&said).starts_with(&shown), "of a long word no less");
    }
}

/// A line of a playlist is as long as its server likes.
#[test]
fn a_text_of_very_many_schemes_is_masked_in_one_pass_and_a_long_one_is_cut() {
    let text = format!("x{}", ":///".repeat(1 << 18));
    assert_eq!(masked_url(&text, IN_SENTENCES), text);
    assert_eq!(masked(&text), HIDDEN);
    let list = format!("//h{}", ",//i=1:2".repeat(1 << 16));
    assert_eq!(masked_url(&format!("{list},//PW@h"), IN_SENTENCES), format!("{list},//…@h"));
    // The scheme is that of each bare host behind it.
    let list = format!("{}://h{}", "a".repeat(60_000), ",//i".repeat(20_000));
    assert_eq!(masked_url(&list, IN_SENTENCES), list);
    let path = format!("a{}", "//b".repeat(1 << 16));
    assert_eq!(masked_url(&format!("{path}//c:PW@h"), IN_SENTENCES), format!("{path}//…@h"));
    let cut = format!("at http://me:{}@h/", "PW".repeat(TEXT_BYTES_MAX));
    assert_eq!(masked(&cut), "at …");
    assert_eq!(masked(&"é".repeat(TEXT_BYTES_MAX)).len(), 2 * TEXT_BYTES_MAX, "no URL");
}

#[test]
fn names_are_shown_and_what_may_be_a_secret_is_not() {
    for (name, value, is_shown) in [
        ("app", "live", true),
        ("stream", "lesson-12", true),
        ("room", "3fa85f64-5717-4562-b3fc-2c963f66afa6", true),
        ("stream", "conference-room-2024", true),
        ("collect[]", "cpu", true),
        ("src", "rtsp://cam/1", true),
        ("src", "rtmp://b/live/hunter2", false),
        ("transport", "tcp", true),
        ("accessToken", "a", false),
        ("X-Amz-Signature", "a", false),
        ("authKey", "a", false),
        ("PIN", "12", false),
        ("streamid", "publish:cam", false),
        // Whatever it is called, it looks like a key.
        ("t", "9f86d081884c7d659a2feaa0c55ad015", false),
        ("md5", "_e4Nc3idu-kWRm01TBBNYw", false),
        ("privateKey", "a", false),
        ("db_cred", "a", false),
        ("t", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", false),
        ("v", "a%20b", false),
        ("v", "", false),
        ("\u{1b}[31m", "a", false),
    ] {
        assert_eq!(may_be_shown(&format!("{name}={value}")), is_shown, "{name}={value}");
    }
    assert!(!may_be_shown("hunter2"), "a value without a name");
}

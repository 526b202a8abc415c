//! Message exchanges with Janus, among them transcripts of Janus 1.1.2 (`janus/testdata`: `>` sent,
//! `<` received).

use serde_json::{Value, json};

use super::super::janus::{Config, MountpointId, SessionConfig, Streaming};
use super::*;

fn adapter(id: u64, pin: Option<&str>) -> Streaming {
    Streaming::new(Config {
        url: "ws://10.0.0.1:8188/".parse().unwrap(),
        mountpoint: MountpointId::Number(id),
        pin: pin.map(Into::into),
        session: SessionConfig::default(),
    })
}

fn fixture() -> Fixture {
    Fixture::new(adapter(1, None))
}

/// The state after this many server messages of a usual exchange: created, attached, ack, offered.
fn after(messages: usize) -> Fixture {
    let mut fixture = fixture();
    fixture.open(Some("janus-protocol"));
    for said in dialogue().iter().take(messages) {
        fixture.receives(said);
    }
    fixture
}

fn dialogue() -> [String; 4] {
    [
        json!({"janus":"success","transaction":"t1","data":{"id":11}}).to_string(),
        json!({"janus":"success","transaction":"t2","session_id":11,"data":{"id":22}}).to_string(),
        json!({"janus":"ack","transaction":"t3","session_id":11}).to_string(),
        event("t3", &json!({"streaming":"event","result":{"status":"preparing"}}), true),
    ]
}

fn event(transaction: &str, data: &Value, offers: bool) -> String {
    let mut event = json!({"janus":"event","session_id":11,"sender":22,"transaction":transaction,
        "plugindata":{"plugin":"janus.plugin.streaming","data":data}});
    if offers {
        event["jsep"] = json!({"type":"offer","sdp":SDP});
    }
    event.to_string()
}

/// Plays the server's side of a transcript; the adapter's messages must be the recorded ones.
fn replay(
    transcript: &str,
    mut adapter: Fixture,
    mut act: impl FnMut(&Value) -> Option<SignalInput<'static>>,
) -> Vec<String> {
    let mut said: Vec<String> = adapter.open(Some("janus-protocol")).split_off(1);
    let mut rest = Vec::new();
    for line in transcript.lines() {
        let (direction, text) = line.split_at(2);
        let message: Value = serde_json::from_str(text).unwrap();
        if direction == "< " {
            said.extend(adapter.receives(text));
            continue;
        }
        if message["janus"] == "keepalive" {
            said.extend(adapter.wait_for("Janus: keepalive"));
        } else if let Some(input) = act(&message) {
            said.extend(adapter.tell(input));
        }
        let at = said.iter().position(|line| line.starts_with("say ")).expect("we say something");
        let ours: Value = serde_json::from_str(&said.remove(at)[4..]).unwrap();
        assert_eq!(ours, message);
        rest.extend(said.extract_if(.., |line| !line.starts_with("say ")));
    }
    rest.extend(said);
    rest
}

#[test]
fn a_recorded_session_of_the_real_server_is_played_again() {
    let transcript = include_str!("../janus/testdata/h264.txt");
    let mut left = false;
    let lines =
        replay(transcript, Fixture::new(adapter(1, None)), |ours| match ours["janus"].as_str() {
            Some("message") if ours["body"]["request"] == "start" => {
                Some(SignalInput::Answer(ours["jsep"]["sdp"].as_str().unwrap().to_owned()))
            }
            Some("trickle") if ours["candidate"]["completed"] == true => {
                Some(SignalInput::CandidatesDone)
            }
            Some("trickle") => Some(SignalInput::Candidate(
                "candidate:1 1 udp 2130706431 10.78.0.1 40000 typ host",
            )),
            Some("message") if ours["body"]["request"] == "stop" && !left => {
                left = true;
                Some(SignalInput::Leave)
            }
            _ => None,
        });
    assert_eq!(lines, ["offer", "close", "goodbye"]);
}

#[test]
fn recorded_refusals_of_the_real_server_are_named() {
    let transcripts = [
        (
            99,
            None,
            include_str!("../janus/testdata/no-mountpoint.txt"),
            "error 455, No such mountpoint/stream 99",
        ),
        (
            2,
            Some("x"),
            include_str!("../janus/testdata/wrong-pin.txt"),
            "error 457, Unauthorized (wrong pin)",
        ),
    ];
    for (id, pin, transcript, says) in transcripts {
        let lines = replay(transcript, Fixture::new(adapter(id, pin)), |_| None);
        assert_eq!(lines.len(), 1, "{lines:?}");
        failed(&lines, &FailureReason::Refused, says);
    }
    let right = replay(
        include_str!("../janus/testdata/pin.txt"),
        Fixture::new(adapter(2, Some("sesame"))),
        |_| None,
    );
    assert_eq!(right, ["offer"]);
}

#[test]
fn a_session_is_kept_alive_and_its_silence_noticed() {
    let mut fixture = after(4);
    fixture.tell(SignalInput::Answer("v=0".into()));
    fixture.receives(&event("t4", &json!({"result":{"status":"starting"}}), false));
    let begun = fixture.now;
    let keepalive = fixture.wait_for("Janus: keepalive");
    assert!(keepalive[0].contains(r#""janus":"keepalive""#), "{keepalive:?}");
    assert_eq!(fixture.now - begun, Duration::from_secs(25));
    assert!(fixture.receives(r#"{"janus":"ack","transaction":"t5","session_id":11}"#).is_empty());
    fixture.wait_for("Janus: keepalive");
    failed(
        &fixture.wait_for("Janus: an ack of keepalive"),
        &FailureReason::SignallingTimeout,
        "an ack of keepalive",
    );
}

#[test]
fn each_step_names_its_own_silence() {
    let mut opening = fixture();
    opening.tell(SignalInput::Start);
    failed(
        &opening.wait_for("Janus: the WebSocket to open"),
        &FailureReason::SignallingTimeout,
        "to open",
    );
    for (heard, why) in [
        (0, "Janus: the session after create"),
        (1, "Janus: the handle after attach"),
        (3, "Janus: the offer after watch"),
    ] {
        failed(&after(heard).wait_for(why), &FailureReason::SignallingTimeout, why);
    }
}

#[test]
fn what_the_server_says_in_mid_session_is_understood() {
    let playing = || {
        let mut fixture = after(4);
        fixture.tell(SignalInput::Answer("v=0".into()));
        fixture
    };
    for (said, expect) in [
        (r#"{"janus":"webrtcup","session_id":11,"sender":22}"#, ""),
        (r#"{"janus":"media","sender":22,"type":"video","receiving":true}"#, ""),
        (
            r#"{"janus":"slowlink","sender":22,"uplink":false,"lost":9}"#,
            "anomaly Janus: slowlink, 9 packets lost to the viewer",
        ),
        (
            r#"{"janus":"trickle","sender":22,"candidate":{"candidate":"1 1 udp 1 10.0.0.1 9 typ host"}}"#,
            "candidate:1 1 udp 1 10.0.0.1 9 typ host",
        ),
        (r#"{"janus":"trickle","sender":22,"candidate":{"completed":true}}"#, ""),
        (
            r#"{"janus":"success","transaction":"zz"}"#,
            "anomaly Janus: success for unknown transaction zz",
        ),
        (
            r#"{"janus":"hangup","sender":22,"reason":"ICE failed"}"#,
            "failed ice: Janus hung up: ICE failed",
        ),
        (
            r#"{"janus":"hangup","sender":22,"reason":"DTLS alert"}"#,
            "failed dtls: Janus hung up: DTLS alert",
        ),
        (r#"{"janus":"hangup","sender":99,"reason":"another handle"}"#, ""),
        (
            r#"{"janus":"detached","sender":22}"#,
            "failed signalling_closed: Janus detached the handle",
        ),
        (
            r#"{"janus":"timeout","session_id":11}"#,
            "failed signalling_closed: Janus timed the session out",
        ),
        (
            r#"{"janus":"event","sender":22,"plugindata":{"data":{"result":{"status":"stopped"}}}}"#,
            "failed media_lost: Janus stopped the mountpoint in mid-session",
        ),
    ] {
        assert_eq!(playing().receives(said).join(" "), expect, "{said}");
    }
    let mut connected = playing();
    connected.tell(SignalInput::Connected);
    failed(
        &connected.receives(r#"{"janus":"hangup","sender":22,"reason":"ICE failed"}"#),
        &FailureReason::MediaLost,
        "",
    );
    // A later offer renegotiates.
    let mut again = playing();
    assert_eq!(
        again.receives(&event("t4", &json!({"result":{"status":"updating"}}), true)),
        ["offer"]
    );
    let answer = again.tell(SignalInput::Answer("v=0".into()));
    assert!(
        answer[0].contains(r#""request":"start""#) && answer[0].contains(r#""transaction":"t5""#),
        "{answer:?}"
    );
}

#[test]
fn refusals_and_rubbish_are_named() {
    use FailureReason::{Protocol, Refused};
    let error = |transaction: &str, code: i64, reason: &str| {
        json!({"janus":"error","transaction":transaction,"error":{"code":code,"reason":reason}})
            .to_string()
    };
    for (heard, said, reason, says) in [
        (0, error("t1", 403, "Unauthorized request"), Refused, "error 403, Unauthorized request"),
        (1, error("t2", 460, "No such plugin"), Refused, "error 460"),
        (0, r#"{"janus":"success","transaction":"t1","data":{}}"#.into(), Protocol, "without id"),
        (1, "[]".into(), Protocol, "malformed JSON"),
        (3, event("t3", &json!({"result":{"status":"preparing"}}), false), Protocol, "no offer"),
        (3, event("t3", &json!({"error_code":"x"}), false), Protocol, "malformed"),
        (
            3,
            event("t3", &json!({}), true).replace("v=0", "v=1"),
            Protocol,
            "not a session description",
        ),
    ] {
        failed(&after(heard).receives(&said), &reason, says);
    }
    let opening = || {
        let mut opening = fixture();
        opening.tell(SignalInput::Start);
        opening
    };
    closes_are_named(opening, || after(3));
}

#[test]
fn a_goodbye_waits_for_the_server_but_not_for_long() {
    let mut fixture = after(4);
    let said = fixture.tell(SignalInput::Leave);
    for (line, verb) in said.iter().zip(["message", "detach", "destroy"]) {
        assert!(line.contains(&format!(r#""janus":"{verb}""#)), "{said:?}");
    }
    assert_eq!(
        fixture.wait_for("Janus: the goodbye"),
        ["anomaly Janus: the goodbye was not answered", "close", "goodbye"]
    );
}

#[test]
fn credentials_go_with_every_request() {
    let session = SessionConfig {
        token: Some("tok".into()),
        api_secret: Some("sec".into()),
        ..Default::default()
    };
    let mountpoint = MountpointId::Text("news".into());
    let url = "ws://10.0.0.1:8188/".parse().unwrap();
    let mut fixture =
        Fixture::new(Streaming::new(Config { url, mountpoint, pin: Some("p".into()), session }));
    let mut lines = fixture.open(Some("janus-protocol")).split_off(1);
    lines.extend(dialogue().iter().take(2).flat_map(|said| fixture.receives(said)));
    assert_eq!(lines.len(), 3);
    assert!(
        lines.iter().all(|l| l.contains(r#""token":"tok""#) && l.contains(r#""apisecret":"sec""#)),
        "{lines:?}"
    );
    assert!(lines[2].contains(r#""id":"news""#) && lines[2].contains(r#""pin":"p""#), "{lines:?}");
}

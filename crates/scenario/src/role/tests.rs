//! Laws of reading what participants of a conference send and receive, and their credentials.

use std::time::Duration;

use throng_observation::{Codec, Layer};

use crate::{LayerRequest, PublishConfig, Scenario, ScenarioError};

const MEETING: &str = r#"
[target]
url = "livekit+ws://127.0.0.1:7880/lesson"
api_key = "devkey"
api_secret = "env:SECRET"
[crowd]
size = 6
publish = { simulcast = ["360p", "144p", "240p"], codec = "h264" }
layers = [{ layer = "low" }, { after = "10s", layer = "high" }, { after = "20s", layer = "off" }]
"#;

fn set(text: &str, sets: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<_> = sets.iter().map(|set| crate::Override::parse(set).unwrap()).collect();
    Scenario::parse_with(text, &overrides)
}

#[test]
fn a_meeting_says_its_key_its_layers_and_which_are_wanted() {
    let scenario = Scenario::parse(MEETING).unwrap();
    let api = scenario.target.api_key.clone().unwrap();
    assert_eq!(
        (api.key.as_str(), api.secret.to_string().as_str(), api.room),
        ("devkey", "env:SECRET", None)
    );
    let role = scenario.crowd[0].role.clone().unwrap();
    let simulcast = ["144p", "240p", "360p"].map(String::from).to_vec();
    let publish = PublishConfig {
        video: None,
        simulcast,
        codec: Codec::H264,
        audio: true,
        video_file: None,
        audio_file: None,
        adapts: true,
        burns_clock: false,
    };
    assert_eq!(role.publish, Some(publish));
    let wish = |after_s, layer| LayerRequest { after: Duration::from_secs(after_s), layer };
    assert_eq!(role.layers, [wish(0, Layer::Low), wish(10, Layer::High), wish(20, Layer::Off)]);
    let again = Scenario::parse(&scenario.to_toml()).unwrap();
    assert_eq!(again, scenario);
    let fixed = set(MEETING, &[r#"crowd.publish={video="360p",adapt=false}"#]).unwrap();
    assert!(fixed.crowd[0].role.clone().unwrap().publish.is_some_and(|publish| !publish.adapts));
    assert_eq!(Scenario::parse(&fixed.to_toml()).unwrap(), fixed);
    let one = set(MEETING, &["crowd.layers=medium"]).unwrap();
    assert_eq!(one.crowd[0].role.clone().unwrap().layers, [wish(0, Layer::Medium)]);
    assert_eq!(Scenario::parse(&one.to_toml()).unwrap(), one);
}

#[test]
fn mistakes_are_named_with_their_mend() {
    for (change, says) in [
        (r#"crowd.publish={simulcast=["144p"]}"#, "two or three"),
        (r#"crowd.publish={simulcast=["144p","144p"]}"#, "two or three"),
        (r#"crowd.publish={simulcast=["144p","180p","240p","360p"]}"#, "two or three"),
        (r#"crowd.publish={simulcast=["144p","480p"]}"#, "`480p` is not a size"),
        (r#"crowd.publish={video="144p",simulcast=["144p","360p"]}"#, "both video and simulcast"),
        ("crowd.layers=best", "is not a layer"),
        ("crowd.layers=[]", "neither a layer nor a list"),
        (r#"crowd.layers=[{after="5s"}]"#, "`layer` is missing"),
        (r#"crowd.layers=[{after="5s",layer="hihg"}]"#, "did you mean \"high\""),
        (r#"crowd.layers=[{after="5s",layer="high"},{after="4s",layer="low"}]"#, "not in order"),
        ("target.api_secret=", "needs both"),
        ("target.room=lesson", "names LiveKit's room already"),
        ("target.token=abc", "both a token"),
        ("target.url=whip+http://127.0.0.1:7880/whip/v1", "for a room"),
        ("target.url=whep+http://127.0.0.1:7880/whep", "only LiveKit"),
        (
            "target.url=livekit+ws://127.0.0.2:7880/lesson",
            "`target.api_secret` is for 127.0.0.1:7880",
        ),
    ] {
        let error = set(MEETING, &[change]).expect_err(change).to_string();
        assert!(error.contains(says), "{change}: {error}");
    }
    let bare = "[target]\nurl = \"livekit+ws://127.0.0.1:7880/lesson\"\n[crowd]\nsize = 2\n";
    let error = Scenario::parse(bare).unwrap_err().to_string();
    assert!(error.contains("requires a token") && error.contains("api_secret"), "{error}");
    assert!(error.contains("--set target.api_key="), "{error}");
}

#[test]
fn the_test_card_has_a_size_of_full_hd() {
    let scenario = set(MEETING, &[r#"crowd.publish={video="1080p"}"#]).unwrap();
    let publish = scenario.crowd[0].role.clone().unwrap().publish.unwrap();
    assert_eq!(publish.video.as_deref(), Some("1080p"));
}

#[test]
fn a_secret_that_stands_in_the_file_is_left_out_when_it_is_stored() {
    let scenario = Scenario::parse(&MEETING.replace("env:SECRET", "hunter2")).unwrap();
    let stored = scenario.to_toml();
    assert!(
        !stored.contains("hunter2") && !format!("{scenario:?}").contains("hunter2"),
        "{stored}"
    );
    let error = Scenario::parse(&stored).unwrap_err().to_string();
    assert!(error.contains("was redacted when this scenario was stored"), "{error}");
}

#[test]
fn publishers_by_whip_need_a_room_only_where_they_make_tokens() {
    let whip = "[target]\nurl = \"whip+http://127.0.0.1:7880/whip/v1\"\n[crowd]\nsize = 2\n";
    assert!(Scenario::parse(whip).is_ok());
    let keyed = ["target.api_key=devkey", "target.api_secret=env:S", "target.room=lesson"];
    let scenario = set(whip, &keyed).unwrap();
    assert_eq!(scenario.target.api_key.clone().unwrap().room.as_deref(), Some("lesson"));
    assert_eq!(Scenario::parse(&scenario.to_toml()).unwrap(), scenario);
}

#[test]
fn on_janus_a_third_layer_of_two_is_never_requested() {
    let janus = "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1234\"\n[[crowd]]\nname = \"teacher\"\nsize = 1\n\
        publish = { simulcast = [\"144p\", \"360p\"] }\n[[crowd]]\nname = \"pupils\"\nsize = 2\n";
    for (layers, is_refused) in [
        ("layers = \"high\"", true),
        ("layers = [{ layer = \"low\" }, { after = \"10s\", layer = \"high\" }]", true),
        ("layers = \"medium\"", false),
        ("", false),
    ] {
        let read = Scenario::parse(&format!("{janus}{layers}\n"));
        assert_eq!(read.is_err(), is_refused, "{layers}: {read:?}");
        if let Err(error) = read {
            let said = error.to_string();
            assert!(
                said.contains("the larger of two simulcast sizes is \"medium\"")
                    && said.contains("three sizes"),
                "{said}"
            );
        }
        let three = janus.replace("\"144p\", ", "\"144p\", \"240p\", ");
        assert!(Scenario::parse(&format!("{three}{layers}\n")).is_ok(), "{layers}");
    }
    // LiveKit reports the size of each layer.
    let two = set(MEETING, &[r#"crowd.publish={simulcast=["144p","360p"]}"#]);
    assert!(two.is_ok(), "{two:?}");
}

//! The configuration of the page (what to join, and the name and token) and of the browser's
//! network stack.

use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};
use throng_media::card::Rung;
use throng_media::quality::WallClock;
use throng_observation::canary::BrowserId;
use throng_protocol::signalling::livekit::{Access, Key};
use throng_scenario::{JanusId, Place, Plan, Secret};

use crate::console::CliError;
use crate::run_id;
use crate::secrets::{api_secret, token_text};

/// The camera where no participant of the crowd sends video.
const USUAL_CAMERA: Rung = Rung::P240;

/// The configuration of the page: protocol, URL, name, token, camera.
pub(super) fn page_config(
    plan: &Plan,
    browser: BrowserId,
    clock: WallClock,
) -> Result<Value, CliError> {
    let target = &plan.target;
    let token = token_text(target.token.as_ref())?;
    let endpoint = plan.endpoint_of_browser(browser.0.into());
    let (protocol, id, pin, token) = match &endpoint.place {
        Place::Janus { id, pin } => ("janus_streaming", Some(id), pin.as_ref(), token),
        Place::JanusVideoRoom { id, pin } => ("janus_videoroom", Some(id), pin.as_ref(), token),
        Place::LiveKit { room } => {
            ("livekit", None, None, livekit_token(plan, browser, room, clock)?.or(token))
        }
        Place::Whep => ("whep", None, None, token),
        // The scenario has refused others.
        _ => {
            let name = endpoint.protocol().name();
            return Err(CliError::usage(format!("[canary]: browsers cannot join {name}")));
        }
    };
    let id = id.map(|id| match id {
        JanusId::Number(number) => json!(number),
        JanusId::Text(text) => json!(text),
    });
    Ok(json!({
        "protocol": protocol,
        "url": endpoint.url.in_clear().as_str(),
        "token": token,
        "name": run_id::mark().put(&browser.name()),
        "camera": camera(plan),
        "id": id,
        "pin": pin.map(Secret::expose),
    }))
}

/// The video of the first cohort that sends any, so that browsers and crowd send alike.
fn camera(plan: &Plan) -> Value {
    let sizes = plan.roles.iter().filter_map(|role| role.publish.as_ref());
    let size =
        sizes.filter_map(|publish| publish.video.as_ref().or(publish.simulcast.last())).next();
    let rung = size.and_then(|size| Rung::from_name(size)).unwrap_or(USUAL_CAMERA);
    json!({
        "width": rung.width(),
        "height": rung.height(),
        "fps": rung.fps(),
        "bitrate_bps": rung.bitrate_bps(),
    })
}

fn livekit_token(
    plan: &Plan,
    browser: BrowserId,
    room: &str,
    clock: WallClock,
) -> Result<Option<String>, CliError> {
    let api = plan.target.api_key.as_ref().map(api_secret).transpose()?;
    Ok(api.map(|api| {
        let key = Key {
            name: api.key,
            secret: api.secret.expose().to_owned(),
            room: room.to_owned(),
            identity: run_id::mark().put(&browser.name()),
            can_publish: true,
            can_subscribe: true,
            clock,
        };
        Access::Key(Box::new(key)).token(Instant::now())
    }))
}

/// Flags that route all connections of the browser through the proxy, by name and including
/// loopback, and turn its own name resolution off. The page is not part of the server's site, so
/// same-origin rules, which the crowd's viewers do not have either, are off.
pub(super) fn browser_flags(plan: &Plan, proxy: SocketAddr) -> Vec<String> {
    let mut flags = vec![
        format!("--proxy-server=socks5://{proxy}"),
        "--proxy-bypass-list=<-loopback>".into(),
        // A connection that does not use the proxy finds no address.
        format!("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {}", proxy.ip()),
        // QUIC would bypass the proxy.
        "--disable-quic".into(),
        "--disable-web-security".into(),
    ];
    if plan.target.tls_insecure {
        flags.push("--ignore-certificate-errors".into());
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_scenario::Scenario;

    fn plan(target: &str, crowd: &str) -> Plan {
        let text =
            format!("[target]\n{target}\n[crowd]\nsize = 2\n{crowd}\n[canary]\nbrowsers = 1\n");
        Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).plan()
    }

    fn config_of(plan: &Plan) -> Value {
        let clock = WallClock { at: Instant::now(), unix_ns: 1_700_000_000_000_000_000 };
        page_config(plan, BrowserId(1), clock).unwrap_or_else(|stop| panic!("{}", stop.error))
    }

    #[test]
    fn the_page_gets_url_and_identity() {
        let whep =
            config_of(&plan("url = \"whep+http://127.0.0.1:7080/whep\"\ntoken = \"abc\"", ""));
        assert_eq!(
            (&whep["protocol"], &whep["url"], &whep["token"]),
            (&json!("whep"), &json!("http://127.0.0.1:7080/whep"), &json!("abc"))
        );
        let crowd = "publish = { video = \"360p\" }";
        let room =
            config_of(&plan("url = \"janus+ws://127.0.0.1:8188/videoroom/9?pin=42\"", crowd));
        let name = json!(run_id::mark().put("canary-1"));
        assert_eq!((&room["id"], &room["pin"], &room["name"]), (&json!(9), &json!("42"), &name));
        assert_eq!((&room["camera"]["height"], &room["camera"]["fps"]), (&json!(360), &json!(30)));
        let livekit =
            "url = \"livekit+ws://127.0.0.1:7880/demo\"\napi_key = \"k\"\napi_secret = \"s\"";
        let livekit = config_of(&plan(livekit, ""));
        assert_eq!(livekit["token"].as_str().map(|token| token.split('.').count()), Some(3));
    }

    #[test]
    fn a_browser_asks_the_gate_for_everything() {
        let proxy = "127.0.0.1:4711".parse().unwrap();
        let flags = browser_flags(&plan("url = \"whep+https://sfu.example/x\"", ""), proxy);
        for expect in [
            "--proxy-server=socks5://127.0.0.1:4711",
            "--proxy-bypass-list=<-loopback>",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--disable-quic",
        ] {
            assert!(flags.iter().any(|flag| flag == expect), "{expect}: {flags:?}");
        }
    }
}

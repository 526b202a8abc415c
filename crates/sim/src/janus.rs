//! The real Janus (Debian's package) with Streaming mountpoints and a VideoRoom, in a namespace of
//! its own, fed by ffmpeg.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::namespace::Namespace;
use crate::support::{ChildGuard, SimError, cache_folder, run, wait_for_port};

/// The WebSocket for viewers: `ws://127.0.0.1:8188/` inside the namespace, on its media address as
/// well.
pub const PORT: u16 = 8188;
/// The admin WebSocket, on 127.0.0.1 inside the namespace.
const ADMIN_PORT: u16 = 7188;
const ADMIN_SECRET: &str = "admin";
/// Plugins, transports and event handlers that no test uses, so Janus does not load them.
const PLUGINS_OFF: &str = "libjanus_audiobridge.so,libjanus_duktape.so,libjanus_lua.so,\
                           libjanus_nosip.so,libjanus_sip.so,libjanus_textroom.so,\
                           libjanus_videocall.so,libjanus_voicemail.so,libjanus_recordplay.so,\
                           libjanus_echotest.so";
const TRANSPORTS_OFF: &str = "libjanus_http.so,libjanus_mqtt.so,libjanus_nanomsg.so,\
                              libjanus_pfunix.so,libjanus_rabbitmq.so";
const EVENTS_OFF: &str = "libjanus_gelfevh.so,libjanus_mqttevh.so,libjanus_nanomsgevh.so,\
                          libjanus_rabbitmqevh.so,libjanus_wsevh.so";
/// UDP ports of media by default.
const PORTS: RangeInclusive<u16> = 20_000..=29_999;

/// The mountpoint with H.264 and Opus.
pub const H264: u64 = 1;
/// The mountpoint with VP8 and Opus.
pub const VP8: u64 = 2;
/// The H.264 mountpoint again, behind [`PIN`].
pub const H264_WITH_PIN: u64 = 3;
/// The PIN of [`H264_WITH_PIN`].
pub const PIN: &str = "sesame";

/// The VideoRoom: VP8 or H.264 and Opus, for up to a hundred publishers.
pub const ROOM: u64 = 1234;

/// A room that records all publishers.
pub const RECORDED_ROOM: u64 = 1235;
/// A room behind [`PIN`].
pub const ROOM_WITH_PIN: u64 = 1236;
/// A room for one publisher.
pub const SMALL_ROOM: u64 = 1237;
/// A room that accepts only H.264 video.
pub const H264_ROOM: u64 = 1238;
/// Janus's `admin_key`, required to create a room.
pub const ADMIN_KEY: &str = "keeper";
/// A room's `secret`, required to kick a participant.
const ROOM_SECRET: &str = "bouncer";

/// Where the sound of [`H264`] comes in, on 127.0.0.1 inside the namespace.
pub const SOUND_PORT: u16 = 5002;

/// Frames per second of both feeds.
pub const FEED_FPS: u32 = 30;

/// A running Janus; it ends when dropped.
#[derive(Debug)]
pub struct Janus<'a> {
    namespace: &'a Namespace,
    process: ChildGuard,
    folder: TempDir,
}

/// A running ffmpeg that feeds both mountpoints; it ends when dropped.
#[derive(Debug)]
pub struct Feed {
    _process: ChildGuard,
}

/// Ten seconds of test video in H.264 and VP8 and of a tone in Opus, encoded once per machine and
/// played in a loop: encoding in each test would take CPU from concurrent measurements.
fn clip() -> Result<PathBuf, SimError> {
    let folder = cache_folder().join("clips");
    let clip = folder.join("testsrc2-640x360-30fps-2.mkv");
    if clip.exists() {
        return Ok(clip);
    }
    fs::create_dir_all(&folder)?;
    // Several processes may make it at a time: each writes its own file, and the last rename wins.
    let mine = tempfile::Builder::new().suffix(".mkv").tempfile_in(&folder)?;
    // A later viewer gets the parameter sets with each key frame.
    let h264 = "-c:v:0 libx264 -preset:v:0 ultrafast -tune:v:0 zerolatency -profile:v:0 baseline \
                -b:v:0 800k -x264-params:v:0 repeat-headers=1";
    let vp8 = "-c:v:1 libvpx -deadline:v:1 realtime -cpu-used:v:1 8 -b:v:1 800k";
    let opus = "-c:a libopus -b:a 48k -ac 2";
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"]);
    command.args(["-f", "lavfi", "-i", "testsrc2=s=640x360:r=30:d=10"]);
    // The sound is no longer than the pictures, which would wait for it at each turn of the loop.
    command.args([
        "-f",
        "lavfi",
        "-i",
        "sine=f=440:r=48000:d=9.96",
        "-map",
        "0:v",
        "-map",
        "0:v",
        "-map",
        "1:a",
    ]);
    command.args("-g 30 -pix_fmt yuv420p".split(' '));
    command
        .args([h264, vp8, opus].iter().flat_map(|coding| coding.split_whitespace()))
        .arg(mine.path());
    run(&mut command)?;
    mine.persist(&clip).map_err(|error| error.error)?;
    Ok(clip)
}

impl<'a> Janus<'a> {
    /// Starts Janus with media on `media_address`, which must be an address of the namespace that
    /// is not loopback (libnice passes loopback over), and waits until it accepts connections.
    ///
    /// # Errors
    /// When Janus is not installed or does not come up; its log is part of the error.
    pub fn start(namespace: &'a Namespace, media_address: Ipv4Addr) -> Result<Self, SimError> {
        Self::start_with(namespace, media_address, None, PORTS)
    }

    /// As [`Self::start`]; its event handler `sampleevh` posts what happens to `backend`, a URL
    /// inside the namespace.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_telling(
        namespace: &'a Namespace,
        media_address: Ipv4Addr,
        backend: &str,
    ) -> Result<Self, SimError> {
        Self::start_with(namespace, media_address, Some(backend), PORTS)
    }

    /// As [`Self::start`], with media on these UDP ports and no others (`rtp_port_range`).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_on_ports(
        namespace: &'a Namespace,
        media_address: Ipv4Addr,
        ports: RangeInclusive<u16>,
    ) -> Result<Self, SimError> {
        Self::start_with(namespace, media_address, None, ports)
    }

    fn start_with(
        namespace: &'a Namespace,
        media_address: Ipv4Addr,
        backend: Option<&str>,
        ports: RangeInclusive<u16>,
    ) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        configure(&folder, media_address, backend, &ports)?;
        let process = launched(namespace, &folder)?;
        Ok(Self { namespace, process, folder })
    }

    /// Kills it like a crash, and starts it again with only its configuration.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn restart(&mut self) -> Result<(), SimError> {
        let child = self.process.child();
        child.kill()?;
        child.wait()?;
        self.process = launched(self.namespace, &self.folder)?;
        Ok(())
    }

    /// The process, for measuring it. It is `ip netns exec`, which becomes Janus.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Starts ffmpeg: both mountpoints get a test picture of 640×360 at [`FEED_FPS`], a key frame
    /// each second, about 800 kbit/s, and a tone in Opus at 48 kbit/s.
    ///
    /// # Errors
    /// When ffmpeg cannot be started.
    pub fn feed(&self) -> Result<Feed, SimError> {
        self.feed_with_sound_to(SOUND_PORT)
    }

    /// The same, with the sound of [`H264`] to another port of 127.0.0.1, from where it is passed
    /// on to [`SOUND_PORT`].
    ///
    /// # Errors
    /// As [`Self::feed`].
    pub fn feed_with_sound_to(&self, sound: u16) -> Result<Feed, SimError> {
        let clip = clip()?;
        let mut command = self.namespace.command("ffmpeg");
        command.args([
            "-hide_banner",
            "-loglevel",
            "error",
            "-nostdin",
            "-re",
            "-stream_loop",
            "-1",
            "-i",
        ]);
        command.arg(clip);
        for (source, payload_type, port) in [
            ("0:v:0", "100", 5004),
            ("0:a:0", "111", sound),
            ("0:v:1", "100", 5014),
            ("0:a:0", "111", 5012),
        ] {
            command.args(["-map", source, "-c", "copy", "-payload_type", payload_type]);
            command.args(["-f", "rtp", &format!("rtp://127.0.0.1:{port}?pkt_size=1200")]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Feed { _process: ChildGuard::start(&mut command)? })
    }

    /// Asks the admin API; `fields` are added to the request.
    ///
    /// # Errors
    /// When Janus does not answer, or answers with an error.
    pub fn admin(&self, request: &str, fields: &Value) -> Result<Value, SimError> {
        self.namespace.enter(|| admin(request, fields))?
    }

    /// `handle_info` of every handle: what Janus counted per viewer (`webrtc.media[…].stats.out`
    /// among it).
    ///
    /// # Errors
    /// As [`Self::admin`].
    pub fn handles(&self) -> Result<Vec<Value>, SimError> {
        let mut handles = Vec::new();
        for session in list(&self.admin("list_sessions", &json!({}))?, "sessions") {
            for handle in
                list(&self.admin("list_handles", &json!({ "session_id": session }))?, "handles")
            {
                let info = json!({ "session_id": session, "handle_id": handle });
                handles.push(self.admin("handle_info", &info)?["info"].take());
            }
        }
        Ok(handles)
    }

    /// How many sessions and handles there are.
    ///
    /// # Errors
    /// As [`Self::admin`].
    pub fn open_ends(&self) -> Result<(usize, usize), SimError> {
        let sessions = list(&self.admin("list_sessions", &json!({}))?, "sessions");
        let handles = sessions.iter().map(|session| {
            // A session that ended since it was listed has none.
            let answer = self.admin("list_handles", &json!({ "session_id": session }));
            answer.map_or(0, |answer| list(&answer, "handles").len())
        });
        Ok((sessions.len(), handles.sum()))
    }

    /// The recordings of [`RECORDED_ROOM`], whole ones only once their senders are gone.
    ///
    /// # Errors
    /// When their folder cannot be read.
    pub fn recordings(&self) -> Result<Vec<PathBuf>, SimError> {
        let files = fs::read_dir(self.folder.path())?.map(|entry| Ok(entry?.path()));
        let mut files: Vec<PathBuf> = files.collect::<std::io::Result<_>>()?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "mjr"));
        files.sort();
        Ok(files)
    }

    /// The numbers of the rooms there are, private ones too.
    ///
    /// # Errors
    /// When Janus does not answer.
    pub fn rooms(&self) -> Result<Vec<u64>, SimError> {
        let said = self
            .namespace
            .enter(|| video_room(&[json!({ "request": "list", "admin_key": ADMIN_KEY })]))??;
        let rooms = said.iter().flat_map(|answer| list(answer, "list"));
        Ok(rooms.filter_map(|room| room.get("room")?.as_u64()).collect())
    }

    /// Kicks the participant of that name, with or without the mark of a run, out of [`ROOM`].
    ///
    /// # Errors
    /// When Janus does not answer, or has no participant of that name.
    pub fn kick(&self, name: &str) -> Result<(), SimError> {
        let who = json!({ "request": "listparticipants", "room": ROOM });
        let said = self.namespace.enter(|| video_room(&[who]))??;
        let all = said.iter().flat_map(|answer| list(answer, "participants"));
        let found = all.into_iter().find(|person| is_called(person, name));
        let id =
            found.ok_or_else(|| SimError::Said(format!("no {name} in the room: {said:?}")))?["id"]
                .take();
        let kick = json!({ "request": "kick", "room": ROOM, "secret": ROOM_SECRET, "id": id });
        self.namespace.enter(|| video_room(&[kick]))?.map(drop)
    }

    /// Destroys one of the configured rooms; its participants are removed.
    ///
    /// # Errors
    /// When Janus does not answer.
    pub fn destroy_room(&self, room: u64) -> Result<(), SimError> {
        let destroy = json!({ "request": "destroy", "room": room, "secret": ROOM_SECRET });
        self.namespace.enter(|| video_room(&[destroy]))?.map(drop)
    }

    /// How many RTP packets of media Janus says came in over all handles.
    ///
    /// # Errors
    /// As [`Self::admin`].
    pub fn packets_received(&self) -> Result<u64, SimError> {
        Ok(self.handles()?.iter().map(|handle| counted(media(handle), "in", "packets")).sum())
    }

    /// How many RTP packets of media Janus says it sent over all handles.
    ///
    /// # Errors
    /// As [`Self::admin`].
    pub fn packets_sent(&self) -> Result<u64, SimError> {
        Ok(self.handles()?.iter().map(|handle| counted(media(handle), "out", "packets")).sum())
    }

    /// How many UDP ports Janus holds for media.
    ///
    /// # Errors
    /// When the namespace's socket table cannot be read.
    pub fn media_ports(&self) -> Result<usize, SimError> {
        let table = fs::read_to_string(format!("/proc/{}/net/udp", self.pid()))?;
        let port = |line: &str| {
            u16::from_str_radix(line.split_whitespace().nth(1)?.rsplit_once(':')?.1, 16).ok()
        };
        Ok(table
            .lines()
            .skip(1)
            .filter_map(port)
            .filter(|port| (20_000..30_000).contains(port))
            .count())
    }

    /// The bytes of media that Janus says it has sent over all handles, by its own counters.
    ///
    /// # Errors
    /// As [`Self::admin`].
    pub fn bytes_sent(&self) -> Result<u64, SimError> {
        Ok(self.handles()?.iter().map(|handle| counted(media(handle), "out", "bytes")).sum())
    }
}

/// Starts Janus with the configuration in `folder`, and waits until it accepts connections.
fn launched(namespace: &Namespace, folder: &TempDir) -> Result<ChildGuard, SimError> {
    let log = folder.path().join("log");
    let written = fs::File::create(&log)?;
    let mut command = namespace.command("janus");
    // Janus asks the kernel for core dumps; one that crashes leaves its own in the folder that goes
    // with it.
    command.current_dir(folder.path());
    command.arg("-F").arg(folder.path()).stdin(Stdio::null());
    command.stdout(written.try_clone()?).stderr(written);
    let process = ChildGuard::start_before_others(&mut command)?;
    for port in [PORT, ADMIN_PORT] {
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let ready = namespace.enter(|| wait_for_port("Janus", to, Duration::from_secs(10)))?;
        if let Err(error) = ready {
            let log = fs::read_to_string(&log).unwrap_or_default();
            return Err(SimError::Said(format!("{error}; its log:\n{log}")));
        }
    }
    Ok(process)
}

/// The media section of a handle's information; the DTLS section has figures of the same names.
fn media(info: &Value) -> &Value {
    &info["webrtc"]["media"]
}

/// The sum of `what` in every `in_stats` or `stats.in` (`out…`) of a handle, whatever the layout of
/// its version.
fn counted(info: &Value, direction: &str, what: &str) -> u64 {
    match info {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let is_stats = name.strip_suffix("_stats").unwrap_or(name) == direction;
                if is_stats { figures(value, what) } else { counted(value, direction, what) }
            })
            .sum(),
        Value::Array(items) => items.iter().map(|item| counted(item, direction, what)).sum(),
        _ => 0,
    }
}

fn figures(stats: &Value, what: &str) -> u64 {
    match stats {
        Value::Object(fields) => fields
            .iter()
            .map(
                |(name, value)| {
                    if name == what { value.as_u64().unwrap_or(0) } else { figures(value, what) }
                },
            )
            .sum(),
        Value::Array(items) => items.iter().map(|item| figures(item, what)).sum(),
        _ => 0,
    }
}

/// Puts requests to the VideoRoom plugin, as a client of its own; the answers' data.
fn video_room(requests: &[Value]) -> Result<Vec<Value>, SimError> {
    let said =
        |error: &dyn std::fmt::Display| SimError::Said(format!("Janus, as a client: {error}"));
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut upgrade =
        format!("ws://127.0.0.1:{PORT}/").into_client_request().map_err(|error| said(&error))?;
    let subprotocol = tungstenite::http::HeaderValue::from_static("janus-protocol");
    upgrade.headers_mut().insert("Sec-WebSocket-Protocol", subprotocol);
    let (mut socket, _) = tungstenite::client(upgrade, stream).map_err(|error| said(&error))?;
    let mut ask = |body: Value| -> Result<Value, SimError> {
        socket.send(Message::text(body.to_string())).map_err(|error| said(&error))?;
        let answer = socket.read().map_err(|error| said(&error))?;
        let answer: Value =
            serde_json::from_slice(&answer.into_data()).map_err(|error| said(&error))?;
        if answer["janus"] == "success" { Ok(answer) } else { Err(said(&answer)) }
    };
    let session = ask(json!({ "janus": "create", "transaction": "1" }))?["data"]["id"].take();
    let attach = json!({
        "janus": "attach",
        "transaction": "2",
        "session_id": session,
        "plugin": "janus.plugin.videoroom",
    });
    let handle = ask(attach)?["data"]["id"].take();
    let answers = requests
        .iter()
        .map(|body| {
            let message = json!({
                "janus": "message",
                "transaction": "3",
                "session_id": session,
                "handle_id": handle,
                "body": body,
            });
            Ok(ask(message)?["plugindata"]["data"].take())
        })
        .collect();
    ask(json!({ "janus": "destroy", "transaction": "4", "session_id": session }))?;
    answers
}

fn list(answer: &Value, name: &str) -> Vec<Value> {
    answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn admin(request: &str, fields: &Value) -> Result<Value, SimError> {
    let said =
        |error: &dyn std::fmt::Display| SimError::Said(format!("Janus admin, {request}: {error}"));
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ADMIN_PORT))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut upgrade = format!("ws://127.0.0.1:{ADMIN_PORT}/")
        .into_client_request()
        .map_err(|error| said(&error))?;
    let subprotocol = tungstenite::http::HeaderValue::from_static("janus-admin-protocol");
    upgrade.headers_mut().insert("Sec-WebSocket-Protocol", subprotocol);
    let (mut socket, _) = tungstenite::client(upgrade, stream).map_err(|error| said(&error))?;
    let mut asked = json!({ "janus": request, "transaction": "1", "admin_secret": ADMIN_SECRET });
    for (name, value) in fields.as_object().into_iter().flatten() {
        asked[name] = value.clone();
    }
    socket.send(Message::text(asked.to_string())).map_err(|error| said(&error))?;
    let answer = socket.read().map_err(|error| said(&error))?;
    let answer: Value =
        serde_json::from_slice(&answer.into_data()).map_err(|error| said(&error))?;
    match answer.get("janus").and_then(Value::as_str) {
        Some("success") => Ok(answer),
        _ => Err(said(&answer)),
    }
}

fn configure(
    folder: &TempDir,
    media_address: Ipv4Addr,
    backend: Option<&str>,
    ports: &RangeInclusive<u16>,
) -> std::io::Result<()> {
    let (first_port, last_port) = (ports.start(), ports.end());
    let path = folder.path().display();
    if let Some(backend) = backend {
        let handler = format!(
            "general: {{ enabled = true  events = \"all\"  grouping = true  json = \"plain\"  \
             backend = \"{backend}\" }}\n"
        );
        fs::write(folder.path().join("janus.eventhandler.sampleevh.jcfg"), handler)?;
    }
    let has_events = backend.is_some();
    let installed = "/usr/lib/x86_64-linux-gnu/janus";
    let core = format!(
        r#"general: {{
  configs_folder = "{path}"
  plugins_folder = "{installed}/plugins"
  transports_folder = "{installed}/transports"
  events_folder = "{installed}/events"
  loggers_folder = "{installed}/loggers"
  debug_level = 4
  debug_colors = false
  admin_secret = "{ADMIN_SECRET}"
  session_timeout = 60
}}
media: {{ rtp_port_range = "{first_port}-{last_port}" }}
nat: {{ ice_enforce_list = "{media_address}"  ignore_mdns = true }}
plugins: {{ disable = "{PLUGINS_OFF}" }}
transports: {{ disable = "{TRANSPORTS_OFF}" }}
loggers: {{ disable = "libjanus_jsonlog.so" }}
events: {{ broadcast = {has_events}  stats_period = 2
  disable = "{EVENTS_OFF}" }}
"#
    );
    let websockets = format!(
        r#"general: {{ json = "plain"  ws = true  ws_port = {PORT}  wss = false }}
admin: {{ admin_ws = true  admin_ws_port = {ADMIN_PORT}
  admin_ws_ip = "127.0.0.1"  admin_wss = false }}
"#
    );
    let mountpoint = |id: u64, audio: u16, video: u16, codec: &str, more: &str| {
        format!(
            r#"mountpoint-{id}: {{
  type = "rtp"  id = {id}  {more}
  media = (
    {{ type = "audio" mid = "a" label = "a"
      iface = "127.0.0.1" port = {audio} pt = 111 codec = "opus" }},
    {{ type = "video" mid = "v" label = "v"
      iface = "127.0.0.1" port = {video} pt = 100 codec = {codec} }}
  )
}}
"#
        )
    };
    let h264 = r#""h264" fmtp = "profile-level-id=42e01f;packetization-mode=1""#;
    let streaming = [
        "general: { }\n".to_owned(),
        mountpoint(H264, SOUND_PORT, 5004, h264, ""),
        mountpoint(VP8, 5012, 5014, r#""vp8""#, ""),
        mountpoint(H264_WITH_PIN, 5022, 5024, h264, &format!("pin = \"{PIN}\"")),
    ];
    let room = |id: u64, video: &str, more: &str| {
        format!(
            "room-{id}: {{ description = \"lesson\"  bitrate = 0  fir_freq = 0  videocodec = \
             \"{video}\"  audiocodec = \"opus\"  secret = \"{ROOM_SECRET}\"  {more} }}\n"
        )
    };
    let rooms = [
        format!("general: {{ admin_key = \"{ADMIN_KEY}\" }}\n"),
        room(ROOM, "vp8,h264", "publishers = 100"),
        room(
            RECORDED_ROOM,
            "vp8,h264",
            &format!("publishers = 100  record = true  rec_dir = \"{path}\""),
        ),
        room(ROOM_WITH_PIN, "vp8", &format!("publishers = 100  pin = \"{PIN}\"")),
        room(SMALL_ROOM, "vp8", "publishers = 1"),
        room(H264_ROOM, "h264", "publishers = 100"),
    ]
    .concat();
    fs::write(folder.path().join("janus.plugin.videoroom.jcfg"), rooms)?;
    fs::write(folder.path().join("janus.jcfg"), core)?;
    fs::write(folder.path().join("janus.transport.websockets.jcfg"), websockets)?;
    fs::write(folder.path().join("janus.plugin.streaming.jcfg"), streaming.concat())
}

/// Whether a participant of a room has that name, with or without the mark of a run behind it.
fn is_called(person: &Value, name: &str) -> bool {
    let called = person["display"].as_str().and_then(|display| display.strip_prefix(name));
    called.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_packets_of_janus_are_summed_over_media() {
        let media = |sent: u64| {
            json!({ "mid": "a", "stats": { "in": { "packets": 9, "bytes": 900 },
                "out": { "packets": 5, "bytes": sent, "bytes_lastsec": 7 } } })
        };
        let info =
            json!({ "webrtc": { "media": { "a": media(100), "v": media(4_000) } }, "bytes": 3 });
        assert_eq!(counted(&info, "out", "bytes"), 4_100);
        assert_eq!(counted(&info, "in", "packets"), 18);
        assert_eq!(
            counted(&json!({ "media": [{ "out_stats": { "bytes": 5 } }] }), "out", "bytes"),
            5
        );
        assert_eq!(counted(&Value::Null, "out", "bytes"), 0);
    }
}

"""An RTSP server of gst-rtsp-server for tests. Its only argument is a JSON file:

  address, port       where it listens; port 0 lets the kernel choose
  media_ports         [first, last] UDP ports of media, bound on `address` only
  files               media file of each mount that plays a file
  transports          which lower transports SETUP may ask for: "udp", "tcp"
  login               null, or {method: "basic" | "digest", user, password}
  tls                 null, or {certificate, key}: PEM files
  session_timeout_s   the timeout that the Session header announces
  recordings          folder for what RECORD clients send

It prints `listening PORT` once it accepts connections. The counters of RECORD clients are in
counters.json of the recordings' folder, replaced a few times per second.
"""

import json
import os
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gio, GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

ROLE = "viewer"
TRANSPORTS = {"udp": GstRtsp.RTSPLowerTrans.UDP, "tcp": GstRtsp.RTSPLowerTrans.TCP}

# Mounts of files: each client has a pipeline of its own, which plays from the start. {0} is the
# file.
OF_FILES = {
    "/h264": "filesrc location={0} ! qtdemux name=d"
    " d.video_0 ! queue ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1"
    " d.audio_0 ! queue ! aacparse ! rtpmp4gpay name=pay1 pt=97",
    "/mpeg2": "filesrc location={0} ! tsdemux name=d"
    " d. ! queue ! mpegvideoparse ! rtpmpvpay name=pay0 pt=32"
    " d. ! queue ! mpegaudioparse ! rtpmpapay name=pay1 pt=14",
    "/ts": "filesrc location={0} ! tsparse set-timestamps=true ! rtpmp2tpay name=pay0 pt=33",
    "/h265": "filesrc location={0} ! qtdemux ! h265parse ! rtph265pay name=pay0 pt=96"
    " config-interval=-1",
    "/mpeg4": "filesrc location={0} ! qtdemux ! mpeg4videoparse ! rtpmp4vpay name=pay0 pt=96"
    " config-interval=1",
    "/mjpeg": "filesrc location={0} ! avidemux ! jpegparse ! rtpjpegpay name=pay0 pt=26",
    "/pcma": "filesrc location={0} ! wavparse ! rtppcmapay name=pay0 pt=8 min-ptime=20000000"
    " max-ptime=20000000",
    "/mp3": "filesrc location={0} ! mpegaudioparse ! rtpmpapay name=pay0 pt=14",
}
OF_FILES["/h264-b"] = OF_FILES["/h264"]

LIVE = (
    "videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=25/1"
    " ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 bitrate=800"
    " ! video/x-h264,profile=baseline ! rtph264pay name=pay0 pt=96 config-interval=-1"
    " audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! opusenc ! rtpopuspay"
    " name=pay1 pt=97"
)

# Noise, which fills its bit rate of 2 Mbit/s.
LIVE_2M = (
    LIVE.replace("videotestsrc", "videotestsrc pattern=snow")
    .replace("width=640,height=360", "width=320,height=180")
    .replace("bitrate=800", "bitrate=1900")
)

# Mounts for RECORD, by the streams that the client announces in this order. Each stream has a file
# of its own: a muxer of several would hold one back until the clocks of all are known. A transport
# stream is whole up to any byte, so that a recording can be read while its client still sends.
TO_FILE = "mpegtsmux ! filesink name=file{0} buffer-mode=unbuffered sync=false"
VIDEO_IN = (
    "rtph264depay name=depay0 ! h264parse ! video/x-h264,stream-format=byte-stream,alignment=au"
    " ! identity name=frames0 silent=true ! " + TO_FILE.format(0)
)
RECORD = {
    "/record": VIDEO_IN,
    "/record-vp8": "rtpvp8depay name=depay0 ! identity name=frames0 silent=true ! filesink"
    " name=file0 buffer-mode=unbuffered sync=false",
    "/record-aac": VIDEO_IN
    + " rtpmp4gdepay name=depay1 ! aacparse name=frames1 ! "
    + TO_FILE.format(1),
    "/record-opus": VIDEO_IN
    + " rtpopusdepay name=depay1 ! opusparse name=frames1 ! "
    + TO_FILE.format(1),
}


def factory_of(launch, settings):
    """A media factory that everybody with the role may use, on the allowed transports."""
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f"( {launch} )")
    transports = GstRtsp.RTSPLowerTrans(0)
    for name in settings["transports"]:
        transports |= TRANSPORTS[name]
    factory.set_protocols(transports)
    first, last = settings["media_ports"]
    pool = GstRtspServer.RTSPAddressPool()
    # Without a pool the sockets of media are bound to every address of the machine.
    if not pool.add_range(settings["address"], settings["address"], first, last, 0):
        sys.exit(f"no UDP ports {first} to {last} on {settings['address']}")
    factory.set_address_pool(pool)
    permissions = GstRtspServer.RTSPPermissions()
    for permission in ("media.factory.access", "media.factory.construct"):
        permissions.add_permission_for_role(ROLE, permission, True)
    factory.set_permissions(permissions)
    return factory


class Recordings:
    """Counts what arrives by RECORD: RTP packets, their payload's frames, and the bytes of those
    frames."""

    def __init__(self, folder):
        self.folder = folder
        self.all = []

    def configure(self, _factory, media):
        """Gives a new RECORD client its file and counters."""
        pipeline = media.get_element()
        streams = []
        while depayloader := pipeline.get_by_name(f"depay{len(streams)}"):
            path = os.path.join(self.folder, f"{len(self.all) + 1:04}-{len(streams)}.ts")
            pipeline.get_by_name(f"file{len(streams)}").set_property("location", path)
            counters = {
                "file": path,
                "arrived_packets": 0,
                "arrived_frames": 0,
                "missing_packets": 0,
                "next": None,
            }
            counters |= {"packets": 0, "frames": 0, "bytes": 0}
            depayloader.get_static_pad("sink").add_probe(
                Gst.PadProbeType.BUFFER, self.packet, counters
            )
            lists = Gst.PadProbeType.BUFFER_LIST
            depayloader.get_static_pad("sink").add_probe(lists, self.packet_list, counters)
            parser = pipeline.get_by_name(f"frames{len(streams)}")
            parser.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self.frame, counters)
            streams.append(counters)
        media.connect("prepared", self.prepared, streams)
        self.all.append({"streams": streams})

    def prepared(self, media, streams):
        """Counts what arrives from the network: the jitter buffer behind it drops what it holds at
        TEARDOWN."""
        elements = media.get_element().get_parent().children
        [rtpbin] = [element for element in elements if element.get_factory().get_name() == "rtpbin"]
        both = Gst.PadProbeType.BUFFER | Gst.PadProbeType.BUFFER_LIST
        for at, counters in enumerate(streams):
            rtpbin.get_static_pad(f"recv_rtp_sink_{at}").add_probe(both, self.arrived, counters)

    @staticmethod
    def arrived(_pad, info, counters):
        if info.type & Gst.PadProbeType.BUFFER_LIST:
            packets = info.get_buffer_list()
            packets = [packets.get(at) for at in range(packets.length())]
        else:
            packets = [info.get_buffer()]
        counters["arrived_packets"] += len(packets)
        for packet in packets:
            sequence = int.from_bytes(packet.extract_dup(2, 2), "big")
            expected = sequence if counters["next"] is None else counters["next"]
            counters["missing_packets"] += (sequence - expected) % 65536
            counters["next"] = (sequence + 1) % 65536
        # The marker bit ends a frame of video.
        counters["arrived_frames"] += sum(packet.extract_dup(1, 1)[0] >> 7 for packet in packets)
        return Gst.PadProbeReturn.OK

    @staticmethod
    def packet(_pad, _info, counters):
        counters["packets"] += 1
        return Gst.PadProbeReturn.OK

    @staticmethod
    def packet_list(_pad, info, counters):
        counters["packets"] += info.get_buffer_list().length()
        return Gst.PadProbeReturn.OK

    @staticmethod
    def frame(_pad, info, counters):
        counters["frames"] += 1
        counters["bytes"] += info.get_buffer().get_size()
        return Gst.PadProbeReturn.OK

    def write(self):
        path = os.path.join(self.folder, "counters.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.all, file)
        os.rename(path + ".new", path)
        return True


def auth_of(settings):
    """Checks for TLS and a login; None when neither is asked for."""
    login, tls = settings["login"], settings["tls"]
    if not login and not tls:
        return None
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", ROLE)
    if tls:
        auth.set_tls_certificate(Gio.TlsCertificate.new_from_files(tls["certificate"], tls["key"]))
    if not login:
        auth.set_default_token(token)
    elif login["method"] == "digest":
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        auth.add_digest(login["user"], login["password"], token)
    else:
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.BASIC)
        auth.add_basic(auth.make_basic(login["user"], login["password"]), token)
    return auth


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        settings = json.load(file)
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address(settings["address"])
    server.set_service(str(settings["port"]))
    server.set_backlog(512)
    mounts = server.get_mount_points()
    for mount, launch in OF_FILES.items():
        mounts.add_factory(mount, factory_of(launch.format(settings["files"][mount]), settings))
    for mount, launch in (("/live", LIVE), ("/live-2m", LIVE_2M)):
        live = factory_of(launch, settings)
        live.set_shared(True)
        mounts.add_factory(mount, live)
    recordings = Recordings(settings["recordings"])
    for mount, launch in RECORD.items():
        factory = factory_of(launch, settings)
        factory.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
        factory.connect("media-configure", recordings.configure)
        mounts.add_factory(mount, factory)
    server.set_auth(auth_of(settings))

    def on_client(_server, client):
        client.connect(
            "new-session", lambda _, session: session.set_timeout(settings["session_timeout_s"])
        )

    server.connect("client-connected", on_client)
    GLib.timeout_add_seconds(1, lambda: server.get_session_pool().cleanup() or True)
    GLib.timeout_add(100, recordings.write)
    if not server.attach(None):
        sys.exit(f"cannot listen on {settings['address']}:{settings['port']}")
    print("listening", server.get_bound_port(), flush=True)
    GLib.MainLoop().run()


main()

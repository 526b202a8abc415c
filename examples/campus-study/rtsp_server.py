#!/usr/bin/python3
"""An RTSP server of files by gst-rtsp-server: rtsp://127.0.0.1:PORT/movie-N plays
FOLDER/movie-N.mp4 or .ts.

usage: rtsp_server.py PORT FOLDER

Each viewer has a pipeline of its own, which reads and packetises the file at playback pace, as
Live555 does. Debian: gir1.2-gst-rtsp-server-1.0 python3-gi
gstreamer1.0-plugins-{base,good,bad,ugly}
"""

import pathlib
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

ADDRESS = "127.0.0.1"
LAUNCH = {
    ".mp4": "filesrc location={0} ! qtdemux name=d"
    " d.video_0 ! queue ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1"
    " d.audio_0 ! queue ! aacparse ! rtpmp4gpay name=pay1 pt=97",
    ".ts": "filesrc location={0} ! tsdemux name=d"
    " d. ! queue ! mpegvideoparse ! rtpmpvpay name=pay0 pt=32"
    " d. ! queue ! mpegaudioparse ! rtpmpapay name=pay1 pt=14",
}


def main():
    port, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address(ADDRESS)
    server.set_service(port)
    server.set_backlog(512)
    # Without a pool the sockets of media are bound to every address of the machine.
    pool = GstRtspServer.RTSPAddressPool()
    if not pool.add_range(ADDRESS, ADDRESS, 40000, 48999, 0):
        sys.exit("no UDP ports 40000 to 48999")
    movies = sorted(path for path in folder.glob("movie-*") if path.suffix in LAUNCH)
    if not movies:
        sys.exit(f"no movies in {folder}")
    for movie in movies:
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(f"( {LAUNCH[movie.suffix].format(movie)} )")
        factory.set_address_pool(pool)
        server.get_mount_points().add_factory(f"/{movie.stem}", factory)
    GLib.timeout_add_seconds(1, lambda: server.get_session_pool().cleanup() or True)
    if not server.attach(None):
        sys.exit(f"cannot listen on {ADDRESS}:{port}")
    print(f"{len(movies)} movies on port {server.get_bound_port()}", flush=True)
    GLib.MainLoop().run()


main()

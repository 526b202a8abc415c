#!/usr/bin/env python3
"""Drives a packaged server to its limits, and writes the log lines that its pack knows.

  scripts/drive-logs.py nginx|lighttpd|caddy|prosody|coturn|ffmpeg|gstreamer|janus|livekit

Each pattern's first line goes to stdout as a row for SEEN in
crates/watch/src/packs/seen_tests.rs. What was not seen goes to stderr with the end of the log; the
exit code is 1 then. As root: the servers run in a network namespace of their own, their files are
in a folder that goes with it.

THRONG names the binary whose viewers Janus and LiveKit get (target/debug/throng).
"""

import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = "10.85.0.1"
PATH = f"{os.environ['PATH']}:/usr/sbin:{Path.home()}/.cache/throng/bin"
FOLDER = Path(tempfile.gettempdir())
# Connections that stay open until the log was read.
KEPT = []


def start(command, log="log", **options):
    """A program that ends with this one; its output goes to a file of the folder."""
    out = open(FOLDER / log, "ab")
    process = subprocess.Popen(
        [str(part) for part in command], cwd=FOLDER, stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=out, stderr=out, env={**os.environ, "PATH": PATH, "HOME": str(FOLDER)}, **options)
    atexit.register(process.kill)
    return process


def run(command, seconds, **options):
    """A program that is killed after so many seconds."""
    process = start(command, **options)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def when_open(port, host="127.0.0.1"):
    for _ in range(150):
        try:
            return socket.create_connection((host, port), 1).close()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing listens on {host}:{port}:\n{logged()[-3000:]}")


def connected(port, count, own_port=None):
    """Connections that stay, from ports of the kernel's choice or from these."""
    first = len(KEPT)
    for at in range(count):
        one = socket.socket()
        one.settimeout(1)
        try:
            if own_port:
                one.bind(("127.0.0.1", own_port + at))
            one.connect(("127.0.0.1", port))
        except OSError as error:
            print(f"connection {at}: {error}", file=sys.stderr)
        KEPT.append(one)
    return KEPT[first:]


def ask(one, path, body=b""):
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    one.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def get(port, path, body=b""):
    one = socket.create_connection(("127.0.0.1", port), 5)
    ask(one, path, body)
    try:
        while one.recv(65536):
            pass
    except OSError:
        pass


def upstream(port, answers):
    """Accepts; ends each connection once it is asked, or never answers."""
    listener = socket.create_server(("127.0.0.1", port), backlog=100)

    def serve():
        while True:
            one = listener.accept()[0]
            KEPT.append(one)
            if answers == "ends":
                one.recv(65536)
                one.close()

    threading.Thread(target=serve, daemon=True).start()


def write(name, text):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def logged():
    files = [path for path in FOLDER.rglob("*log") if path.is_file()]
    return "\n".join(path.read_text(errors="replace") for path in sorted(files))


def nginx():
    upstream(9001, "ends")
    upstream(9002, "never")
    of = lambda port: f"proxy_pass http://127.0.0.1:{port};"
    configuration = lambda port, connections: f"""
daemon off; master_process off; pid {FOLDER}/pid{port}; error_log {FOLDER}/error{port}.log info;
events {{ worker_connections {connections}; }}
http {{
  access_log {FOLDER}/access{port}.log combined;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u;
  scgi_temp_path s;
  limit_req_zone $binary_remote_addr zone=requests:1m rate=1r/s;
  limit_conn_zone $binary_remote_addr zone=connections:1m;
  upstream down {{
    server 127.0.0.1:9003 max_fails=1 fail_timeout=30s;
    server 127.0.0.1:9004 max_fails=1 fail_timeout=30s;
  }}
  server {{
    listen 127.0.0.1:{port}; client_body_buffer_size 1k; proxy_read_timeout 1s;
    location /closed {{ {of(9001)} }}
    location /silent {{ {of(9002)} }}
    location /refused {{ {of(9003)} }}
    location /down {{ proxy_pass http://down; }}
    location /often {{ limit_req zone=requests; {of(9001)} }}
    location /many {{ limit_conn connections 1; {of(9002)} }}
  }}
}}
"""
    for port, connections in [(8080, 64), (8081, 8)]:
        conf = write(f"conf{port}", configuration(port, connections))
        start(["nginx", "-p", FOLDER, "-e", FOLDER / f"error{port}.log", "-c", conf])
        when_open(port)
    for path in ["/closed", "/silent", "/refused", "/down", "/down", "/often", "/often"]:
        get(8080, path)
    get(8080, "/closed", b"x" * 50_000)
    for one in connected(8080, 3):
        ask(one, "/many")
    # Two local ports for the connections to a server: the third has none.
    ports = Path("/proc/sys/net/ipv4/ip_local_port_range")
    usual = ports.read_text()
    ports.write_text("40000 40001")
    for one in connected(8080, 4, own_port=50_000):
        ask(one, "/silent")
    time.sleep(2)
    ports.write_text(usual)
    # Idle ones would be closed for new ones.
    for one in connected(8081, 12):
        ask(one, "/silent")
    time.sleep(1)


def lighttpd():
    upstream(9002, "never")
    few_files = "server.max-fds = 40\nserver.max-connections = 20"
    for port, limit in [(8080, "server.max-connections = 4"), (8081, few_files)]:
        conf = write(f"conf{port}", f"""
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{FOLDER}"
server.modules = ( "mod_proxy" )
proxy.server = ( "" => (( "host" => "127.0.0.1", "port" => 9002 )) )
server.errorlog = "{FOLDER}/error{port}.log"
{limit}
""")
        start(["lighttpd", "-D", "-f", conf])
        when_open(port)
    connected(8080, 12)
    # Each takes a descriptor, and one of the connection to the upstream server.
    for one in connected(8081, 19):
        ask(one, "/")
        time.sleep(0.05)
    time.sleep(3)


def caddy():
    conf = write("Caddyfile", "{\n  admin off\n}\n:8080 {\n  log\n"
                              "  reverse_proxy 127.0.0.1:9003\n}\n")
    start(["caddy", "run", "--config", conf, "--adapter", "caddyfile"])
    when_open(8080)
    get(8080, "/")


def prosody():
    write("modules/mod_broken.lua",
          "module:hook('stream-features', function () error('broken') end)\n")
    stream = (b"<?xml version='1.0'?><stream:stream to='localhost' xmlns='jabber:client' "
              b"xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>")
    conf = write("prosody.cfg.lua", f"""
run_as_root = true
daemonize = false
pidfile = "{FOLDER}/pid"
data_path = "{FOLDER}/data"
plugin_paths = {{ "{FOLDER}/modules" }}
log = {{ debug = "*console" }}
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ 5222 }}
s2s_ports = {{ }}
modules_enabled = {{ "saslauth"; "posix"; "broken" }}
modules_disabled = {{ "s2s"; "s2s_auth_certs"; "tls"; "offline" }}
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
VirtualHost "localhost"
  authentication = "anonymous"
""")
    start(["prlimit", "--nofile=60", "prosody", "--config", conf])
    when_open(5222)
    for one in connected(5222, 1):
        one.sendall(stream)
    time.sleep(1)
    connected(5222, 80)
    time.sleep(3)


def coturn():
    for port, limit in [(3478, "user-quota=1"), (3480, "min-port=50000\nmax-port=50001")]:
        conf = write(f"conf{port}", f"""
listening-ip=127.0.0.1
relay-ip=127.0.0.1
listening-port={port}
alt-listening-port={port + 1}
realm=throng.test
lt-cred-mech
user=viewer:sesame
allow-loopback-peers
cli-port={port + 1000}
no-cli
no-tls
no-dtls
verbose
no-stdout-log
log-file={FOLDER}/coturn{port}.log
simple-log
pidfile={FOLDER}/pid{port}
userdb={FOLDER}/users{port}
{limit}
""")
        start(["turnserver", "-c", conf])
        when_open(port)
        client = ["turnutils_uclient", "-u", "viewer", "-w", "sesame", "-p", port, "-m", 6, "-n", 5]
        run([*client, "-y", "-e", "127.0.0.1", "127.0.0.1"], 10, log="client")


def ffmpeg():
    ff = ["ffmpeg", "-hide_banner", "-nostdin", "-y"]
    source = ["-f", "lavfi", "-i", "testsrc2=r=50:d=4:s=640x360"]
    run([*ff, *source, "-r", "10", "-fps_mode", "cfr", "-f", "null", "-"], 30)
    coded = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-f", "mpegts"]
    run([*ff, *source, *coded, FOLDER / "a.ts"], 30)
    clip = (FOLDER / "a.ts").read_bytes()
    (FOLDER / "twice.ts").write_bytes(clip * 2)
    run([*ff, "-i", FOLDER / "twice.ts", "-c", "copy", "-f", "mp4", FOLDER / "twice.mp4"], 30)
    damaged = bytearray(clip)
    for at in range(20_000, len(damaged) - 4, 997):
        damaged[at:at + 4] = b"\xff\x00\xff\x00"
    (FOLDER / "damaged.ts").write_bytes(damaged)
    run([*ff, "-i", FOLDER / "damaged.ts", "-f", "null", "-"], 30)
    run([*ff, "-i", "tcp://127.0.0.1:9003"], 10)
    # Its second input is read in real time, its first as fast as the pipe gives it.
    pipe = subprocess.Popen(["cat", FOLDER / "twice.ts"], stdout=subprocess.PIPE)
    clock = ["-re", "-f", "lavfi", "-i", "anullsrc", "-map", "0", "-map", "1", "-t", "4"]
    run([*ff, "-thread_queue_size", "1", "-f", "mpegts", "-i", "pipe:0", *clock, "-f", "null", "-"],
        20, stdin=pipe.stdout)


def gstreamer():
    gst = ["gst-launch-1.0"]
    run([*gst, *"videotestsrc is-live=true num-buffers=200 ! video/x-raw,framerate=50/1 ! "
         "identity sleep-time=80000 ! fakesink sync=true qos=true "
         "max-lateness=5000000".split()], 25)
    run([*gst, *"fakesrc num-buffers=2 filltype=zero sizetype=fixed sizemax=100 ! videoconvert ! "
         "fakesink".split()], 10)
    run([*gst, *f"videotestsrc num-buffers=1 ! filesink location={FOLDER}/none/file".split()], 10)


VIEW = [os.environ.get("THRONG", ROOT / "target/debug/throng"), "view"]


def frozen(command, after, seconds):
    """Viewers that answer nothing any more from so many seconds on, and keep their connections."""
    process = start(command, log="viewers")
    time.sleep(after)
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)


def websocket(port, path, protocol):
    """A WebSocket, by the function that sends a text of less than 126 bytes."""
    one = socket.create_connection((HOST, port), 5)
    one.sendall((f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\n"
                 "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                 f"Sec-WebSocket-Protocol: {protocol}\r\n\r\n").encode())
    one.recv(4096)
    KEPT.append(one)
    head = lambda text: bytes([0x81, 0x80 | len(text), 0, 0, 0, 0])
    return lambda text: one.sendall(head(text) + text.encode())


def janus():
    installed = "/usr/lib/x86_64-linux-gnu/janus"
    write("janus.jcfg", f"""general: {{
  configs_folder = "{FOLDER}"
  plugins_folder = "{installed}/plugins"
  transports_folder = "{installed}/transports"
  debug_level = 4
  debug_colors = false
  session_timeout = 45
}}
nat: {{ ice_enforce_list = "{HOST}" }}
transports: {{ disable = "libjanus_rabbitmq.so,libjanus_mqtt.so,libjanus_nanomsg.so,\
libjanus_pfunix.so,libjanus_http.so" }}
""")
    write("janus.transport.websockets.jcfg",
          'general: { json = "plain" ws = true ws_port = 8188 wss = false }\n')
    write("janus.plugin.streaming.jcfg", """general: { }
one: { type = "rtp" id = 1 media = (
  { type = "audio" mid = "a" label = "a" port = 5002 pt = 111 codec = "opus" } ) }
""")
    start(["janus", "-F", FOLDER])
    when_open(8188, HOST)
    say = websocket(8188, "/", "janus-protocol")
    say(json.dumps({"janus": "create", "transaction": "a"}))
    url = f"janus+ws://{HOST}:8188/streaming/1"
    # Those of the first leave in good order.
    run([*VIEW, url, "-n", "2", "--for", "4s"], 20, log="viewers")
    frozen([*VIEW, url, "-n", "2", "--for", "90s"], 6, 50)


def livekit():
    conf = write("livekit.yaml", f"""port: 7880
bind_addresses: [ "{HOST}" ]
keys: {{ key: "a-secret-of-at-least-thirty-two-bytes" }}
rtc: {{ node_ip: "{HOST}", use_external_ip: false, udp_port: 7882, tcp_port: 0 }}
room: {{ auto_create: false }}
logging: {{ json: true, level: debug }}
""")
    keys = ["--set", "target.api_key=key",
            "--set", "target.api_secret=a-secret-of-at-least-thirty-two-bytes"]
    server = start(["livekit-server", "--config", conf])
    when_open(7880, HOST)
    room = f"livekit+ws://{HOST}:7880/room"
    run([*VIEW, room, "-n", "1", "--for", "3s", *keys], 20, log="viewers")
    server.kill()
    server.wait()
    conf.write_text(conf.read_text().replace("auto_create: false", "auto_create: true"))
    start(["livekit-server", "--config", conf])
    when_open(7880, HOST)
    frozen([*VIEW, room, "-n", "2", "--for", "90s", *keys], 8, 50)


DRIVERS = [nginx, lighttpd, caddy, prosody, coturn, ffmpeg, gstreamer, janus, livekit]


def main():
    drivers = {driver.__name__: driver for driver in DRIVERS}
    if len(sys.argv) != 2 or sys.argv[1] not in drivers:
        sys.exit(f"usage: scripts/drive-logs.py {'|'.join(drivers)}")
    name = sys.argv[1]
    if os.environ.get("DRIVE_LOGS") is None:
        os.environ["DRIVE_LOGS"] = name
        os.execvp("unshare", ["unshare", "--net", sys.executable, "-B", __file__, name])
    for words in ["link set lo up", "link add v0 type veth peer name v1",
                  f"addr add {HOST}/24 dev v0", "link set v0 up", "link set v1 up"]:
        subprocess.run(["ip", *words.split()], check=True)
    global FOLDER
    FOLDER = Path(tempfile.mkdtemp(prefix="drive-logs-"))
    atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
    drivers[name]()
    time.sleep(1)
    text = logged()
    lines = re.split(r"[\r\n]+", text)
    pack = tomllib.loads((ROOT / f"crates/watch/packs/{name}.toml").read_text())
    missing = []
    for log in pack["log"]:
        pattern = re.compile(log["pattern"].replace("(?<", "(?P<"))
        line = next((line for line in lines if pattern.search(line)), None)
        if line is None:
            missing.append(log["id"])
        else:
            quoted = json.dumps(line.replace(str(FOLDER), "FOLDER"), ensure_ascii=False)
            print(f"    ({json.dumps(name)}, {json.dumps(log['id'])}, {quoted}),")
    if missing:
        told = f"not seen: {', '.join(missing)}; the end of the log:\n{text[-4000:]}"
        print(told, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

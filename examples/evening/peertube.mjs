// The parts of a PeerTube server that a live's viewers talk to: page, API, views, socket.io, tracker, livechat.
//
//   node peertube.mjs CONFIG.json
//
// Routes, names of fields and rules are those of PeerTube and of its livechat plugin (README.md says of which
// versions, and what is left out). It starts the packager as PeerTube does, and hashes what that writes.

import { createHash } from "node:crypto"
import { spawn } from "node:child_process"
import fs from "node:fs"
import http from "node:http"
import { createRequire } from "node:module"
import path from "node:path"

import { Bucket } from "./object_storage.mjs"

const config = JSON.parse(fs.readFileSync(process.argv[2], "utf8"))
// The packages are not in the checkout, so they cannot be found from there.
const need = createRequire(path.join(config.packages, "package.json"))
const { Server: TrackerServer } = await import(path.join(config.packages, "node_modules/@peertube/bittorrent-tracker-server/index.js"))
const { Server: SocketServer } = need("socket.io")
const { WebSocketServer } = need("ws")
const httpProxy = need("http-proxy")

// --- Versions: what differs on the wire

const sha1 = text => createHash("sha1").update(text).digest()
const engine2 = text => Buffer.from(createHash("md5").update(text).digest().subarray(1).toString("base64"))
const engine4 = text => Buffer.from(sha1(text).subarray(0, 15).toString("base64"))
const byUrl = (hash, format) => url => config.renditions.map((_, level) => hash(format(url, level)).toString("hex"))
const VERSIONS = {
  5: {
    peertube: "5.0.1", livechat: "6.0.1", engine: "0.6", sessions: false, chapters: false, playerSettings: false, chat: "iframe",
    infoHashes: byUrl(sha1, (url, level) => `2${url}+V${level}`),
  },
  6: {
    peertube: "6.3.3", livechat: "11.0.1", engine: "0.6", sessions: true, chapters: true, playerSettings: false, chat: "page",
    infoHashes: byUrl(sha1, (url, level) => `2${url}+V${level}`),
  },
  8: {
    peertube: "8.2.4", livechat: "14.0.4", engine: "2.2", sessions: true, chapters: true, playerSettings: true, chat: "page",
    infoHashes: byUrl(engine2, (url, level) => `v2-${url}-main-${level}`),
  },
  9: {
    peertube: "9.0.0-rc.1", livechat: "14.0.4", engine: "4.0", sessions: true, chapters: true, playerSettings: true, chat: "page",
    infoHashes: () => config.renditions.map(({ height }) => engine4(`pt-v3-${config.uuid}-main-default-${height}`).toString("hex")),
  },
}
const version = VERSIONS[config.version]
if (!version) throw new Error(`version ${config.version} is none of ${Object.keys(VERSIONS).join(", ")}`)

// --- Counters, read by GET /stand/counters

const fresh = () => ({
  since: new Date().toISOString(),
  requests: {},
  views: { posts: 0, viewers_added: 0, viewers_expired: 0, views: 0 },
  socketio: { polling_requests: 0, websockets: 0, subscribed: 0, received: {}, sent: {} },
  tracker: {
    sockets: 0, refused: 0, unknown_info_hash: 0, warnings: 0,
    received: { started: 0, update: 0, stopped: 0, answer: 0, other: 0 },
    offers_received: 0, sent: { reply: 0, offer: 0, answer: 0, failure: 0 }, bytes_received: 0, bytes_sent: 0,
  },
  chat: { sockets: 0, errors: 0, room_configurations: 0 },
  playback: { posts: 0 },
  segments: { hashed: 0, removed: 0 },
  // What Node sent to the object storage, by operation and suffix.
  objects: { operations: {}, bytes: 0, failed: 0 },
})
let counters = fresh()
const count = (of, name, by = 1) => { of[name] = (of[name] ?? 0) + by }
const log = (...text) => console.log(new Date().toISOString(), ...text)

// --- The video

const ALPHABET = "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
function shortened(uuid) {
  let number = BigInt(`0x${uuid.replaceAll("-", "")}`), text = ""
  for (; number > 0n; number /= 58n) text = ALPHABET[Number(number % 58n)] + text
  return text.padStart(22, ALPHABET[0])
}

const { uuid } = config
const shortUUID = shortened(uuid)
const ID = 1, CHANNEL = 1, SEGMENT_SECONDS = 4
// PeerTube's numbers of VideoState.
const STATES = {
  live: [1, "Published"], waiting: [4, "Waiting for livestream"], ended: [5, "Livestream ended"],
  // The replay of the live is the same video.
  recorded: [1, "Published"],
}
let state = "waiting"
const isLive = () => state !== "recorded"
const created = "2026-01-01T18:00:00.000Z"
let published = created

// PeerTube has one public URL. Here it is that by which the request came.
function originOf(request) {
  const host = request.headers.host ?? `127.0.0.1:${config.http}`
  return `${request.headers["x-forwarded-proto"] ?? "http"}://${host}`
}
const ORIGINS = ["127.0.0.1", "localhost"].flatMap(host => [`http://${host}:${config.http}`, `https://${host}:${config.https}`])
const bucket = config.objectStorage && new Bucket({ ...config.objectStorage, prefix: `hls/${uuid}/` })
// Where players find a file of the live: on this host, or in the bucket, whatever the page's host is.
const fileUrl = (origin, name) => bucket ? bucket.url(name) : `${origin}/static/streaming-playlists/hls/${uuid}/${name}`
// A recording has a playlist and hashes of its own, and so swarms of its own.
const RECORDED = "recorded-", MASTER = "master.m3u8", HASHES = "segments-sha256.json"
const currentUrl = (origin, name) => fileUrl(origin, isLive() ? name : RECORDED + name)
const infoHashes = new Set(ORIGINS.flatMap(origin =>
  [MASTER, RECORDED + MASTER].flatMap(master => version.infoHashes(fileUrl(origin, master)))))

const images = (kind, widths) => widths.map(width => ({
  path: `/lazy-static/${kind}/4a0e6e1c-${width}.jpg`, width, createdAt: created, updatedAt: created,
}))
function actor(origin, kind, name, displayName) {
  const host = new URL(origin).host
  return { url: `${origin}/${kind}/${name}`, name, host, avatars: images("avatars", [48, 120, 600, 1500]), id: 2, displayName }
}
function details(origin, kind, name, displayName) {
  return {
    ...actor(origin, kind, name, displayName),
    hostRedundancyAllowed: false, followingCount: 0, followersCount: 12, createdAt: created, updatedAt: created, description: null,
    banners: [],
  }
}

function miniature(origin, number = ID) {
  return {
    id: number, uuid, shortUUID, url: `${origin}/videos/watch/${uuid}`,
    name: "An evening",
    category: { id: 1, label: "Music" }, licence: { id: null, label: "Unknown" },
    language: { id: "en", label: "English" }, privacy: { id: 1, label: "Public" },
    nsfw: false, nsfwFlags: 0, nsfwSummary: null,
    truncatedDescription: "A live stream with its chat", description: "A live stream with its chat",
    isLocal: true, duration: isLive() ? 0 : config.recordedSeconds, aspectRatio: 1.7778,
    views: counters.views.views, viewers: viewers.size, likes: 3, dislikes: 0,
    thumbnailPath: `/lazy-static/thumbnails/${uuid}.jpg`, previewPath: `/lazy-static/previews/${uuid}.jpg`,
    embedPath: `/videos/embed/${shortUUID}`,
    createdAt: created, updatedAt: published, publishedAt: published, originallyPublishedAt: null,
    isLive: isLive(),
    account: actor(origin, "accounts", "stage", "Stage"),
    channel: actor(origin, "video-channels", "evenings", "Evenings"),
    comments: 0,
    pluginData: { "livechat-active": true },
  }
}

function video(origin) {
  const owner = { ...details(origin, "accounts", "stage", "Stage"), userId: 2 }
  return {
    ...miniature(origin),
    blacklisted: false, blacklistedReason: null, liveSchedules: [],
    streamingPlaylists: STATES[state][0] !== STATES.live[0] ? [] : [{
      id: 1, type: 1,
      playlistUrl: currentUrl(origin, MASTER),
      segmentsSha256Url: currentUrl(origin, HASHES),
      redundancies: [],
      // Files of a running live are not shown; nobody here asks for those of a recording.
      files: [],
    }],
    files: [],
    support: null,
    channel: { ...details(origin, "video-channels", "evenings", "Evenings"), support: null, isLocal: true, ownerAccount: owner },
    account: owner,
    tags: [],
    commentsPolicy: { id: 1, label: "Enabled" },
    // Until PeerTube 6.2; later kept for older clients.
    commentsEnabled: true,
    downloadEnabled: true, waitTranscoding: true, inputFileUpdatedAt: null,
    state: { id: STATES[state][0], label: STATES[state][1] },
    trackerUrls: [`${origin.replace("http", "ws")}/tracker/socket`, `${origin}/tracker/announce`],
  }
}

const base = `/plugins/livechat/${version.livechat}`
function room(origin) {
  counters.chat.room_configurations++
  return {
    peertubeVideoOriginalUrl: `${origin}/videos/watch/${uuid}`,
    peertubeVideoUUID: uuid,
    staticBaseUrl: `${base}/static/`,
    assetsPath: `${base}/static/conversejs/`,
    isRemoteChat: false,
    localAnonymousJID: `anon.${config.domain}`,
    remoteAnonymousJID: null,
    remoteAnonymousXMPPServer: false,
    remoteAuthenticatedXMPPServer: false,
    room: `${uuid}@room.${config.domain}`,
    localBoshServiceUrl: `${base}/router/http-bind`,
    localWebsocketServiceUrl: `${base}/ws/xmpp-websocket`,
    remoteBoshServiceUrl: null,
    remoteWebsocketServiceUrl: null,
    authenticationUrl: `${origin}${base}/router/api/auth`,
    autoViewerMode: true,
    theme: "peertube",
    forceReadonly: false,
    transparent: false,
  }
}

// --- Views: viewers by session (before 6.1: by address), for two minutes

const VIEWER_LIFETIME = 120_000
const viewers = new Map()

function view(request, body) {
  counters.views.posts++
  const key = version.sessions && config.trustSessions !== false && body.sessionId
    ? body.sessionId
    : (request.headers["x-forwarded-for"] ?? request.socket.remoteAddress).split(",")[0]
  const known = viewers.get(key)
  const now = Date.now()
  if (known) {
    known.expires = now + VIEWER_LIFETIME
    // A view is counted once, after 10 s.
    if (!known.counted && now - known.since >= 10_000) { known.counted = true; counters.views.views++ }
    return
  }
  viewers.set(key, { since: now, expires: now + VIEWER_LIFETIME, counted: false })
  counters.views.viewers_added++
  notifyViewers()
}

const notifyViewers = () => broadcast("views-change", { viewers: viewers.size })
setInterval(() => {
  const now = Date.now(), before = viewers.size
  for (const [key, { expires }] of viewers) if (expires <= now) viewers.delete(key)
  counters.views.viewers_expired += before - viewers.size
  if (before > 0) notifyViewers()
}, VIEWER_LIFETIME)

// --- HTTP

const json = (response, value, status = 200) => send(response, status, "application/json; charset=utf-8", JSON.stringify(value))
function send(response, status, type, text) {
  response.writeHead(status, { "X-Powered-By": "PeerTube", "Content-Type": type, "Content-Length": Buffer.byteLength(text) })
  response.end(text)
}
const missing = response => json(response, { type: "about:blank", title: "Not Found", detail: "Not found", status: 404 }, 404)
function nothing(response) { response.writeHead(204, { "X-Powered-By": "PeerTube" }).end() }

async function bodyOf(request) {
  const parts = []
  for await (const part of request) parts.push(part)
  try { return JSON.parse(Buffer.concat(parts).toString() || "{}") } catch { return null }
}

function page(request, chatOnly) {
  const origin = originOf(request)
  const settings = {
    chatOnly, video: shortUUID, p2p: version.engine === "2.2", chat: version.chat, base,
    playerSettings: version.playerSettings, chapters: version.chapters, sessions: version.sessions,
    ...chatOnly ? { room: room(origin) } : {},
    // As PeerTube inlines its configuration, so that the page need not ask for it.
    serverConfig: {
      serverVersion: version.peertube, webrtc: { stunServers: [] }, viewsIntervalMs: 5000, playbackMetricsIntervalMs: 15000,
      openTelemetry: { metrics: { enabled: true, playbackStatsInterval: 15000 } },
      views: { videos: { watchingInterval: { anonymous: 5000, users: 5000 } } },
    },
  }
  return fs.readFileSync(path.join(config.here, "watch.html"), "utf8").replace("{{settings}}", JSON.stringify(settings))
}

const list = (data = [], more = {}) => ({ total: data.length, data, ...more })
const known = id => [String(ID), uuid, shortUUID].includes(id)
const ofVideo = answer => (request, response, id) => known(id) ? answer(request, response) : missing(response)
const ofLive = answer => ofVideo((request, response) => isLive() ? answer(request, response) : missing(response))
const since6 = answer => version.chapters ? ofVideo(answer) : (_, response) => missing(response)

// Method, path, name in the counters, answer.
const ROUTES = [
  ["GET", /^\/w\/([^/]+)$/, "page", ofVideo((request, response) => send(response, 200, "text/html; charset=utf-8", page(request, false)))],
  ["GET", /^\/videos\/watch\/([^/]+)$/, "page", ofVideo((request, response) => send(response, 200, "text/html; charset=utf-8", page(request, false)))],
  ["GET", /^\/api\/v1\/videos\/?$/, "recommended", (request, response) => json(response, list([miniature(originOf(request))]))],
  ["GET", /^\/api\/v1\/search\/videos$/, "recommended", (request, response) => json(response, list([miniature(originOf(request))]))],
  ["GET", /^\/api\/v1\/videos\/live\/([^/]+)$/, "live", ofLive((_, response) =>
    json(response, { saveReplay: false, permanentLive: true, latencyMode: 1, schedules: [] }))],
  ["GET", /^\/api\/v1\/videos\/([^/]+)\/captions$/, "captions", ofVideo((_, response) => json(response, list()))],
  ["GET", /^\/api\/v1\/videos\/([^/]+)\/chapters$/, "chapters", since6((_, response) => json(response, { chapters: [] }))],
  ["GET", /^\/api\/v1\/videos\/([^/]+)\/storyboards$/, "storyboards", since6((_, response) => json(response, { storyboards: [] }))],
  ["GET", /^\/api\/v1\/videos\/([^/]+)\/comment-threads$/, "comment-threads", ofVideo((_, response) =>
    json(response, list([], { totalNotDeletedComments: 0 })))],
  ["GET", /^\/api\/v1\/player-settings\/videos\/([^/]+)$/, "player-settings", (request, response, id) =>
    version.playerSettings ? ofVideo((_, response) => json(response, { theme: "galaxy" }))(request, response, id) : missing(response)],
  ["POST|PUT", /^\/api\/v1\/videos\/([^/]+)\/(?:views|watching)$/, "views", ofVideo(async (request, response) => {
    const body = await bodyOf(request)
    if (!body || !Number.isInteger(body.currentTime)) return json(response, { status: 400, title: "Bad Request", detail: "currentTime" }, 400)
    view(request, body)
    nothing(response)
  })],
  ["POST", /^\/api\/v1\/metrics\/playback$/, "playback", async (request, response) => {
    const body = await bodyOf(request)
    if (!body || !known(String(body.videoId))) return json(response, { status: 400, title: "Bad Request", detail: "videoId" }, 400)
    counters.playback.posts++
    for (const name of ["resolutionChanges", "errors", "bufferStalled", "downloadedBytesHTTP", "downloadedBytesP2P", "uploadedBytesP2P"]) {
      count(counters.playback, name, Number(body[name]) || 0)
    }
    nothing(response)
  }],
  ["GET", /^\/api\/v1\/videos\/([^/]+)$/, "video", ofVideo((request, response) => json(response, video(originOf(request))))],
  ["GET", /^\/api\/v1\/config\/?$/, "config", (_, response) =>
    json(response, { serverVersion: version.peertube, views: { videos: { watchingInterval: { anonymous: 5000, users: 5000 } } } })],
  ["GET", /^\/api\/v1\/plugins\/peertube-plugin-livechat\/public-settings$/, "livechat-settings", (_, response) =>
    json(response, { publicSettings: {
      "chat-per-live-video": true, "chat-all-lives": false, "chat-all-non-lives": false, "chat-videos-list": "", "chat-auto-display": true,
      "chat-open-blank": true, "chat-share-url": "everyone", "chat-style": null, "prosody-room-type": "video", "chat-no-anonymous": false,
    } })],
  ["GET", /^\/plugins\/livechat\/(?:[\d.]+\/)?router\/api\/configuration\/room\/([^/]+)$/, "livechat-room", (request, response, id) =>
    version.chat === "page" ? ofLive((request, response) => json(response, room(originOf(request))))(request, response, id) : missing(response)],
  ["GET", /^\/plugins\/livechat\/(?:[\d.]+\/)?router\/webchat\/room\/([^/]+)$/, "livechat-page", ofLive((request, response) =>
    send(response, 200, "text/html; charset=utf-8", page(request, true)))],
  ["GET", /^\/plugins\/livechat\/(?:[\d.]+\/)?router\/api\/auth$/, "livechat-auth", (_, response) => json(response, { error: "Forbidden" }, 403)],
  ["POST|OPTIONS", /^\/plugins\/livechat\/(?:[\d.]+\/)?router\/(?:webchat\/)?http-bind$/, "livechat-bosh", (request, response) =>
    proxy.web(request, response, { target: `http://127.0.0.1:${config.prosody}/http-bind`, ignorePath: true })],
  ["GET", /^\/tracker\/announce$/, "tracker-http", (request, response) => tracker.onHttpRequest(request, response, { action: "announce" })],
  ["GET", /^\/tracker\/scrape$/, "tracker-http", (request, response) => tracker.onHttpRequest(request, response, { action: "scrape" })],
]

const CONTROL = {
  "GET /stand/counters": (_, response) => json(response, {
    version: config.version, state, viewers: viewers.size, uuid, shortUUID,
    swarms: Object.fromEntries(Object.entries(tracker.torrents).map(([hash, swarm]) => [Buffer.from(hash, "hex").toString("latin1"), swarm.peers.length])),
    subscribers: live.adapter.rooms.get(String(ID))?.size ?? 0,
    ...counters,
  }),
  "POST /stand/reset": (_, response) => { counters = fresh(); blocked.clear(); nothing(response) },
  "POST /stand/state": async (request, response) => {
    const body = await bodyOf(request)
    if (!STATES[body?.state]) return json(response, { error: `state is one of ${Object.keys(STATES).join(", ")}` }, 400)
    await change(body.state, body.wait)
    json(response, { state })
  },
  "POST /stand/force-end": (_, response) => { broadcast("force-end"); nothing(response) },
}

async function answer(request, response) {
  const { pathname } = new URL(request.url, "http://stand")
  try {
    if (pathname.startsWith("/stand/")) {
      // nginx does not pass this path on.
      const control = CONTROL[`${request.method} ${pathname}`]
      return control ? await control(request, response) : missing(response)
    }
    for (const [methods, pattern, name, route] of ROUTES) {
      const match = pattern.exec(pathname)
      if (!match || !methods.split("|").includes(request.method)) continue
      count(counters.requests, `${request.method} ${name}`)
      return await route(request, response, match[1] && decodeURIComponent(match[1]))
    }
    count(counters.requests, `${request.method} other`)
    missing(response)
  } catch (error) {
    log("error", request.method, request.url, error.stack)
    if (!response.headersSent) json(response, { status: 500 }, 500)
    else response.destroy()
  }
}

const server = http.createServer(answer)

// --- Tracker

const blocked = new Map()
const BLOCKED_FOR = 180_000
const tracker = new TrackerServer({
  http: false, udp: false, ws: false,
  filter(infoHash, params, callback) {
    if (infoHashes.has(infoHash)) return callback()
    counters.tracker.unknown_info_hash++
    callback(new Error(`Unknown infoHash ${infoHash} requested by ip ${params.ip}`))
    if (params.type === "ws") {
      blocked.set(params.ip, Date.now() + BLOCKED_FOR)
      setTimeout(() => params.socket.close(), 0)
    }
  },
})
tracker.on("error", error => log("tracker error", error.message))
tracker.on("warning", error => { counters.tracker.warnings++; log("tracker warning", error.message) })

function countTracker(socket) {
  counters.tracker.sockets++
  socket.on("message", data => {
    counters.tracker.bytes_received += data.length
    let message
    try { message = JSON.parse(data) } catch { return void counters.tracker.received.other++ }
    const kind = message.answer ? "answer" : message.action !== "announce" ? "other" : message.event ?? "update"
    count(counters.tracker.received, kind)
    counters.tracker.offers_received += message.offers?.length ?? 0
  })
  const plain = socket.send
  socket.send = function (text, ...rest) {
    counters.tracker.bytes_sent += Buffer.byteLength(text)
    const kind = text.includes('"failure reason"') ? "failure" : text.includes('"offer"') ? "offer" : text.includes('"answer"') ? "answer" : "reply"
    counters.tracker.sent[kind]++
    return plain.call(this, text, ...rest)
  }
}

// --- WebSockets: tracker and chat here, the others are socket.io's

const trackerSockets = new WebSocketServer({ noServer: true })
trackerSockets.on("connection", (socket, request) => {
  socket.ip = addressOf(request)
  countTracker(socket)
  tracker.onWebSocketConnection(socket)
})
const addressOf = request => (request.headers["x-forwarded-for"] ?? request.socket.remoteAddress).split(",").at(-1).trim()

const proxy = httpProxy.createProxyServer({ target: `http://127.0.0.1:${config.prosody}/xmpp-websocket`, ignorePath: true, ws: true })
proxy.on("error", (error, request, response) => {
  counters.chat.errors++
  log("chat", error.message)
  if (response?.writeHead) response.writeHead(502).end()
  else response?.end()
})

server.on("upgrade", (request, socket, head) => {
  if (request.url === "/tracker/socket") {
    const until = blocked.get(addressOf(request))
    if (until > Date.now()) {
      counters.tracker.refused++
      socket.write("HTTP/1.1 403 Forbidden\r\n\r\n")
      return socket.destroy()
    }
    return trackerSockets.handleUpgrade(request, socket, head, connection => trackerSockets.emit("connection", connection, request))
  }
  if (/^\/plugins\/livechat\/(?:[\d.]+\/)?ws\/xmpp-websocket$/.test(request.url)) {
    counters.chat.sockets++
    return proxy.ws(request, socket, head)
  }
  if (request.url.startsWith("/socket.io/")) counters.socketio.websockets++
})

// --- socket.io. As in PeerTube with its defaults: what is upgraded by another and has no answer after 1 s is closed.

const io = new SocketServer(server)
server.prependListener("request", request => {
  if (request.url.startsWith("/socket.io/")) counters.socketio.polling_requests++
})
const live = io.of("/live-videos").on("connection", socket => {
  socket.onAny(name => count(counters.socketio.received, name))
  socket.on("subscribe", parameters => { counters.socketio.subscribed++; socket.join(String(parameters?.videoId)) })
  socket.on("unsubscribe", parameters => socket.leave(String(parameters?.videoId)))
})
function broadcast(name, ...data) {
  count(counters.socketio.sent, name, live.adapter.rooms.get(String(ID))?.size ?? 0)
  live.in(String(ID)).emit(name, ...data)
}

// --- The live: the packager, and the hashes of its segments

const hashes = new Map()
const shaFile = path.join(config.directory, HASHES)
let packager, watcher, pending = new Map(), writing = Promise.resolve(), firstHashed

function writeHashes() {
  const text = JSON.stringify(Object.fromEntries(hashes))
  writing = writing.then(async () => {
    await fs.promises.writeFile(`${shaFile}.tmp`, text)
    await fs.promises.rename(`${shaFile}.tmp`, shaFile)
    if (bucket) await stored("PUT", HASHES, text)
  }).catch(error => log("hashes", error.message))
  return writing
}

async function hash(name) {
  let body
  try {
    body = await fs.promises.readFile(path.join(config.directory, name))
  } catch (error) { return log("hash", error.message) }
  hashes.set(name, createHash("sha256").update(body).digest("hex"))
  counters.segments.hashed++
  await writeHashes()
  if (bucket) await store(name, body)
  // With the first hash and the master playlist the live is ready.
  if (fs.existsSync(path.join(config.directory, MASTER))) firstHashed?.()
}

// --- Object storage (store_live_streams): after the hash the segment, then the playlist as far as that segment

async function stored(operation, name, body) {
  count(counters.objects.operations, `${operation} ${name.split(".").at(-1)}`)
  counters.objects.bytes += body ? Buffer.byteLength(body) : 0
  try {
    await (operation === "PUT" ? bucket.put(name, body) : bucket.delete(name))
  } catch (error) {
    counters.objects.failed++
    log("object storage", error.message)
  }
}

// One upload of a rendition after the other, so that its playlists come in order.
const storing = new Map()
function store(name, body) {
  const rendition = name.split("-")[0]
  const after = (storing.get(rendition) ?? Promise.resolve()).then(async () => {
    // Of all renditions, so the first to come has it.
    if (!bucket.stored.has(MASTER)) { bucket.stored.add(MASTER); await storeFile(MASTER) }
    await stored("PUT", name, body)
    await storeFile(`${rendition}.m3u8`, text => text.includes(`${name}\n`) && text.slice(0, text.indexOf(`${name}\n`) + name.length + 1))
  })
  storing.set(rendition, after)
  return after
}

async function storeFile(name, edited = text => text) {
  const text = await fs.promises.readFile(path.join(config.directory, name), "utf8").catch(() => null)
  const wanted = text && edited(text)
  if (wanted) await stored("PUT", name, wanted)
}

// A new segment of a rendition says that its previous one is whole. But FFmpeg writes a segment when that is whole, so
// hashes come a segment later than the playlist. --early-hashes is for a comparison: PeerTube has them late.
function changed(_, name) {
  if (!name?.endsWith(".ts")) return
  if (fs.existsSync(path.join(config.directory, name))) {
    const rendition = name.split("-")[0], whole = pending.get(rendition)
    if (whole === name) return
    if (config.earlyHashes) return void (pending.set(rendition, name), setTimeout(hash, 200, name))
    pending.set(rendition, name)
    if (whole) hash(whole)
  } else if (hashes.delete(name)) {
    counters.segments.removed++
    writeHashes().then(() => bucket && stored("DELETE", name))
  }
}

function emptyDirectory() {
  fs.rmSync(config.directory, { recursive: true, force: true })
  fs.mkdirSync(config.directory, { recursive: true })
}

async function startPackager() {
  emptyDirectory()
  hashes.clear()
  pending = new Map()
  await bucket?.prepare()
  const ready = new Promise(resolve => { firstHashed = resolve })
  watcher = fs.watch(config.directory, changed)
  const out = fs.openSync(config.packagerLog, "a")
  const child = spawn(config.packager[0], config.packager.slice(1), { detached: true, stdio: ["ignore", out, out] })
  fs.closeSync(out)
  packager = child
  // So that `status` and `stop` of stand.sh find it.
  const stat = fs.readFileSync(`/proc/${child.pid}/stat`, "utf8")
  fs.writeFileSync(config.packagerPart, `${child.pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}\n`)
  child.on("exit", (code, signal) => {
    log("packager ended", code ?? signal)
    if (packager === child) { packager = null; if (state === "live") change("waiting") }
  })
  await ready
}

async function stopPackager() {
  const child = packager
  if (!child) return
  packager = null
  const ended = new Promise(resolve => child.on("exit", resolve))
  child.kill("SIGINT")
  await ended
  watcher.close()
  for (const name of pending.values()) await hash(name)
  if (bucket) for (const name of [...bucket.stored]) await stored("DELETE", name)
  fs.rmSync(config.packagerPart, { force: true })
}

// --- The recording: of each rendition one file in fragments, which are ranges of it, and a hash for each range

async function record() {
  emptyDirectory()
  const out = fs.openSync(config.packagerLog, "a")
  const child = spawn(config.recorder[0], config.recorder.slice(1), { stdio: ["ignore", out, out] })
  fs.closeSync(out)
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("exit", resolve))
  if (code !== 0) throw new Error(`the recorder ended with ${code}, see ${config.packagerLog}`)
  const read = (name, ...how) => fs.promises.readFile(path.join(config.directory, name), ...how)
  const ranges = {}
  for (const level of config.renditions.keys()) {
    const file = `${RECORDED}${level}-fragmented.mp4`, bytes = await read(file)
    const listed = (await read(`${RECORDED}${level}.m3u8`, "utf8")).matchAll(/^#EXT-X-BYTERANGE:(\d+)@(\d+)$/gm)
    ranges[file] = Object.fromEntries(Array.from(listed, ([, length, offset]) => {
      const first = Number(offset), after = first + Number(length)
      return [`${first}-${after - 1}`, createHash("sha256").update(bytes.subarray(first, after)).digest("hex")]
    }))
  }
  await fs.promises.writeFile(path.join(config.directory, RECORDED + HASHES), JSON.stringify(ranges))
  await bucket?.prepare()
  if (bucket) for (const name of await fs.promises.readdir(config.directory)) await stored("PUT", name, await read(name))
}

async function change(to, wait = true) {
  if (to === state) return
  if (to === "live") {
    await startPackager()
    state = "live"
    published = new Date().toISOString()
    log("live")
    // PeerTube tells the viewers four segments later, so that they find enough to begin with.
    setTimeout(() => state === "live" && sendState(), wait ? 4 * SEGMENT_SECONDS * 1000 : 0)
  } else {
    // What was recorded can be watched once it is transcoded.
    state = to === "recorded" ? "ended" : to
    log(state)
    await stopPackager()
    sendState()
    if (to === "recorded") {
      await record()
      state = to
      published = new Date().toISOString()
      log(to)
    }
  }
}
const sendState = () => broadcast("state-change", { state: STATES[state][0] })

server.listen(config.port, "127.0.0.1", () => {
  log(`PeerTube ${version.peertube} (test server), port ${config.port}, video ${uuid} ${shortUUID}`)
  if (config.state !== "waiting") change("live", false).catch(error => { log(error.stack); process.exit(1) })
})
process.on("SIGTERM", () => { packager?.kill("SIGINT"); process.exit(0) })

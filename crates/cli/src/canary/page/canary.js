// A participant in a real browser: it joins, shows all media that it receives, and reports getStats(). throng's
// consent guard checks all addresses from the server first.
"use strict";

const canary = {
  connections: [], shown: new Map(), joinedAt: 0, connectedMs: null, firstFrameMs: null, problem: null, refused: 0,
  leave: async () => {}, lateMs: 0, problemIsOwn: false,
};

// The delay of a timer shows whether this machine has CPU time for the browser.
const TICK_MS = 50;
let tickedAt = performance.now();
const tick = () => {
  const now = performance.now();
  canary.lateMs = Math.max(canary.lateMs, now - tickedAt - TICK_MS);
  tickedAt = now;
};
setInterval(tick, TICK_MS);

const sinceJoin = () => performance.now() - canary.joinedAt;

// The first error is the cause of the later ones.
const fail = (error) => {
  if (canary.problem !== null) return;
  canary.problem = String(error?.message ?? error);
  canary.problemIsOwn = Boolean(error?.own);
};

// Errors of the browser itself, which the server did not cause.
const own = (error) => Object.assign(new Error(String(error?.message ?? error)), { own: true });

// The session description or candidate without the addresses that the consent guard refuses.
const guard = async (text) => {
  const response = await fetch("/guard", { method: "POST", body: text });
  if (!response.ok) throw own(`the consent guard answered ${response.status}`);
  canary.refused += Number(response.headers.get("X-Refused"));
  return response.text();
};

const show = (track) => {
  if (canary.shown.has(track)) return;
  const element = document.createElement(track.kind);
  canary.shown.set(track, element);
  element.autoplay = true;
  if (track.kind === "video") {
    element.muted = true;
    element.onloadeddata = () => { canary.firstFrameMs ??= sinceJoin(); };
  }
  element.srcObject = new MediaStream([track]);
  document.body.append(element);
  element.play().catch(() => {});
  track.onended = () => { canary.shown.delete(track); element.remove(); };
};

const connection = () => {
  // Without STUN and TURN: only the server itself is contacted.
  const peer = new RTCPeerConnection({ iceServers: [], bundlePolicy: "max-bundle" });
  peer.onconnectionstatechange = () => {
    if (peer.connectionState === "connected") canary.connectedMs ??= sinceJoin();
    if (peer.connectionState === "failed") fail("its peer connection failed");
  };
  peer.ontrack = ({ track }) => show(track);
  canary.connections.push(peer);
  return peer;
};

const gathered = (peer) => new Promise((resolve) => {
  const look = () => peer.iceGatheringState === "complete" && resolve();
  peer.addEventListener("icegatheringstatechange", look);
  look();
});

const remote = async (peer, { type, sdp }) => peer.setRemoteDescription({ type, sdp: await guard(sdp) });

// The local answer or offer, with all its candidates.
const local = async (peer) => {
  await peer.setLocalDescription();
  await gathered(peer);
  const { type, sdp } = peer.localDescription;
  return { type, sdp };
};

const addRemote = async (peer, candidate) => {
  if (!candidate?.candidate) return;
  const admitted = (await guard(candidate.candidate)).trim();
  if (admitted) await peer.addIceCandidate({ ...candidate, candidate: admitted });
};

// The browser's fake camera and microphone.
const devices = ({ width, height, fps }) => navigator.mediaDevices.getUserMedia({
  audio: true, video: { width, height, frameRate: fps },
}).catch((error) => { throw own(error); });

const publish = (peer, stream, { bitrate_bps }) => {
  for (const track of stream.getTracks()) {
    const sendEncodings = track.kind === "video" ? [{ maxBitrate: bitrate_bps }] : [{}];
    peer.addTransceiver(track, { direction: "sendonly", streams: [stream], sendEncodings });
  }
};

const protocols = {};

// Starts to join and returns at once.
canary.join = (config) => {
  canary.joinedAt = tickedAt = performance.now();
  canary.lateMs = 0;
  protocols[config.protocol](config).catch(fail);
};

const INBOUND = [
  "packetsReceived", "packetsLost", "retransmittedPacketsReceived", "bytesReceived", "jitter", "framesDecoded", "framesDropped", "jitterBufferDelay",
  "jitterBufferEmittedCount", "freezeCount", "totalFreezesDuration", "totalDecodeTime", "nackCount", "pliCount",
];

canary.stats = async () => {
  tick();
  const told = {
    connectedMs: canary.connectedMs, firstFrameMs: canary.firstFrameMs, problem: canary.problem,
    problemIsOwn: canary.problemIsOwn, refused: canary.refused, lateMs: canary.lateMs, received: [], sent: [],
  };
  canary.lateMs = 0;
  for (const [index, peer] of canary.connections.entries()) {
    for (const stat of (await peer.getStats()).values()) {
      const track = { key: `${index}/${stat.ssrc}`, kind: stat.kind, timestamp: stat.timestamp };
      if (stat.type === "inbound-rtp") {
        for (const name of INBOUND) track[name] = stat[name] ?? 0;
        told.received.push(track);
      } else if (stat.type === "outbound-rtp") {
        told.sent.push({ ...track, framesSent: stat.framesSent ?? 0, bytesSent: stat.bytesSent ?? 0 });
      }
    }
  }
  return told;
};

// A member of a LiveKit room in a real browser: publishes a moving canvas, plays the offered media, and reads the
// number on each video of the test card. Sends JSON; receives JSON, or protobuf until the server has received the
// first JSON message.
"use strict";

// The fields of a protobuf message: numbers, and bytes.
function fields(bytes) {
  const found = {};
  let at = 0;
  const varint = () => {
    let value = 0, scale = 1;
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    if (key % 8 === 0) found[key >> 3] = varint();
    else if (key % 8 === 2) { const length = varint(); found[key >> 3] = bytes.subarray(at, at += length); }
    else break;
  }
  return found;
}

const text = (bytes) => new TextDecoder().decode(bytes || new Uint8Array());

function understood(data) {
  if (typeof data === "string") return JSON.parse(data);
  const message = fields(new Uint8Array(data));
  const description = (bytes) => {
    const read = fields(bytes);
    return { type: text(read[1]), sdp: text(read[2]), id: read[3] || 0 };
  };
  if (message[2]) return { answer: description(message[2]) };
  if (message[3]) return { offer: description(message[3]) };
  if (message[4]) {
    const read = fields(message[4]);
    return { trickle: { candidateInit: text(read[1]), target: read[2] === 1 ? "SUBSCRIBER" : "PUBLISHER" } };
  }
  return {};
}

window.member = { videos: [], errors: [] };

window.join = (url) => {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  const say = (request) => socket.send(JSON.stringify(request));
  const connections = { PUBLISHER: new RTCPeerConnection(), SUBSCRIBER: new RTCPeerConnection() };
  for (const [target, connection] of Object.entries(connections)) {
    connection.onicecandidate = ({ candidate }) =>
      candidate && say({ trickle: { target, candidateInit: JSON.stringify(candidate) } });
  }
  connections.SUBSCRIBER.ontrack = ({ track }) => {
    if (track.kind !== "video") return;
    const video = document.createElement("video");
    video.muted = video.autoplay = true;
    video.srcObject = new MediaStream([track]);
    document.documentElement.append(video);
    video.play();
    window.member.videos.push(video);
  };
  const waiting = { PUBLISHER: [], SUBSCRIBER: [] };
  const add = async (target, candidate) => {
    const connection = connections[target];
    if (connection.remoteDescription) await connection.addIceCandidate(candidate);
    else waiting[target].push(candidate);
  };
  const described = async (target, description) => {
    await connections[target].setRemoteDescription(description);
    for (const candidate of waiting[target].splice(0)) await add(target, candidate);
  };
  // One after another, in order of arrival.
  let turn = Promise.resolve();
  const handle = async (response) => {
    if (response.answer) await described("PUBLISHER", { type: "answer", sdp: response.answer.sdp });
    if (response.trickle) {
      const candidate = JSON.parse(response.trickle.candidateInit);
      if (candidate.candidate) await add(response.trickle.target || "PUBLISHER", candidate);
    }
    if (response.offer) {
      await described("SUBSCRIBER", { type: "offer", sdp: response.offer.sdp });
      const answer = await connections.SUBSCRIBER.createAnswer();
      await connections.SUBSCRIBER.setLocalDescription(answer);
      say({ answer: { type: "answer", sdp: answer.sdp, id: response.offer.id } });
    }
  };
  socket.onmessage = ({ data }) => {
    turn = turn.then(() => handle(understood(data))).catch((error) => window.member.errors.push(String(error)));
  };
  socket.onopen = async () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [320, 240];
    const brush = canvas.getContext("2d");
    let step = 0;
    setInterval(() => {
      brush.fillStyle = `hsl(${step * 7 % 360} 80% 50%)`;
      brush.fillRect(step++ % 300, 0, 20, 240);
    }, 50);
    const [track] = canvas.captureStream(20).getTracks();
    connections.PUBLISHER.addTrack(track, new MediaStream([track]));
    const offer = await connections.PUBLISHER.createOffer();
    await connections.PUBLISHER.setLocalDescription(offer);
    // The id in the description connects the track to its announcement.
    const cid = /a=msid:\S+ (\S+)/.exec(offer.sdp)[1];
    say({ addTrack: { cid, name: "camera", type: "VIDEO", source: "CAMERA", width: 320, height: 240 } });
    say({ offer: { type: "offer", sdp: offer.sdp } });
  };
  socket.onclose = ({ code }) => window.member.errors.push(`closed ${code}`);
};

// The number in the strip at the top of the test card: eight bits between fixed columns, then their parity.
function number(video) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
  if (!canvas.width) return null;
  const brush = canvas.getContext("2d");
  brush.drawImage(video, 0, 0);
  const white = (column) => {
    const x = Math.floor((2 * column + 1) * canvas.width / 24);
    return brush.getImageData(x, Math.floor(canvas.height / 18), 1, 1).data[1] > 127;
  };
  const bits = [1, 2, 3, 4, 5, 6, 7, 8].map(white);
  const parity = bits.filter(Boolean).length % 2 === 1;
  if (!white(0) || white(9) || !white(11) || white(10) !== parity) return null;
  return bits.reduce((value, bit) => value * 2 + bit, 0);
}

// For each video that plays: frames shown so far, and the number on it.
window.seen = () => window.member.videos
  .map((video) => [video.getVideoPlaybackQuality().totalVideoFrames, number(video)]);

// LiveKit: signalling over a WebSocket, one peer connection for sent and one for received media. Sends JSON;
// receives JSON, or protobuf until the server has received the first JSON message.

// More often than any server requires.
const LIVEKIT_PING_MS = 5_000;

// The fields of a protobuf message: numbers, and bytes.
const protobufFields = (bytes) => {
  const found = {};
  let at = 0;
  const varint = () => {
    let value = 0, scale = 1;
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
      if (!(byte >= 128)) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    if (key % 8 === 0) found[key >> 3] = varint();
    else if (key % 8 === 2) { const length = varint(); found[key >> 3] = bytes.subarray(at, at += length); }
    else break;
  }
  return found;
};

const livekitMessage = (data) => {
  if (typeof data === "string") return JSON.parse(data);
  const text = (bytes) => new TextDecoder().decode(bytes ?? new Uint8Array());
  const message = protobufFields(new Uint8Array(data));
  const description = (bytes) => {
    const read = protobufFields(bytes);
    return { type: text(read[1]), sdp: text(read[2]), id: read[3] ?? 0 };
  };
  if (message[2]) return { answer: description(message[2]) };
  if (message[3]) return { offer: description(message[3]) };
  if (message[4]) {
    const read = protobufFields(message[4]);
    return { trickle: { candidateInit: text(read[1]), target: read[2] === 1 ? "SUBSCRIBER" : "PUBLISHER" } };
  }
  return {};
};

protocols.livekit = async (config) => {
  const url = new URL(config.url);
  for (const [key, value] of Object.entries({ protocol: 16, auto_subscribe: 1, access_token: config.token })) {
    url.searchParams.set(key, value);
  }
  const stream = await devices(config.camera);
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  const say = (request) => socket.send(JSON.stringify(request));
  const connections = { PUBLISHER: connection(), SUBSCRIBER: connection() };
  const waiting = { PUBLISHER: [], SUBSCRIBER: [] };
  for (const [target, peer] of Object.entries(connections)) {
    peer.onicecandidate = ({ candidate }) =>
      candidate && say({ trickle: { target, candidateInit: JSON.stringify(candidate) } });
  }
  const described = async (target, description) => {
    await remote(connections[target], description);
    for (const candidate of waiting[target].splice(0)) await addRemote(connections[target], candidate);
  };
  const handle = async ({ answer, offer, trickle }) => {
    if (answer) await described("PUBLISHER", { type: "answer", sdp: answer.sdp });
    if (trickle) {
      const target = trickle.target ?? "PUBLISHER", candidate = JSON.parse(trickle.candidateInit);
      if (connections[target].remoteDescription) await addRemote(connections[target], candidate);
      else waiting[target].push(candidate);
    }
    if (offer) {
      await described("SUBSCRIBER", { type: "offer", sdp: offer.sdp });
      await connections.SUBSCRIBER.setLocalDescription();
      const { type, sdp } = connections.SUBSCRIBER.localDescription;
      say({ answer: { type, sdp, id: offer.id } });
    }
  };
  let turn = Promise.resolve(), leaving = false;
  socket.onmessage = ({ data }) => { turn = turn.then(() => handle(livekitMessage(data))).catch(fail); };
  socket.onclose = ({ code }) => leaving || fail(`LiveKit closed the WebSocket (${code})`);
  const ping = setInterval(() => socket.readyState === WebSocket.OPEN && say({ ping: String(Date.now()) }), LIVEKIT_PING_MS);
  canary.leave = () => new Promise((left) => {
    leaving = true;
    clearInterval(ping);
    // The browser is ended next: what it has to say is on its way when the server closes, too. Else
    // the room keeps a participant who sends nothing.
    socket.onclose = left;
    if (socket.readyState !== WebSocket.OPEN) return left();
    say({ leave: { reason: "CLIENT_INITIATED" } });
    socket.close();
  });
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("LiveKit: its WebSocket does not open"));
  });
  publish(connections.PUBLISHER, stream, config.camera);
  await connections.PUBLISHER.setLocalDescription();
  const { type, sdp } = connections.PUBLISHER.localDescription;
  // The id of a track in the description connects it to its announcement.
  for (const { kind, id } of stream.getTracks()) {
    const { width, height } = config.camera;
    const announced = kind === "video"
      ? { name: "camera", type: "VIDEO", source: "CAMERA", width, height }
      : { name: "microphone", type: "AUDIO", source: "MICROPHONE" };
    say({ addTrack: { cid: id, ...announced } });
  }
  say({ offer: { type, sdp } });
};

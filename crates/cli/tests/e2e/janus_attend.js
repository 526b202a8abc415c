// A participant of a Janus VideoRoom in a real browser, which receives all others as soon as `people` of them
// send; `window.seen` of member.js returns what their videos show.
"use strict";

window.attend = (url, room, people) => {
  const socket = new WebSocket(url, "janus-protocol");
  const waiting = new Map();
  let session, count = 0;
  const send = (request) => {
    const transaction = `c${count++}`;
    socket.send(JSON.stringify({ ...request, transaction, ...(session && { session_id: session }) }));
    return transaction;
  };
  const ask = (request) => new Promise((resolve) => waiting.set(send(request), resolve));
  const attach = async () => (await ask({ janus: "attach", plugin: "janus.plugin.videoroom" })).data.id;
  const tell = (handle_id, body, jsep) => ask({ janus: "message", handle_id, body, ...(jsep && { jsep }) });
  socket.onmessage = ({ data }) => {
    const said = JSON.parse(data);
    if (said.error) window.member.errors.push(said.error.reason);
    // An `ack` only announces the answer.
    if (said.janus !== "ack") waiting.get(said.transaction)?.(said);
  };
  const gathered = async (handle) => {
    const { participants } = (await tell(handle, { request: "listparticipants", room })).plugindata.data;
    return participants.filter(({ publisher }) => publisher).length >= people;
  };
  // Records its progress, which is reported when no videos play.
  const at = (step) => { window.member.at = step; };
  socket.onerror = () => window.member.errors.push("the WebSocket failed");
  socket.onclose = () => window.member.errors.push("Janus closed the WebSocket");
  const receive = async () => {
    at("connected");
    session = (await ask({ janus: "create" })).data.id;
    const own = await attach();
    at("waiting for those who send");
    while (!(await gathered(own))) await new Promise((resolve) => setTimeout(resolve, 200));
    const joined = await tell(own, { request: "join", ptype: "publisher", room, display: "chromium" });
    at("joined");
    const streams = joined.plugindata.data.publishers.map(({ id }) => ({ feed: id }));
    const handle = await attach();
    const offered = await tell(handle, { request: "join", ptype: "subscriber", room, streams });
    at(`offered ${streams.length} who send`);
    const connection = window.pc = new RTCPeerConnection();
    connection.onicecandidate = ({ candidate }) =>
      send({ janus: "trickle", handle_id: handle, candidate: candidate || { completed: true } });
    connection.ontrack = ({ track }) => {
      const video = document.createElement(track.kind);
      video.muted = video.autoplay = true;
      video.srcObject = new MediaStream([track]);
      document.documentElement.append(video);
      video.play();
      if (track.kind === "video") window.member.videos.push(video);
    };
    await connection.setRemoteDescription(offered.jsep);
    const answer = await connection.createAnswer();
    await connection.setLocalDescription(answer);
    await tell(handle, { request: "start" }, { type: "answer", sdp: answer.sdp });
    at("started");
  };
  socket.onopen = () => receive().catch((error) => window.member.errors.push(String(error)));
};

// For each received video: seconds of the clock, packets, packets lost, frames decoded, key frames requested,
// seconds frozen.
window.pictures = async () => [...(await window.pc?.getStats() ?? new Map()).values()]
  .filter((stats) => stats.type === "inbound-rtp" && stats.kind === "video")
  .map((video) => [video.timestamp / 1e3, video.packetsReceived, video.packetsLost, video.framesDecoded || 0,
    video.pliCount, video.totalFreezesDuration || 0]);

// WHEP (draft-ietf-wish-whep): the browser offers, the server answers, and DELETE ends the session.
protocols.whep = async ({ url, token }) => {
  const peer = connection();
  const video = peer.addTransceiver("video", { direction: "recvonly" });
  peer.addTransceiver("audio", { direction: "recvonly" });
  // The server chooses by this order: the browser must get the same codec as the crowd.
  const { codecs } = RTCRtpReceiver.getCapabilities("video");
  const preferred = ({ mimeType }) => mimeType.toLowerCase() === "video/h264";
  video.setCodecPreferences([...codecs.filter(preferred), ...codecs.filter((codec) => !preferred(codec))]);
  const { sdp } = await local(peer);
  const access = token ? { Authorization: `Bearer ${token}` } : {};
  const headers = { "Content-Type": "application/sdp", ...access };
  const response = await fetch(url, { method: "POST", headers, body: sdp });
  if (response.status !== 201) throw new Error(`WHEP: the server answered ${response.status}`);
  const location = response.headers.get("Location");
  if (location) {
    const resource = new URL(location, response.url);
    // The token is only for the server of the target.
    const sameServer = resource.origin === new URL(url).origin;
    canary.leave = () => fetch(resource, { method: "DELETE", headers: sameServer ? access : {} });
  }
  await remote(peer, { type: "answer", sdp: await response.text() });
};

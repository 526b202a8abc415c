// Janus: its core API over a WebSocket, and two of its plugins.

// The server keeps a silent session for 60 s.
const JANUS_KEEPALIVE_MS = 25_000;
const JANUS_NO_SUCH_ROOM = 426;
// A room that the run creates exists once its first participant has joined.
const JANUS_ROOM_WITHIN_MS = 5_000;

const janusSession = async ({ url, token }) => {
  const socket = new WebSocket(url, "janus-protocol");
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("Janus: its WebSocket does not open"));
  });
  const waiting = new Map(), handles = new Map();
  let session, leaving = false, counted = 0;
  const send = (message) => {
    const transaction = `canary-${counted++}`;
    const whose = session === undefined ? {} : { session_id: session };
    socket.send(JSON.stringify({ ...message, ...whose, ...(token ? { token } : {}), transaction }));
    return transaction;
  };
  const ask = (message) => new Promise((resolve, reject) => waiting.set(send(message), { resolve, reject }));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.janus === "ack") return; // the plugin's answer follows
    handles.get(message.sender)?.(message);
    const asked = waiting.get(message.transaction);
    waiting.delete(message.transaction);
    const error = message.error ?? (message.plugindata?.data?.error_code && {
      code: message.plugindata.data.error_code, reason: message.plugindata.data.error,
    });
    if (error) asked?.reject(Object.assign(new Error(`Janus: ${error.reason}`), { code: error.code }));
    else asked?.resolve(message);
  };
  socket.onclose = ({ code }) => leaving || fail(`Janus closed the WebSocket (${code})`);
  session = (await ask({ janus: "create" })).data.id;
  const keepalive = setInterval(() => send({ janus: "keepalive" }), JANUS_KEEPALIVE_MS);
  return {
    // A handle on a plugin; `hear` is called with every message of it.
    attach: async (plugin, hear) => {
      const handle_id = (await ask({ janus: "attach", plugin })).data.id;
      handles.set(handle_id, (message) => {
        if (message.janus === "hangup" && !leaving) fail(`Janus hung up: ${message.reason}`);
        hear(message);
      });
      return (body, jsep) => ask({ janus: "message", handle_id, body, ...(jsep ? { jsep } : {}) });
    },
    leave: async () => {
      leaving = true;
      clearInterval(keepalive);
      await ask({ janus: "destroy" });
      socket.close();
    },
  };
};

// Answers the offers of one handle on `peer`, one after another in their order.
const janusAnswers = (peer, handle) => {
  let turn = Promise.resolve();
  return (message) => {
    turn = turn.then(async () => {
      if (message.janus === "trickle") await addRemote(peer, message.candidate);
      if (message.jsep?.type !== "offer") return;
      await remote(peer, message.jsep);
      await handle()({ request: "start" }, await local(peer));
    }).catch(fail);
  };
};

protocols.janus_streaming = async (config) => {
  const session = await janusSession(config);
  canary.leave = session.leave;
  let handle;
  handle = await session.attach("janus.plugin.streaming", janusAnswers(connection(), () => handle));
  await handle({ request: "watch", id: config.id, ...(config.pin ? { pin: config.pin } : {}) });
};

protocols.janus_videoroom = async (config) => {
  const session = await janusSession(config);
  canary.leave = session.leave;
  const room = { room: config.id, ...(config.pin ? { pin: config.pin } : {}) };
  const stream = await devices(config.camera);
  const sender = connection();
  let subscriber = null, turn = Promise.resolve();
  // All publishers are subscribed to, over one peer connection; one request at a time.
  const subscribe = (publishers) => {
    const streams = (publishers ?? []).map(({ id }) => ({ feed: id }));
    if (streams.length === 0) return;
    turn = turn.then(async () => {
      if (subscriber) return subscriber({ request: "subscribe", streams });
      const handle = await session.attach("janus.plugin.videoroom", janusAnswers(connection(), () => handle));
      await handle({ request: "join", ptype: "subscriber", ...room, streams });
      subscriber = handle;
    }).catch((error) => {
      // A publisher that left in the meantime cannot be subscribed to.
      if (error.code !== 428) fail(error);
    });
  };
  const publisher = await session.attach("janus.plugin.videoroom", (message) => {
    if (message.janus === "trickle") addRemote(sender, message.candidate).catch(fail);
    const data = message.plugindata?.data;
    if (data?.videoroom === "event") subscribe(data.publishers);
  });
  const joined = async () => {
    for (;;) {
      try {
        return await publisher({ request: "join", ptype: "publisher", display: config.name, ...room });
      } catch (error) {
        if (error.code !== JANUS_NO_SUCH_ROOM || sinceJoin() > JANUS_ROOM_WITHIN_MS) throw error;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  };
  const { plugindata } = await joined();
  publish(sender, stream, config.camera);
  const { jsep } = await publisher({ request: "publish", display: config.name }, await local(sender));
  await remote(sender, jsep);
  subscribe(plugindata.data.publishers);
};

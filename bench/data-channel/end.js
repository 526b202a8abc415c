// One end of a data channel in a tab: `take` asks for one segment after the other, as a viewer does of a peer, and the end that
// was told to `give` sends each in messages of the size that p2p-media-loader uses.
{
  const MESSAGE_LEN_MAX = 64 * 1024 - 1
  // As throng: what is written may wait for acknowledgements up to the one, and more is written below the other.
  const BUFFERED_MAX = 1 << 20
  const BUFFERED_LOW = BUFFERED_MAX / 2

  const connection = new RTCPeerConnection()
  let channel, open
  const opened = new Promise(resolve => (open = resolve))

  function use(made) {
    channel = made
    channel.binaryType = "arraybuffer"
    channel.bufferedAmountLowThreshold = BUFFERED_LOW
    if (channel.readyState === "open") open()
    else channel.onopen = open
  }

  // Trackers pass a description once: it carries all candidates.
  async function described() {
    await connection.setLocalDescription()
    while (connection.iceGatheringState !== "complete") {
      await new Promise(resolve => (connection.onicegatheringstatechange = resolve))
    }
    return connection.localDescription.sdp
  }

  async function send(segment) {
    for (let sent = 0; sent < segment.length; sent += MESSAGE_LEN_MAX) {
      if (channel.bufferedAmount >= BUFFERED_MAX) {
        await new Promise(resolve => (channel.onbufferedamountlow = resolve))
      }
      channel.send(segment.subarray(sent, sent + MESSAGE_LEN_MAX))
    }
  }

  async function segmentOf(length) {
    const segment = new Uint8Array(length)
    let received = 0
    const whole = new Promise(resolve => {
      channel.onmessage = ({ data }) => {
        segment.set(new Uint8Array(data), received)
        received += data.byteLength
        if (received === length) resolve()
      }
    })
    channel.send("next")
    await whole
    return segment
  }

  globalThis.end = {
    offer() {
      use(connection.createDataChannel("throng"))
      return described()
    },
    async answer(sdp) {
      connection.ondatachannel = event => use(event.channel)
      await connection.setRemoteDescription({ type: "offer", sdp })
      return described()
    },
    accept: sdp => connection.setRemoteDescription({ type: "answer", sdp }),
    async opened() {
      await opened
    },
    give(length) {
      const segment = Uint8Array.from({ length }, (_, at) => at % 251)
      channel.onmessage = () => send(segment)
    },
    // How long it took, seconds.
    async take(segments, length) {
      const began = performance.now()
      for (let number = 0; number < segments; number++) {
        const segment = await segmentOf(length)
        if (segment[length - 1] !== (length - 1) % 251) throw new Error(`segment ${number} came in another order`)
      }
      return (performance.now() - began) / 1000
    },
  }
}

//! All transports, in the order of the table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How frames get from one process to another. The names are stable: `--only` and `ipc.json` use
/// them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// One process copies each frame once in its own memory: the lower bound of every transport
    /// that copies.
    Memcpy,
    /// One process writes each frame once: the cost that a producer that writes in place has
    /// anyway.
    Fill,
    /// throng's ring in shared memory: one copy into it, used in place.
    Ring,
    /// throng's ring: the producer writes each frame where the consumer reads it, so nothing is
    /// copied.
    RingInPlace,
    /// GStreamer's `shmsink` and `shmsrc`, used from both processes through its libraries.
    GstreamerShm,
    /// iceoryx2, publish-subscribe with a notification for each frame.
    Iceoryx2,
    /// A pipe, gifted no pages: the producer's pages are referenced by `vmsplice`, the consumer
    /// copies them out.
    Vmsplice,
    /// A pipe of 1 MiB.
    Pipe,
    /// A Unix stream socket.
    UnixStream,
    /// A Unix socket that preserves records: frames are sent in packets of 128 KiB.
    UnixSeqpacket,
    /// TCP over loopback.
    Tcp,
    /// WebSocket over loopback without masking, a message in one fragment; consumer in Rust
    /// (tungstenite).
    WebsocketUnmasked,
    /// WebSocket over loopback as a browser sends it: masked, in fragments of 131,072 bytes;
    /// consumer in Rust (tungstenite).
    Websocket,
    /// The same, with the consumer in Python (`websockets`).
    WebsocketPython,
}

macro_rules! transports {
    ($($variant:ident = $key:literal, $name:literal;)+) => {
        impl Transport {
            /// All of them, in the order of the table.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$variant),+];

            /// The stable key, as in `ipc.json` and `--only`.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }

            /// The name in tables.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

// Keys and names, in the order of the table: floors first, then by how often a byte is touched.
transports! {
    Memcpy = "memcpy", "memcpy (floor, one process)";
    Fill = "fill", "write once (floor, one process)";
    RingInPlace = "ring-in-place", "ring, written in place";
    Ring = "ring", "ring";
    GstreamerShm = "gstreamer-shm", "GStreamer shm";
    Iceoryx2 = "iceoryx2", "iceoryx2";
    Vmsplice = "vmsplice", "pipe + vmsplice";
    Pipe = "pipe", "pipe";
    UnixStream = "unix-stream", "Unix stream";
    UnixSeqpacket = "unix-seqpacket", "Unix seqpacket";
    Tcp = "tcp", "TCP loopback";
    WebsocketUnmasked = "websocket-unmasked", "WebSocket unmasked";
    Websocket = "websocket", "WebSocket";
    WebsocketPython = "websocket-python", "WebSocket to Python";
}

impl Transport {
    /// The transport of that [`key`](Self::key).
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|transport| transport.key() == key)
    }

    /// Whether it is a single process that passes frames to no other.
    pub(crate) fn is_baseline(self) -> bool {
        matches!(self, Self::Memcpy | Self::Fill)
    }

    /// Whether the consumer is a Python process.
    pub(crate) fn is_python(self) -> bool {
        self == Self::WebsocketPython
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_has_one_stable_key() {
        let mut keys: Vec<_> = Transport::ALL.iter().map(|t| t.key()).collect();
        for transport in Transport::ALL {
            assert_eq!(Transport::of_key(transport.key()), Some(transport));
            assert_eq!(serde_json::to_value(transport).unwrap(), transport.key());
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), Transport::ALL.len());
    }
}

//! The keys of a `[crowd]` that say what its participants do.

use serde_json::Value as Json;

use super::Role;
use super::layers::LAYERS;
use super::publish::PUBLISH;
use super::script::SCRIPT;
use super::subscribe::SUBSCRIBE;
use crate::keys::Usual::{LeftOut, Said, StoredSaid};
use crate::keys::{Flag, Inner, Keyed, Whole, keys};

const PLAYER: Inner = Inner("a table such as { buffer = \"30s\", position = \"random\" }");
const CHAT: Inner = Inner("a table such as { every = \"2m\", vcards = \"authors\" }");

impl Keyed for Role {
    const NAME: &'static str = "RoleFile";
    const MEANING: &'static str = "What participants of a cohort do.";

    keys! {
        /// in a conference, what each participant sends: `"none"`, or a table, see below
        "publish": publish = PUBLISH, StoredSaid("240p VP8 and audio");
        /// in a conference, which participants each participant receives: `"all"`, `"none"`,
        /// `"last_speakers(10)"` (last-N), or separately for video and audio: `{ video =
        /// "last_speakers(10)", audio = "all" }`
        "subscribe": subscribe = SUBSCRIBE, StoredSaid("all");
        /// in a conference with simulcast, the layer that each participant requests: `"off"`,
        /// `"low"`, `"medium"` (the larger of two), `"high"`, or a list `[{ layer = "low" }, {
        /// after = "10s", layer = "high" }]` with times from its join (LiveKit, Janus VideoRoom);
        /// the report shows how long each switch took
        "layers": layers = LAYERS, Said("the server's choice");
        /// in a conference with `[conversation]`, how often each participant speaks, relative to
        /// participants of weight 1; 0 for one that only listens
        "speaking_weight": speaking_weight = Whole(0, 1_000), LeftOut;
        /// in a conference, actions of the whole cohort at given times, see below
        "script": script = SCRIPT, Said("none");
        /// in a chat (`xmpp+ws(s)://…`, `chat+ws(s)://…`, `chat+http(s)://…`), on a page that has
        /// one (`peertube+…`), or beside a video (`url` in it), what each participant says and
        /// fetches: `{ every = "2m", vcards = "authors" }`; all keys, and the template of a chat
        /// that is not XMPP, in [chat.md](chat.md)
        "chat": chat = CHAT, Said("only reads");
        /// on recordings and live streams over HTTP, and over RTSP where it says so, how each
        /// viewer plays: `{ buffer = "30s", position = "random", seek_every = "2m" }`; all keys in
        /// [vod.md](vod.md#the-player), those of live streams in [hls.md](hls.md#the-player), of
        /// peers (`p2p`) in [peers.md](peers.md), those of requests (`page`, `credentials`, …) in
        /// [http-client.md](http-client.md)
        "player": player = PLAYER, Said("a full file from its beginning, again and again");
        /// in a conference, one peer connection for each participant that is received
        "connection_per_feed": connection_per_feed = Flag, LeftOut;
    }

    fn usual() -> Self {
        Self::default()
    }
}

impl Role {
    /// The values as in a file. What participants send and receive as usual is not written where
    /// they only play or chat.
    pub(crate) fn written(&self) -> Vec<(&'static str, Json)> {
        let viewer =
            Self { player: self.player.clone(), chat: self.chat.clone(), ..Self::default() };
        let only_views = *self == viewer && *self != Self::default();
        let mut keys = self.write_keys();
        keys.retain(|(key, _)| !only_views || !["publish", "subscribe"].contains(key));
        keys
    }
}

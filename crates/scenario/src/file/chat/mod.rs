//! The schema of `chat` of a cohort, and how it is written.

use schemars::JsonSchema;
use serde::Serialize;

mod template;

use template::TemplateFile;

use super::Duration;
use super::written::duration;
use crate::chat::{ChatConfig, VcardPolicy};
use crate::keys::NameOf;

/// What participants of a chat do.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ChatFile {
    /// The chat beside a video, `xmpp+ws(s)://HOST/PATH?room=ROOM@SERVICE`,
    /// `chat+ws(s)://HOST/PATH` or `chat+http(s)://HOST/PATH`: its viewers are in it too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = concat!(
            r"^(([Xx][Mm][Pp][Pp]|[Cc][Hh][Aa][Tt])\+[Ww][Ss][Ss]?|",
            r"[Cc][Hh][Aa][Tt]\+[Hh][Tt][Tt][Pp][Ss]?)://",
        )
    ))]
    url: Option<String>,
    /// Whose vCards they fetch: `all` occupants, `authors` of messages, or `none`; default
    /// `authors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    vcards: Option<NameOf<VcardPolicy>>,
    /// Messages of the archive that they fetch when they join; default 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1000))]
    history: Option<u32>,
    /// Say that they type (XEP-0085); default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_states: Option<bool>,
    /// Mean time between the messages of one participant; default: it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<Duration>,
    /// Moments of the show at which many say something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    moments: Vec<MomentFile>,
    /// `Origin` of their page; default: that of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    /// Everybody comes as `Anonymous 123456`, and this share chooses another nickname; default: all
    /// have theirs from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9.]+\s*%$"))]
    nick_change: Option<String>,
    /// They choose it within so long after they joined; default 1 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    nick_change_within: Option<Duration>,
    /// Use XMPP's stream management where the server offers it (XEP-0198); default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_management: Option<bool>,
    /// The words of a chat that is not XMPP (`chat+ws(s)://…`, `chat+http(s)://…`).
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<TemplateFile>,
    /// Seed of what is said when; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::keys::SEED_MAX))]
    seed: Option<u64>,
}

/// A moment of the show.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct MomentFile {
    /// When, since the start of the run.
    at: Duration,
    /// The share of the participants that say something at it, each once, from 0 to 1; default 1.
    #[schemars(range(min = 0.0, max = 1.0), default)]
    share: f64,
    /// Within so long; default 10 s.
    #[schemars(default)]
    within: Option<Duration>,
}

/// The chat as in a file; `None` if all is default.
pub(super) fn chat(config: &ChatConfig) -> Option<ChatFile> {
    let usual = ChatConfig::default();
    if *config == usual {
        return None;
    }
    let moment = |moment: &crate::chat::ChatMoment| MomentFile {
        at: duration(moment.at),
        share: f64::from(moment.share_milli) / 1e3,
        within: Some(duration(moment.within)),
    };
    Some(ChatFile {
        url: config.beside.as_ref().map(|endpoint| endpoint.display()),
        vcards: (config.vcards != usual.vcards).then_some(NameOf(config.vcards)),
        history: (config.history != usual.history).then_some(config.history),
        chat_states: (config.chat_states != usual.chat_states).then_some(config.chat_states),
        every: config.every.map(duration),
        moments: config.moments.iter().map(moment).collect(),
        origin: config.origin.clone(),
        nick_change: config
            .renames
            .map(|renames| format!("{}%", f64::from(renames.share_milli) / 10.0)),
        nick_change_within: config.renames.map(|renames| duration(renames.within)),
        stream_management: (config.stream_management != usual.stream_management)
            .then_some(config.stream_management),
        template: config.template.as_ref().map(template::template),
        seed: (config.seed != usual.seed).then_some(config.seed),
    })
}

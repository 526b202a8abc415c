//! `subscribe` of a cohort in a file.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SubscribePolicy, Subscription};
use crate::keys::AsFile;
use crate::read::{Node, Reader, Value};
use crate::suggestion::nearest;

const EXAMPLE: &str = "\"all\", \"none\", \"last_speakers(10)\", or a table such as { video = \
                       \"last_speakers(10)\", audio = \"all\" }";

/// How it is read, written and described.
pub(super) const SUBSCRIBE: AsFile<Subscription, SubscribeFile> = AsFile { read, write };

/// Participants that one receives in a conference.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum SubscribeFile {
    /// The same for video and audio.
    Word(SubscribePolicyName),
    /// Video and audio separately.
    Table(SubscribeTable),
}

/// `all`, `none`, or the last N speakers, such as `last_speakers(10)`.
#[derive(Serialize, JsonSchema)]
pub(super) struct SubscribePolicyName(
    #[schemars(regex(pattern = r"^(all|none|last_speakers\(\s*[1-9]\d*\s*\))$"))] String,
);

/// Policies for video and audio.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SubscribeTable {
    /// Whose video is received.
    video: Option<SubscribePolicyName>,
    /// Whose audio is received.
    audio: Option<SubscribePolicyName>,
}

fn write(subscription: &Subscription) -> SubscribeFile {
    let whom = |policy: SubscribePolicy| SubscribePolicyName(policy.name());
    let Subscription { video, audio } = *subscription;
    if video == audio {
        return SubscribeFile::Word(whom(video));
    }
    SubscribeFile::Table(SubscribeTable { video: Some(whom(video)), audio: Some(whom(audio)) })
}

fn read(reader: &mut Reader, node: &Node, path: &str) -> Option<Subscription> {
    if let Value::Text(_) = &node.value {
        let whom = whom(reader, node, path)?;
        return Some(Subscription { video: whom, audio: whom });
    }
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let mut of = |key: &'static str| {
        let path = fields.path_of(key);
        fields.get(key).and_then(|node| whom(reader, node, &path)).unwrap_or_default()
    };
    let both = Subscription { video: of("video"), audio: of("audio") };
    reader.finish(&fields);
    Some(both)
}

fn whom(reader: &mut Reader, node: &Node, path: &str) -> Option<SubscribePolicy> {
    let expected = "one of \"all\", \"none\", \"last_speakers(10)\"";
    let text = reader.text(node, path, expected)?;
    let whom = SubscribePolicy::from_name(&text);
    if whom.is_none() {
        let near = nearest(&text, ["all", "none", "last_speakers(10)"].into_iter());
        let help = near.map_or_else(
            || format!("write {expected}"),
            |near| format!("did you mean \"{near}\"?"),
        );
        reader.fail(node.span, format!("`{path}` is not {expected}"), help);
    }
    whom
}

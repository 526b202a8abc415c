//! What a cohort of a conference does at a time: `script`.

use schemars::JsonSchema;
use serde::Serialize;

use super::Duration;
use super::written::duration;
use crate::script::{Action, ScriptStep};

/// A timed action of a cohort: exactly one of `mute` and `screen_share`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ScriptStepFile {
    /// When it begins, from the start of the run.
    at: Option<Duration>,
    /// Its duration; default: until the participants leave.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
    /// Stops `audio` or `video`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(audio|video)$"))]
    mute: Option<String>,
    /// Replaces the video by this size of the test card, as a shared screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(144p|180p|240p|360p|720p|1080p)$"))]
    screen_share: Option<String>,
}

pub(super) fn script_step(step: &ScriptStep) -> ScriptStepFile {
    let file = ScriptStepFile {
        at: Some(duration(step.at)),
        duration: step.lasts.map(duration),
        ..ScriptStepFile::default()
    };
    match &step.action {
        Action::Mute(kind) => ScriptStepFile { mute: Some(kind.key().into()), ..file },
        Action::ScreenShare(size) => ScriptStepFile { screen_share: Some(size.clone()), ..file },
    }
}

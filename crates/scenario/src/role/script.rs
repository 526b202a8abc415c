//! `script` of a cohort in a file.

use schemars::JsonSchema;
use serde::Serialize;
use throng_observation::MediaKind;

use super::CARD_SIZES;
use crate::file::{self, OneOrMany, duration};
use crate::keys::AsFile;
use crate::read::{Node, Reader, Value};
use crate::script::{Action, ScriptStep};
use crate::units;

/// Most steps of a script.
const STEPS_MAX: usize = 1_000;
const STEP: &str = "a table such as { at = \"30s\", mute = \"audio\", for = \"10s\" }";

/// How it is read, written and described.
pub(super) const SCRIPT: AsFile<Vec<ScriptStep>, OneOrMany<ScriptStepFile>> =
    AsFile { read, write: |steps| OneOrMany::Many(steps.iter().map(step).collect()) };

/// A timed action of a cohort: exactly one of `mute` and `screen_share`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ScriptStepFile {
    /// When it begins, from the start of the run.
    at: Option<file::Duration>,
    /// Its duration; default: until the participants leave.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    duration: Option<file::Duration>,
    /// Stops `audio` or `video`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(audio|video)$"))]
    mute: Option<String>,
    /// Replaces the video by this size of the test card, as a shared screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = format!("^({})$", CARD_SIZES.join("|"))))]
    screen_share: Option<String>,
}

fn step(step: &ScriptStep) -> ScriptStepFile {
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

fn read(reader: &mut Reader, node: &Node, path: &str) -> Option<Vec<ScriptStep>> {
    let items = match &node.value {
        Value::List(items) if items.len() <= STEPS_MAX => items.as_slice(),
        Value::Table(_) => std::slice::from_ref(node),
        _ => {
            let message = format!("`{path}` is not a list of at most {STEPS_MAX} tables");
            reader.fail(node.span, message, format!("write a list of tables, each {STEP}"));
            return None;
        }
    };
    Some(items.iter().filter_map(|item| script_step(reader, item, path)).collect())
}

fn script_step(reader: &mut Reader, node: &Node, path: &str) -> Option<ScriptStep> {
    let mut fields = reader.table(node, path, STEP)?;
    let at = reader.quantity(&mut fields, "at", "30s", units::duration);
    let lasts = reader.quantity(&mut fields, "for", "10s", units::duration);
    let has = (
        fields.get("at").is_some(),
        fields.get("mute").is_some(),
        fields.get("screen_share").is_some(),
    );
    let kind = match reader.word(&mut fields, "mute", &["audio", "video"]).as_deref() {
        Some("video") => MediaKind::Video,
        _ => MediaKind::Audio,
    };
    let screen = reader.word(&mut fields, "screen_share", &CARD_SIZES);
    reader.finish(&fields);
    let action = match has {
        (true, true, false) => Action::Mute(kind),
        (true, false, true) => Action::ScreenShare(screen?),
        _ => {
            let message =
                format!("`{path}` needs `at` and exactly one of `mute` and `screen_share`");
            reader.fail(node.span, message, format!("write {STEP}"));
            return None;
        }
    };
    Some(ScriptStep { at: at?, lasts, action })
}

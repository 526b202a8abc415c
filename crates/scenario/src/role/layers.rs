//! `layers` of a cohort in a file.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use throng_observation::Layer;

use super::LayerRequest;
use crate::file::{self, duration};
use crate::keys::{AsFile, NameOf, Named};
use crate::read::{Node, Reader, Value};
use crate::units;

/// Most layer changes of a cohort.
const LAYERS_MAX: usize = 100;
const EXAMPLE: &str =
    "\"low\", \"medium\", \"high\", or a list such as [{ after = \"10s\", layer = \"high\" }]";

/// How they are read, written and described.
pub(super) const LAYERS: AsFile<Vec<LayerRequest>, LayersFile> =
    AsFile { read, write: |requests| write(requests) };

impl Named for Layer {
    const ALL: &'static [(Self, &'static str)] = Self::NAMED;
}

/// A layer, or a list of layers with times.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum LayersFile {
    /// From the join on.
    Word(NameOf<Layer>),
    /// In order of time.
    Script(#[schemars(length(min = 1, max = 100))] Vec<LayerStep>),
}

/// A request for a layer.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LayerStep {
    /// Time after the join; default: at the join.
    after: Option<file::Duration>,
    /// The layer.
    layer: NameOf<Layer>,
}

fn write(requests: &[LayerRequest]) -> LayersFile {
    match requests {
        [only] if only.after.is_zero() => LayersFile::Word(NameOf(only.layer)),
        requests => {
            let step = |request: &LayerRequest| LayerStep {
                after: Some(duration(request.after)),
                layer: NameOf(request.layer),
            };
            LayersFile::Script(requests.iter().map(step).collect())
        }
    }
}

/// One layer from the join on, or a list of layers and the times of their requests.
fn read(reader: &mut Reader, node: &Node, path: &str) -> Option<Vec<LayerRequest>> {
    let items = match &node.value {
        Value::Text(text) => {
            let Some(layer) = Layer::from_key(text) else {
                reader.fail(
                    node.span,
                    format!("`{path}` is not a layer"),
                    format!("write {EXAMPLE}"),
                );
                return None;
            };
            return Some(vec![LayerRequest { after: Duration::ZERO, layer }]);
        }
        Value::List(items) if (1..=LAYERS_MAX).contains(&items.len()) => items,
        _ => {
            let message = format!("`{path}` is neither a layer nor a list of 1 to {LAYERS_MAX}");
            reader.fail(node.span, message, format!("write {EXAMPLE}"));
            return None;
        }
    };
    let mut requests: Vec<LayerRequest> = Vec::new();
    for item in items {
        let Some(mut fields) = reader.table(item, path, EXAMPLE) else { continue };
        let after =
            reader.quantity(&mut fields, "after", "10s", units::duration).unwrap_or_default();
        let layer = reader.named(&mut fields, "layer");
        if fields.get("layer").is_none() {
            reader.fail(
                item.span,
                format!("`{path}`: `layer` is missing"),
                format!("write {EXAMPLE}"),
            );
        }
        reader.finish(&fields);
        if requests.last().is_some_and(|last| last.after > after) {
            reader.fail(
                item.span,
                format!("`{path}` is not in order of time"),
                "write the earliest first",
            );
        }
        requests.extend(layer.map(|layer| LayerRequest { after, layer }));
    }
    Some(requests)
}

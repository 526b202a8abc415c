//! Reads `[tap]`.

use super::fields::{Fields, Reader};
use super::tree::{Node, Value};
use crate::tap::{LISTED_MAX, Tap, TapSelection};

const PARTICIPANTS: &str =
    "a whole number from 1 to 1000 (the first to join), or a list such as [0, 17]";

/// Reads `[tap]`; `None` if it is absent.
pub(super) fn tap(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Tap> {
    let node = top.get("tap")?;
    let mut fields = reader.table(node, "tap", "a table such as { participants = 3 }")?;
    let participants = fields.get("participants");
    if participants.is_none() {
        reader.fail(
            node.span,
            "`tap.participants` is missing",
            "write under [tap] participants = 3",
        );
    }
    let tap = Tap {
        selection: participants.map(|node| selection(reader, node)).unwrap_or_default(),
        decode: reader.boolean(&mut fields, "decode").unwrap_or(true),
        keep: reader.boolean(&mut fields, "keep").unwrap_or(false),
        ssim: reader.boolean(&mut fields, "ssim").unwrap_or(false),
    };
    reader.finish(&fields);
    Some(tap)
}

fn selection(reader: &mut Reader, node: &Node) -> TapSelection {
    let number = |node: &Node| match node.value {
        Value::Integer(value) => u32::try_from(value).ok(),
        _ => None,
    };
    let read = match &node.value {
        Value::List(nodes) if (1..=LISTED_MAX).contains(&nodes.len()) => {
            nodes.iter().map(number).collect::<Option<Vec<_>>>().map(TapSelection::These)
        }
        _ => number(node)
            .filter(|count| (1..=LISTED_MAX as u32).contains(count))
            .map(TapSelection::First),
    };
    read.unwrap_or_else(|| {
        let message = format!("`tap.participants` is not {PARTICIPANTS}");
        reader.fail(node.span, message, "write participants = 3");
        TapSelection::default()
    })
}

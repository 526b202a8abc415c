//! The JSON form of p2p-media-loader 0.6 (`media-peer.js` of the package): a message is a command
//! if it begins with `{"` and ends with `}`. Segments are named `SWARM+NUMBER`; one that is sent
//! ends when as many bytes as were announced have come.

use serde_json::{Value, json};

use super::{ANNOUNCED_MAX, PeerCommand, PeerMessage, WireError};

/// Longest command, bytes.
const COMMAND_LEN_MAX: usize = 256 * 1024;

/// Types of commands.
const SEGMENT: u64 = 0;
const ABSENT: u64 = 1;
const MAP: u64 = 2;
const REQUEST: u64 = 3;
const CANCEL: u64 = 4;

/// States of segments in a map.
const LOADED: u64 = 0;
const LOADING: u64 = 1;

/// The message of a command, if the version has it.
pub(super) fn write(said: &PeerCommand, swarm: &str) -> Option<Vec<u8>> {
    let name = |segment: &u64| format!("{swarm}+{segment}");
    let command = match said {
        PeerCommand::Announcement { loaded, loading } => {
            let all: Vec<_> = loaded
                .iter()
                .map(|number| (number, LOADED))
                .chain(loading.iter().map(|number| (number, LOADING)))
                .collect();
            if all.is_empty() {
                json!({ "c": MAP, "m": {} })
            } else {
                let numbers: Vec<String> =
                    all.iter().map(|(number, _)| number.to_string()).collect();
                let states: Vec<u64> = all.iter().map(|(_, state)| *state).collect();
                json!({ "c": MAP, "m": { swarm: [numbers.join("|"), states] } })
            }
        }
        PeerCommand::Request { segment, .. } => json!({ "c": REQUEST, "i": name(segment) }),
        PeerCommand::Segment { segment, bytes, .. } => {
            json!({ "c": SEGMENT, "i": name(segment), "s": bytes })
        }
        PeerCommand::Absent { segment, .. } => json!({ "c": ABSENT, "i": name(segment) }),
        PeerCommand::Cancel { segment, .. } => json!({ "c": CANCEL, "i": name(segment) }),
        PeerCommand::Sent { .. } => return None,
    };
    Some(command.to_string().into_bytes())
}

/// Reads a message of a peer in `swarm`.
pub(super) fn read<'a>(message: &'a [u8], swarm: &str) -> Result<PeerMessage<'a>, WireError> {
    let is_command = message.starts_with(b"{\"") && message.ends_with(b"}");
    let command = is_command.then(|| serde_json::from_slice::<Value>(message).ok()).flatten();
    // What only looks like a command is a piece, as for the engine.
    let Some(command) = command else { return Ok(PeerMessage::Piece(message)) };
    if message.len() > COMMAND_LEN_MAX {
        return Err(WireError::TooMany);
    }
    let kind = command.get("c").and_then(Value::as_u64).ok_or(WireError::Json("no number `c`"))?;
    if kind == MAP {
        return announcement(&command, swarm).map(PeerMessage::Command);
    }
    let name = command.get("i").and_then(Value::as_str).ok_or(WireError::Json("no text `i`"))?;
    let number = name.strip_prefix(swarm).and_then(|rest| rest.strip_prefix('+')?.parse().ok());
    // Of another rendition.
    let Some(segment) = number else { return Ok(PeerMessage::Nothing) };
    Ok(PeerMessage::Command(match kind {
        SEGMENT => {
            let bytes =
                command.get("s").and_then(Value::as_u64).ok_or(WireError::Json("no number `s`"))?;
            PeerCommand::Segment { segment, request: 0, bytes }
        }
        ABSENT => PeerCommand::Absent { segment, request: 0 },
        REQUEST => PeerCommand::Request { segment, request: 0, from_byte: 0 },
        CANCEL => PeerCommand::Cancel { segment, request: 0 },
        other => return Err(WireError::Command(other)),
    }))
}

fn announcement(command: &Value, swarm: &str) -> Result<PeerCommand, WireError> {
    let map = command.get("m").and_then(Value::as_object).ok_or(WireError::Json("no table `m`"))?;
    let (mut loaded, mut loading) = (Vec::new(), Vec::new());
    let Some(entry) = map.get(swarm) else {
        return Ok(PeerCommand::Announcement { loaded, loading });
    };
    let numbers =
        entry.get(0).and_then(Value::as_str).ok_or(WireError::Json("no numbers in `m`"))?;
    let states =
        entry.get(1).and_then(Value::as_array).ok_or(WireError::Json("no states in `m`"))?;
    if states.len() > ANNOUNCED_MAX {
        return Err(WireError::TooMany);
    }
    if numbers.split('|').count() != states.len() {
        return Err(WireError::Json("not as many states as numbers in `m`"));
    }
    for (number, state) in numbers.split('|').zip(states) {
        let number = number.parse().map_err(|_| WireError::Number)?;
        match state.as_u64() {
            Some(LOADED) => loaded.push(number),
            Some(LOADING) => loading.push(number),
            _ => return Err(WireError::Json("an unknown state in `m`")),
        }
    }
    Ok(PeerCommand::Announcement { loaded, loading })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_that_of_the_package() {
        let text = |said| String::from_utf8(write(&said, "s+V0").unwrap()).unwrap();
        let map = PeerCommand::Announcement { loaded: vec![104, 105], loading: vec![106] };
        assert_eq!(text(map), r#"{"c":2,"m":{"s+V0":["104|105|106",[0,0,1]]}}"#);
        let request = PeerCommand::Request { segment: 104, request: 0, from_byte: 0 };
        assert_eq!(text(request), r#"{"c":3,"i":"s+V0+104"}"#);
        let segment = PeerCommand::Segment { segment: 104, request: 0, bytes: 188 };
        assert_eq!(text(segment), r#"{"c":0,"i":"s+V0+104","s":188}"#);
    }

    #[test]
    fn what_is_of_another_swarm_or_only_looks_like_a_command_is_none() {
        assert_eq!(read(br#"{"c":3,"i":"s+V1+104"}"#, "s+V0"), Ok(PeerMessage::Nothing));
        let piece = br#"{"c":3,"i""}"#;
        assert_eq!(read(piece, "s"), Ok(PeerMessage::Piece(piece)));
        for wrong in
            [r#"{"c":9,"i":"s+1"}"#, r#"{"c":2,"m":{"s":["1|2",[0]]}}"#, r#"{"c":0,"i":"s+1"}"#]
        {
            assert!(read(wrong.as_bytes(), "s").is_err(), "{wrong}");
        }
    }
}

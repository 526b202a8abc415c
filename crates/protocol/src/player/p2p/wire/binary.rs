//! The binary form of p2p-media-loader 2 (`p2p/commands/` of the package): a message is a command
//! if it begins with `cstr` or `dstr` and ends with `cend` or `dend`; a command that is too long
//! for one message goes on in the next (`d`). Inside: a byte for the type, then fields of one
//! letter and a value whose type is in the upper half of its first byte.

use super::{ANNOUNCED_MAX, MESSAGE_LEN_MAX, PeerCommand, PeerMessage, WireError};

const FRAME_LEN: usize = 4;
const FIRST: &[u8; FRAME_LEN] = b"cstr";
const LATER: &[u8; FRAME_LEN] = b"dstr";
const LAST: &[u8; FRAME_LEN] = b"cend";
const GOES_ON: &[u8; FRAME_LEN] = b"dend";

/// Longest command, bytes: an announcement of [`ANNOUNCED_MAX`] segments is far shorter.
const COMMAND_LEN_MAX: usize = 256 * 1024;

/// Types of commands.
const ANNOUNCEMENT: u8 = 0;
const REQUEST: u8 = 1;
const SEGMENT: u8 = 2;
const SENT: u8 = 3;
const ABSENT: u8 = 4;
const CANCEL: u8 = 5;

/// Types of values.
const INTEGER: u8 = 0;
const INTEGERS: u8 = 1;
const STRING: u8 = 2;

/// Joins the parts of commands.
#[derive(Debug, Default)]
pub(in super::super) struct Joiner {
    /// The parts so far.
    begun: Option<Vec<u8>>,
}

impl Joiner {
    pub(super) fn read<'a>(&mut self, message: &'a [u8]) -> Result<PeerMessage<'a>, WireError> {
        let Some((first, inside, last)) = unframed(message) else {
            return Ok(PeerMessage::Piece(message));
        };
        let mut command = match (self.begun.take(), first == FIRST) {
            (None, true) => Vec::new(),
            (Some(begun), false) => begun,
            _ => return Err(WireError::Order),
        };
        if command.len() + inside.len() > COMMAND_LEN_MAX {
            return Err(WireError::TooMany);
        }
        command.extend_from_slice(inside);
        if last == GOES_ON {
            self.begun = Some(command);
            return Ok(PeerMessage::Nothing);
        }
        read(&command).map(PeerMessage::Command)
    }
}

/// Frame, content, frame; `None` for what is no command.
fn unframed(message: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (first, rest) = message.split_at_checked(FRAME_LEN)?;
    let is_first = first == FIRST || first == LATER;
    let last = message.get(message.len() - FRAME_LEN..).filter(|_| is_first)?;
    let is_last = last == LAST || last == GOES_ON;
    // The engine takes eight bytes at least for granted.
    let inside = rest.get(..rest.len().checked_sub(FRAME_LEN)?).filter(|_| is_last)?;
    Some((first, inside, last))
}

fn read(command: &[u8]) -> Result<PeerCommand, WireError> {
    let mut reader = Reader(command);
    let kind = reader.byte()?;
    let mut fields = Fields::default();
    while !reader.0.is_empty() {
        let name = reader.byte()?;
        let of = reader.0.first().copied().ok_or(WireError::Truncated)? >> 4;
        match of {
            INTEGER => {
                let value = reader.integer()?;
                fields.set(name, value);
            }
            INTEGERS => {
                let values = reader.integers()?;
                match name {
                    b'l' => fields.loaded = values,
                    b'p' => fields.loading = values,
                    _ => {}
                }
            }
            STRING => reader.skip_string()?,
            other => return Err(WireError::Field(other)),
        }
    }
    let segment = || fields.segment.ok_or(WireError::Truncated);
    let request = fields.request.unwrap_or_default();
    Ok(match kind {
        ANNOUNCEMENT => {
            PeerCommand::Announcement { loaded: fields.loaded, loading: fields.loading }
        }
        REQUEST => {
            PeerCommand::Request { segment: segment()?, request, from_byte: fields.from_byte }
        }
        SEGMENT => PeerCommand::Segment {
            segment: segment()?,
            request,
            bytes: fields.bytes.ok_or(WireError::Truncated)?,
        },
        SENT => PeerCommand::Sent { segment: segment()?, request },
        ABSENT => PeerCommand::Absent { segment: segment()?, request },
        CANCEL => PeerCommand::Cancel { segment: segment()?, request },
        other => return Err(WireError::Command(other.into())),
    })
}

/// Fields of a command.
#[derive(Default)]
struct Fields {
    segment: Option<u64>,
    request: Option<u64>,
    bytes: Option<u64>,
    from_byte: u64,
    loaded: Vec<u64>,
    loading: Vec<u64>,
}

impl Fields {
    fn set(&mut self, name: u8, value: u64) {
        match name {
            b'i' => self.segment = Some(value),
            b'r' => self.request = Some(value),
            b's' => self.bytes = Some(value),
            b'b' => self.from_byte = value,
            // Fields of later versions.
            _ => {}
        }
    }
}

/// What is left of a command.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, WireError> {
        let (first, rest) = self.0.split_first().ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Length in the lower half of the first byte; the value's highest bit is its sign.
    fn integer(&mut self) -> Result<u64, WireError> {
        let length = usize::from(self.byte()? & 0x0f);
        let bytes = self.take(length)?;
        let (first, rest) = bytes.split_first().ok_or(WireError::Truncated)?;
        if first & 0x80 != 0 {
            return Err(WireError::Number);
        }
        rest.iter()
            .try_fold(u64::from(*first), |value, byte| {
                Some(value.checked_mul(0x100)? | u64::from(*byte)).filter(|value| *value < 1 << 53)
            })
            .ok_or(WireError::Number)
    }

    /// Groups of numbers that differ in the last byte only: all but that, with the size of the
    /// group in its place; then the last byte of each.
    fn integers(&mut self) -> Result<Vec<u64>, WireError> {
        self.byte()?;
        let groups = self.byte()?;
        let mut values = Vec::new();
        for _ in 0..groups {
            let common = self.integer()?;
            // The engine writes 0 for 256 numbers, and reads it as none.
            let size = (common & 0xff) as usize;
            let last_bytes = self.take(size)?;
            values.extend(last_bytes.iter().map(|last| common & !0xff | u64::from(*last)));
            if values.len() > ANNOUNCED_MAX {
                return Err(WireError::TooMany);
            }
        }
        Ok(values)
    }

    fn skip_string(&mut self) -> Result<(), WireError> {
        let upper = usize::from(self.byte()? & 0x0f);
        let length = upper << 8 | usize::from(self.byte()?);
        self.take(length).map(drop)
    }
}

/// The messages of a command.
pub(super) fn write(said: &PeerCommand) -> Vec<Vec<u8>> {
    let mut command = Vec::with_capacity(32);
    match said {
        PeerCommand::Announcement { loaded, loading } => {
            command.push(ANNOUNCEMENT);
            for (name, numbers) in [(b'l', loaded), (b'p', loading)] {
                if !numbers.is_empty() {
                    command.push(name);
                    integers(&mut command, numbers);
                }
            }
        }
        PeerCommand::Request { segment, request, from_byte } => {
            fields(&mut command, REQUEST, &[(b'i', *segment), (b'r', *request)]);
            if *from_byte > 0 {
                command.push(b'b');
                integer(&mut command, *from_byte);
            }
        }
        PeerCommand::Segment { segment, request, bytes } => {
            fields(&mut command, SEGMENT, &[(b'i', *segment), (b's', *bytes), (b'r', *request)]);
        }
        PeerCommand::Sent { segment, request } => {
            fields(&mut command, SENT, &[(b'i', *segment), (b'r', *request)]);
        }
        PeerCommand::Absent { segment, request } => {
            fields(&mut command, ABSENT, &[(b'i', *segment), (b'r', *request)]);
        }
        PeerCommand::Cancel { segment, request } => {
            fields(&mut command, CANCEL, &[(b'i', *segment), (b'r', *request)]);
        }
    }
    framed(&command)
}

fn fields(command: &mut Vec<u8>, kind: u8, fields: &[(u8, u64)]) {
    command.push(kind);
    for (name, value) in fields {
        command.push(*name);
        integer(command, *value);
    }
}

/// As few bytes as leave the highest bit free for the sign.
fn integer(command: &mut Vec<u8>, value: u64) {
    let bits = (u64::BITS - value.leading_zeros()).max(1) + 1;
    let length = bits.div_ceil(8) as usize;
    command.push(INTEGER << 4 | length as u8);
    let bytes = value.to_be_bytes();
    if length > bytes.len() {
        command.push(0);
    }
    command.extend_from_slice(bytes.get(bytes.len().saturating_sub(length)..).unwrap_or_default());
}

fn integers(command: &mut Vec<u8>, numbers: &[u64]) {
    // In the order in which they come, as the engine's map has them.
    let mut groups: Vec<(u64, Vec<u8>)> = Vec::new();
    for number in numbers {
        let (common, last) = (number & !0xff, (number & 0xff) as u8);
        match groups.iter_mut().find(|(known, lasts)| *known == common && lasts.len() < 0xff) {
            Some((_, lasts)) => lasts.push(last),
            None => groups.push((common, vec![last])),
        }
    }
    groups.truncate(0xff);
    command.extend_from_slice(&[INTEGERS << 4, groups.len() as u8]);
    for (common, lasts) in groups {
        integer(command, common | lasts.len() as u64);
        command.extend_from_slice(&lasts);
    }
}

fn framed(command: &[u8]) -> Vec<Vec<u8>> {
    let room = MESSAGE_LEN_MAX - 2 * FRAME_LEN;
    let count = command.len().div_ceil(room).max(1);
    let parts = command.chunks(room).enumerate();
    parts
        .map(|(at, part)| {
            let first = if at == 0 { FIRST } else { LATER };
            let last = if at + 1 == count { LAST } else { GOES_ON };
            [first.as_slice(), part, last.as_slice()].concat()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by p2p-media-loader-core 2.2.2.
    #[test]
    fn the_form_is_that_of_the_package() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let one = |said: PeerCommand| hex(&write(&said)[0]);
        assert_eq!(
            one(PeerCommand::Announcement { loaded: vec![104, 105, 300], loading: vec![106] }),
            "63737472006c1002010268690201012c70100101016a63656e64"
        );
        assert_eq!(
            one(PeerCommand::Request { segment: 104, request: 999, from_byte: 70_000 }),
            "6373747201690168720203e7620301117063656e64"
        );
        assert_eq!(
            one(PeerCommand::Segment { segment: 128, request: 7, bytes: 188_000 }),
            "637374720269020080730302de6072010763656e64"
        );
    }

    #[test]
    fn a_long_command_is_one_of_several_messages() {
        let loaded: Vec<u64> = (0..9_000).map(|number| number * 9).collect();
        let said = PeerCommand::Announcement { loaded: loaded.clone(), loading: Vec::new() };
        let messages = write(&said);
        assert!(messages.iter().all(|message| message.len() <= MESSAGE_LEN_MAX));
        let mut joiner = Joiner::default();
        let mut heard: Vec<_> =
            messages.iter().map(|message| joiner.read(message).unwrap()).collect();
        let Some(PeerMessage::Command(PeerCommand::Announcement { loaded: read, .. })) =
            heard.pop()
        else {
            panic!()
        };
        assert!(heard.iter().all(|heard| *heard == PeerMessage::Nothing));
        // More groups than a byte counts are left out.
        assert!(loaded.starts_with(&read) && read.len() > 7_000, "{}", read.len());
        assert_eq!(joiner.read(b"dstrxcend"), Err(WireError::Order));
    }
}

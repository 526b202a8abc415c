//! The two packed words of the protocol: a *position* (which descriptor, which byte) and a slot's
//! *state*.

/// Bytes in a unit: payload starts at a multiple of it, which suits AVX-512 loads and cache lines.
pub(crate) const UNIT: usize = 64;

/// A position in the ring: the sequence number of a descriptor and the unit at which its payload
/// starts.
///
/// Both only count up and wrap at 2^32; the slot is `sequence mod slots`, the offset `unit mod
/// units`. As both stand in one word, one compare-and-swap claims a descriptor and its bytes
/// together, and a word that was read long ago matches again only after a multiple of 2^32 frames
/// *and* of 256 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) sequence: u32,
    pub(crate) unit: u32,
}

impl Position {
    pub(crate) fn unpack(word: u64) -> Self {
        Self { sequence: (word >> 32) as u32, unit: word as u32 }
    }

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.sequence) << 32 | u64::from(self.unit)
    }

    /// The position after a frame of so many units.
    pub(crate) fn after(self, units: u32) -> Self {
        Self { sequence: self.sequence.wrapping_add(1), unit: self.unit.wrapping_add(units) }
    }
}

/// State of a slot. From `Released` on the slot is done: `release` may move past it. A frame that
/// was read under the guard of an older one, and released with it, stays `Committed` until the slot
/// is claimed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SlotState {
    /// A producer owns it and writes the payload.
    Claimed = 1,
    /// The frame is complete.
    Committed = 2,
    /// The consumer uses the payload.
    Peeked = 3,
    /// The consumer released it.
    Released = 4,
    /// Its producer aborted it.
    Aborted = 5,
    /// A producer dropped it, as the oldest frame, to make room.
    Evicted = 6,
    /// Its producer died before the commit; the consumer skips it.
    Poisoned = 7,
}

impl SlotState {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Claimed,
            2 => Self::Committed,
            3 => Self::Peeked,
            4 => Self::Released,
            5 => Self::Aborted,
            6 => Self::Evicted,
            7 => Self::Poisoned,
            _ => return None,
        })
    }
}

/// A slot's state word: the sequence number that it is valid for, its owner, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateWord {
    pub(crate) sequence: u32,
    /// Row of the producer table.
    pub(crate) owner: u16,
    pub(crate) stage: SlotState,
}

impl StateWord {
    /// None for a word that no implementation writes.
    pub(crate) fn unpack(word: u64) -> Option<Self> {
        if word & 0xff00 != 0 {
            return None;
        }
        let stage = SlotState::of(word as u8)?;
        Some(Self { sequence: (word >> 32) as u32, owner: (word >> 16) as u16, stage })
    }

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.sequence) << 32 | u64::from(self.owner) << 16 | self.stage as u64
    }

    pub(crate) fn at(self, stage: SlotState) -> Self {
        Self { stage, ..self }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_went() {
        for sequence in [0, 1, 0x7fff_ffff, u32::MAX] {
            for unit in [0, 1, u32::MAX] {
                let position = Position { sequence, unit };
                assert_eq!(Position::unpack(position.pack()), position);
            }
            for byte in 1..=7 {
                let state =
                    StateWord { sequence, owner: 0xabcd, stage: SlotState::of(byte).unwrap() };
                assert_eq!(StateWord::unpack(state.pack()), Some(state));
            }
        }
    }

    #[test]
    fn an_unknown_word_is_no_state() {
        for word in [0, 8, 0xff, 0x0102, u64::MAX] {
            assert_eq!(StateWord::unpack(word), None, "{word:#x}");
        }
    }

    #[test]
    fn places_wrap_without_a_seam() {
        let position = Position { sequence: u32::MAX, unit: u32::MAX - 1 };
        assert_eq!(position.after(3), Position { sequence: 0, unit: 1 });
    }
}

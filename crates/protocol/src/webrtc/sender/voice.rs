//! Speech and silence, packet by packet: audio level, talkspurts, and the rare packets during
//! silence (DTX).

use throng_media::rtp::AudioLevel;

/// Opus in DTX sends a packet every 400 ms of silence (RFC 7587 section 3.1.3): one of twenty of 20
/// ms.
const SILENT_PACKETS_IN: u32 = 20;
/// The level of silence, −dBov.
const SILENCE: u8 = 127;

/// The microphone of one participant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Voice {
    is_talking: bool,
    /// Packets since silence began.
    silent_for: u32,
    talked: u32,
}

/// What to do with the next audio packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sound {
    /// Send it; with the marker bit when it begins a talkspurt.
    Voice { marker: bool },
    /// Send a packet of silence.
    Comfort,
    /// Send nothing.
    Nothing,
}

impl Voice {
    pub(super) fn talking(is_talking: bool) -> Self {
        Self { is_talking, silent_for: 1, talked: 0 }
    }

    pub(super) fn set_talking(&mut self, is_talking: bool) {
        if self.is_talking != is_talking {
            *self = Self { silent_for: 0, ..Self::talking(is_talking) };
        }
    }

    /// Decides on the next packet.
    pub(super) fn next(&mut self) -> Sound {
        if self.is_talking {
            self.talked = self.talked.wrapping_add(1);
            return Sound::Voice { marker: self.talked == 1 };
        }
        let silent_for = self.silent_for;
        self.silent_for = silent_for.wrapping_add(1);
        if silent_for.is_multiple_of(SILENT_PACKETS_IN) { Sound::Comfort } else { Sound::Nothing }
    }
}

/// The audio level header extension of a packet (RFC 6464): it varies during speech, not during
/// silence.
pub(super) fn level(is_voice: bool, number: u32) -> AudioLevel {
    // Syllables: between −20 and −44 dBov, four times a second at 20 ms a packet.
    let syllable = [20, 22, 26, 32, 38, 44, 40, 34, 28, 24, 22, 20];
    let of =
        |number: u32| syllable.get(number as usize % syllable.len()).copied().unwrap_or(SILENCE);
    AudioLevel { voice: is_voice, minus_dbov: if is_voice { of(number) } else { SILENCE } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_packet_every_400_ms_and_talk_begins_with_a_marker() {
        let mut voice = Voice::talking(true);
        let played = |voice: &mut Voice, packets: usize| {
            (0..packets)
                .map(|_| voice.next())
                .filter(|sound| *sound != Sound::Nothing)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            played(&mut voice, 3),
            [
                Sound::Voice { marker: true },
                Sound::Voice { marker: false },
                Sound::Voice { marker: false }
            ]
        );
        voice.set_talking(false);
        assert_eq!(played(&mut voice, 41), [Sound::Comfort; 3]);
        voice.set_talking(false); // a repeated call changes nothing
        assert_eq!(played(&mut voice, 19), []);
        voice.set_talking(true);
        assert_eq!(played(&mut voice, 1), [Sound::Voice { marker: true }]);
    }

    #[test]
    fn levels_tell_speech_from_silence() {
        assert_eq!(level(false, 7), AudioLevel { voice: false, minus_dbov: 127 });
        assert!((0..100).all(|n| level(true, n).voice && level(true, n).minus_dbov < 50));
    }
}

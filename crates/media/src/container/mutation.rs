//! Feeds every reader damaged versions of good files: bits flipped, bytes cut, repeated and replaced.

use super::{annexb, ivf, ogg};

/// A small, repeatable source of numbers (xorshift64*), so that a failure can be made again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

fn damage(good: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=dice.below(6) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = dice.below(bytes.len());
        match dice.below(5) {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at] = [0, 1, 0xff, 0x7f, 0x80][dice.below(5)],
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..(at + dice.below(9)).min(bytes.len()))),
            _ => {
                let piece = bytes[at..(at + dice.below(40)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// Whatever the damage, a reader gives no more payload than there are bytes, and comes to an end.
fn survives(good: &[u8], read: impl Fn(&[u8]) -> usize) {
    let mut dice = Dice(0x5eed);
    for round in 0..4_000 {
        let bytes = damage(good, &mut dice);
        let given = read(&bytes);
        assert!(given <= bytes.len(), "round {round}: {given} bytes out of {}", bytes.len());
    }
}

#[test]
fn annexb_survives_damage() {
    let good = [
        &[0, 0, 0, 1, 0x67, 1, 2, 0, 0, 1, 0x68, 3][..],
        &[0, 0, 1, 0x65, 0x88, 9, 9, 0, 0, 0, 1, 0x41, 0x9a],
    ]
    .concat();
    survives(&good, |bytes| annexb::nal_units(bytes).map(<[u8]>::len).sum());
    survives(&good, |bytes| {
        annexb::h264_access_units(bytes).flat_map(|unit| unit.nals).map(<[u8]>::len).sum()
    });
}

#[test]
fn ivf_survives_damage() {
    let good = ivf::tests::file(&[&[1, 2, 3], &[], &[4; 50]]);
    survives(&good, |bytes| {
        let Ok(reader) = ivf::IvfReader::new(bytes) else { return 0 };
        reader.map_while(Result::ok).map(|frame| frame.data.len()).sum()
    });
}

#[test]
fn ogg_survives_damage() {
    let good =
        [ogg::tests::page(0, 2, &[3, 255], &[7; 258]), ogg::tests::page(1, 1, &[20, 30], &[8; 50])].concat();
    survives(&good, |bytes| {
        ogg::OggReader::new(bytes).map_while(Result::ok).map(|packet| packet.len()).sum()
    });
}

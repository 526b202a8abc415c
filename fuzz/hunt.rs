//! A brief fuzz on the stable compiler: good inputs, damaged in every simple way, passed to one
//! law. The seed is fixed, so that a failure is reproducible; libFuzzer runs longer with the same
//! laws.

#![allow(dead_code, reason = "a test uses what its inputs need")]

use std::path::{Path, PathBuf};

/// Longest input that damage makes, bytes.
const LEN_MAX: usize = 16_384;

/// Inputs that break parsers of text: values of the wrong kind, numbers beyond every width,
/// brackets, blanks, a byte that is not UTF-8.
pub(crate) const TEXT: &[&[u8]] = &[
    b"null",
    b"-1",
    b"1e99",
    b"99999999999999999999",
    b"0x",
    b"inf",
    b"[[",
    b"{}",
    b"\"\"",
    b"\"\"\"",
    b"'",
    b"\n",
    b"\r\n\r\n",
    b"=",
    b".",
    b",",
    b":",
    b";",
    b"<",
    b"%",
    b"%zz",
    b"://",
    b"@",
    b"?",
    b"\0",
    b"\xff",
    "ü".as_bytes(),
    "\u{202e}".as_bytes(),
    b"1979-05-27",
    b"a=",
    b"m=video 9 x 96\r\n",
    b"[[crowd]]\n",
];

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        // Parsers break at limits.
        match self.below(3) {
            0 => [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            _ => self.next() as u8,
        }
    }
}

/// Damages `bytes` once; they stay within `len_max`.
fn damage(
    bytes: &mut Vec<u8>,
    seeds: &[Vec<u8>],
    words: &[&[u8]],
    random: &mut Random,
    len_max: usize,
) {
    let at = random.below(bytes.len());
    let kinds = if words.is_empty() { 8 } else { 12 };
    match random.below(kinds) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => bytes[at] = random.byte(),
        2 => bytes.truncate(at),
        3 => bytes.extend((0..=random.below(24)).map(|_| random.byte()).collect::<Vec<_>>()),
        4 => {
            // The beginning of this one and the end of another.
            let other = &seeds[random.below(seeds.len())];
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len())..]);
        }
        5 => {
            let again = bytes[at..].to_vec();
            bytes.extend(again);
        }
        6 if !bytes.is_empty() => {
            bytes.remove(at);
        }
        8 | 9 => {
            // A word instead of some bytes, or inserted.
            let end = (at + random.below(12) * random.below(2)).min(bytes.len());
            bytes.splice(at..end, words[random.below(words.len())].iter().copied());
        }
        10 => {
            let end = (at + random.below(40)).min(bytes.len());
            bytes.drain(at..end);
        }
        11 => {
            // A piece of the input repeated elsewhere.
            let piece = bytes[at..(at + random.below(60)).min(bytes.len())].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        _ => bytes.insert(at, random.byte()),
    }
    bytes.truncate(len_max);
}

/// Checks `law` with every seed, with empty input, and with `rounds` damaged seeds; text also gets
/// `words`.
///
/// `FUZZ_RUNS` in the environment (`scripts/proof.sh fuzz`) is how many damaged seeds there are
/// instead.
pub(crate) fn hunt(law: fn(&[u8]), seeds: &[Vec<u8>], words: &[&[u8]], rounds: usize) {
    hunt_within(law, seeds, words, rounds, LEN_MAX);
}

/// The same with inputs of another length at most: for files of which a beginning is worth nothing.
pub(crate) fn hunt_within(
    law: fn(&[u8]),
    seeds: &[Vec<u8>],
    words: &[&[u8]],
    rounds: usize,
    len_max: usize,
) {
    assert!(!seeds.is_empty());
    let asked = std::env::var("FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok());
    let rounds = asked.unwrap_or(rounds);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    seeds.iter().for_each(|seed| law(seed));
    law(&[]);
    for round in 0..rounds {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=random.below(4) {
            damage(&mut bytes, seeds, words, &mut random, len_max);
        }
        law(&bytes);
    }
}

/// Checks `law` with what its fuzz target has found in earlier runs: the files of a folder in
/// `fuzz/kept`, which `MINIMISE=1 scripts/fuzz.sh` makes where there is something to keep.
pub(crate) fn replay(target: &str, law: fn(&[u8])) {
    let folder = format!("fuzz/kept/{target}");
    if in_checkout(&folder).is_dir() {
        seeds_in(&folder).iter().for_each(|kept| law(kept));
    }
}

/// The files of a folder of seeds, `fuzz/seeds/janus` for example, in the order of their names.
pub(crate) fn seeds_in(folder: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = std::fs::read_dir(in_checkout(folder))
        .expect("a folder of seeds")
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.is_file());
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a seed")).collect()
}

fn in_checkout(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}

//! Properties that hold for any bytes from another machine of a fleet, or from the disk: one
//! function per parser, shared by the short fuzz test and the fuzz targets.

#![allow(dead_code, reason = "a fuzz target checks one law")]

use std::io::Cursor;

use throng_fleet::message::{
    Call, Decision, Heartbeat, Offer, Order, Prepared, Pulse, Start, TimeAsked, TimeSaid, read,
    write,
};
use throng_fleet::spool::{Batch, BatchKind};
use throng_fleet::spool_file::{self, SpoolFile};
use throng_fleet::wire::{self, VERSION, WireLimits};

/// Bytes and rows of a batch.
const LIMITS: WireLimits = WireLimits { bytes_max: 256 << 10, rows_max: 1_000 };
/// What is read of a batch may be written in more bytes than it had: never more than that.
const WRITTEN: WireLimits = WireLimits { bytes_max: 4 << 20, rows_max: 1_000 };

/// The longest reason why bytes are no message.
const WHY_BYTES_MAX: usize = 1_000;

/// A message of any kind: what is read is the same when it is written and read again.
pub(crate) fn message(bytes: &[u8]) {
    macro_rules! survive {
        ($($message:ty),*) => {$(
            match read::<$message>("a message", bytes) {
                Ok(message) => {
                    let written = write(&message);
                    let again = read::<$message>("a message", &written).expect("as written");
                    assert_eq!(write(&again), written);
                }
                Err(why) => assert!(why.to_string().len() <= WHY_BYTES_MAX),
            }
        )*};
    }
    survive!(Call, Offer, Order, Prepared, Start, Heartbeat, Pulse, Decision, TimeAsked, TimeSaid);
}

/// A batch of rows; also these bytes as the rows of a batch that was not deflated.
pub(crate) fn rows(bytes: &[u8]) {
    for batch in [bytes.to_vec(), stored(bytes)] {
        let Ok(rows) = wire::decode(&batch, LIMITS) else { continue };
        assert!(rows.len() <= LIMITS.rows_max);
        let written = wire::encode(&rows, WRITTEN).expect("rows that were read can be written");
        let again = wire::decode(&written, WRITTEN).expect("rows that were written can be read");
        assert_eq!(wire::encode(&again, WRITTEN), Ok(written));
    }
}

/// One block that is stored as it is (RFC 1951 section 3.2.4).
pub(crate) fn stored(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(u16::MAX.into())];
    let length = bytes.len() as u16;
    let [low, high] = length.to_le_bytes();
    [&[VERSION, 1, low, high, !low, !high], bytes].concat()
}

/// A spool, as it is and with right check sums: opening finds what reading does, what follows is
/// found again.
pub(crate) fn spool(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), with_check_sums(bytes)] {
        let read = spool_file::read(&mut Cursor::new(&bytes));
        let opened = SpoolFile::open(Cursor::new(bytes.clone()));
        let (Ok(read), Ok((mut file, found))) = (&read, opened) else {
            assert!(read.is_err(), "it cannot be opened");
            continue;
        };
        assert_eq!(*read, found);
        let kept: usize = found.batches.iter().map(|batch| batch.bytes.len()).sum();
        assert!(kept <= bytes.len() && found.torn_bytes <= bytes.len() as u64);
        if found.next == u64::MAX {
            continue;
        }
        let batch = Batch { number: found.next, kind: BatchKind::Lasting, bytes: vec![7] };
        file.push(&batch).expect("there is room in memory");
        let (_, again) = SpoolFile::open(file.into_storage()).expect("what was written");
        assert_eq!(again.batches, [found.batches, vec![batch]].concat());
        assert_eq!((again.torn_bytes, again.end), (0, found.end));
    }
}

/// The frames of a spool with the check sums that belong to them: length, check sum, content.
fn with_check_sums(bytes: &[u8]) -> Vec<u8> {
    let mut all = bytes.to_vec();
    let mut rest = all.as_mut_slice();
    while let Some((head, after)) = std::mem::take(&mut rest).split_first_chunk_mut::<8>() {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some((frame, after)) = after.split_at_mut_checked(length) else { break };
        head[4..].copy_from_slice(&crc_32(frame).to_le_bytes());
        rest = after;
    }
    all
}

/// CRC-32 of ISO 3309, bit by bit.
fn crc_32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| bit(crc));
    !bytes.iter().fold(u32::MAX, byte)
}

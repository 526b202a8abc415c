use std::io::Cursor;

use super::*;

type Memory = Cursor<Vec<u8>>;

fn batch(number: u64) -> Batch {
    let kind = BatchKind::ALL[number as usize % 3];
    Batch { number, kind, bytes: vec![number as u8; number as usize * 7] }
}

/// A file with batches 0 to 5, of which two are confirmed, and where each frame ends.
fn written() -> (Vec<u8>, Vec<usize>) {
    let (mut file, found) = SpoolFile::open(Memory::default()).unwrap();
    assert_eq!(found, Found::default());
    let mut ends = vec![file.length() as usize];
    for number in 0..6 {
        file.push(&batch(number)).unwrap();
        ends.push(file.length() as usize);
    }
    file.confirm(2).unwrap();
    ends.push(file.length() as usize);
    (file.into_storage().into_inner(), ends)
}

fn open(bytes: &[u8]) -> Result<(SpoolFile<Memory>, Found), SpoolError> {
    SpoolFile::open(Cursor::new(bytes.to_vec()))
}

#[test]
fn a_killed_worker_finds_all_whole_frames_again_wherever_it_was_killed() {
    let (bytes, ends) = written();
    let whole = open(&bytes).unwrap().1;
    assert_eq!(whole.batches, (2..6).map(batch).collect::<Vec<_>>());
    assert_eq!((whole.next, whole.torn_bytes), (6, 0));
    for cut in 0..bytes.len() {
        let (mut file, found) = open(&bytes[..cut]).unwrap();
        let frames = ends.iter().filter(|end| **end <= cut).count();
        let batches = frames.saturating_sub(1).min(6) as u64;
        assert_eq!(found.batches, (0..batches).map(batch).collect::<Vec<_>>(), "cut at {cut}");
        let good = if frames == 0 { 0 } else { ends[frames - 1] };
        assert_eq!((found.next, found.torn_bytes), (batches, (cut - good) as u64));
        assert!(!found.is_damaged, "cut at {cut}");
        // It goes on behind the last whole frame.
        file.push(&batch(batches)).unwrap();
        let again = SpoolFile::open(file.into_storage()).unwrap().1;
        assert_eq!((again.batches.len() as u64, again.torn_bytes), (batches + 1, 0));
    }
}

#[test]
fn a_changed_byte_ends_what_is_read_at_its_frame() {
    let (bytes, ends) = written();
    for at in ends[0]..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let found = open(&changed).unwrap().1;
        let frame = ends.iter().filter(|end| **end <= at).count();
        assert_eq!(found.batches.len(), frame - 1, "byte {at}");
    }
}

#[test]
fn other_files_are_refused_and_not_changed() {
    for bytes in [&b"SQLite format 3\0 and what follows it in such a file"[..], &[0; 400]] {
        assert!(matches!(open(bytes), Err(SpoolError::NotASpool)));
    }
    let (mut bytes, _) = written();
    bytes[0] ^= 1;
    assert!(matches!(open(&bytes), Err(SpoolError::NotASpool)));
}

#[test]
fn a_file_begins_again_with_the_numbers_going_on() {
    let (bytes, _) = written();
    let (mut file, _) = open(&bytes).unwrap();
    file.begin_again(6).unwrap();
    assert!(file.length() < bytes.len() as u64);
    file.push(&batch(6)).unwrap();
    let found = SpoolFile::open(file.into_storage()).unwrap().1;
    assert_eq!(found, Found { batches: vec![batch(6)], next: 7, ..Found::default() });
}

#[test]
fn how_the_part_ended_is_found_and_reading_changes_nothing() {
    let (bytes, _) = written();
    let (mut file, _) = open(&bytes).unwrap();
    file.end(b"complete").unwrap();
    let mut torn = file.into_storage();
    torn.get_mut().extend([9, 9, 9]);
    let before = torn.get_ref().clone();
    let found = read(&mut torn).unwrap();
    assert_eq!((found.end.as_deref(), found.torn_bytes), (Some(&b"complete"[..]), 3));
    assert_eq!(found.batches.len(), 4);
    assert_eq!(torn.get_ref(), &before);
    assert!(matches!(read(&mut Cursor::new(vec![7; 400])), Err(SpoolError::NotASpool)));
}

/// A disk with room for so many bytes.
struct Disk(Memory, usize);

impl Read for Disk {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to)
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.1 - self.0.get_ref().len();
        self.0.write(&bytes[..bytes.len().min(room)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpoolStorage for Disk {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.cut(length)
    }
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let (mut file, _) = SpoolFile::open(Disk(Memory::default(), 100)).unwrap();
    file.push(&batch(4)).unwrap();
    assert!(matches!(file.push(&batch(5)), Err(SpoolError::Io(_))));
    file.push(&batch(0)).unwrap();
    let found = open(file.into_storage().0.get_ref()).unwrap().1;
    assert_eq!((found.batches.len(), found.torn_bytes), (2, 0));
}

#[test]
fn a_whole_frame_that_has_changed_is_damage_and_no_torn_one() {
    let (bytes, ends) = written();
    for (begin, end) in ends.iter().zip(&ends[1..]) {
        // Behind its length: a longer one may be that of a frame that was not written to its end.
        for at in begin + 4..*end {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(open(&changed).unwrap().1.is_damaged, "byte {at}");
        }
    }
    let zeros = [bytes.as_slice(), &[0; 64]].concat();
    let found = open(&zeros).unwrap().1;
    assert!(found.is_damaged && found.batches.len() == 4);
}

#[test]
fn a_disk_that_is_full_while_the_file_begins_again_leaves_it_without_bytes() {
    let (mut file, _) = SpoolFile::open(Disk(Memory::default(), 100)).unwrap();
    file.storage.1 = 20;
    assert!(file.begin_again(7).is_err() && file.length() == 0);
    file.storage.1 = 100;
    file.begin_again(7).unwrap();
    file.push(&batch(7)).unwrap();
    let found = open(file.into_storage().0.get_ref()).unwrap().1;
    assert_eq!((found.batches.len(), found.next), (1, 8));
}

/// What is not confirmed is neither counted nor moved: `split_off` does both.
#[test]
fn a_confirmation_touches_only_what_it_confirms() {
    let mut scan = Scan { has_begun: true, ..Scan::default() };
    for number in 0..1000 {
        scan.batches.insert(number, batch(number % 7));
    }
    let places = |scan: &Scan| -> Vec<*const Batch> {
        scan.batches.values().map(std::ptr::from_ref).collect()
    };
    let before = places(&scan);
    let nothing = [&[CONFIRMED][..], &0_u64.to_le_bytes()].concat();
    assert!(scan.take(&nothing) && places(&scan) == before);
    scan.confirm(990);
    assert_eq!(scan.batches.keys().copied().collect::<Vec<_>>(), (990..1000).collect::<Vec<_>>());
    scan.confirm(u64::MAX);
    assert!(scan.batches.is_empty());
}

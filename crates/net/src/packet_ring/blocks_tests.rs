//! The test plays the kernel, in ordinary memory: Miri and the sanitizers see each access.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use super::super::frame::tests::frame_with;
use super::*;

/// Memory of a ring.
struct Memory {
    start: NonNull<u8>,
    count: usize,
}

impl Memory {
    fn new(count: usize) -> Self {
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(Self::layout(count)) };
        Self { start: NonNull::new(start).unwrap(), count }
    }

    fn layout(count: usize) -> Layout {
        Layout::from_size_align(count * BLOCK_BYTES, 4096).unwrap()
    }

    /// Both sides of a new ring in it.
    fn sides(&mut self) -> (Kernel, Blocks) {
        let (memory, count) = (self.start, self.count);
        // SAFETY: zeroed blocks, which live as long as the test; `Kernel` keeps to the protocol.
        (Kernel { memory, count, next: 0 }, unsafe { Blocks::new(memory, count) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.count)) };
    }
}

/// Writes blocks as the kernel does.
struct Kernel {
    memory: NonNull<u8>,
    count: usize,
    next: usize,
}

// SAFETY: one thread has it, and touches what the status words leave to it.
unsafe impl Send for Kernel {}

impl Kernel {
    fn block(&self) -> *mut u8 {
        // SAFETY: `next` is below `count`.
        unsafe { self.memory.as_ptr().add(self.next * BLOCK_BYTES) }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: a word of a block's header, which both sides use as one.
        unsafe { AtomicU32::from_ptr(self.block().add(at).cast()) }
    }

    /// Hands over the next block with frames of these payloads; false while the reader has it.
    fn hand_over(&mut self, payloads: &[&[u8]]) -> bool {
        if self.word(STATUS).load(Ordering::Acquire) != 0 {
            return false;
        }
        let mut contents = Vec::new();
        for (number, payload) in (1..).zip(payloads) {
            let mut frame = frame_with(payload);
            frame.resize(frame.len().next_multiple_of(16), 0);
            let next = if number < payloads.len() { frame.len() as u32 } else { 0 };
            frame[..4].copy_from_slice(&next.to_ne_bytes());
            contents.extend(frame);
        }
        self.write(&contents, payloads.len() as u32, HEADER_BYTES as u32);
        true
    }

    /// Hands over the next block with `contents`, and a header that says so.
    fn write(&mut self, contents: &[u8], frames: u32, first: u32) {
        assert!(contents.len() <= BLOCK_BYTES - HEADER_BYTES);
        // SAFETY: the block is not the reader's, and has room for it.
        unsafe {
            let to = self.block().add(HEADER_BYTES);
            to.copy_from_nonoverlapping(contents.as_ptr(), contents.len());
        }
        self.word(FRAMES).store(frames, Ordering::Relaxed);
        self.word(FIRST).store(first, Ordering::Relaxed);
        self.word(STATUS).store(OF_READER, Ordering::Release);
        self.next = (self.next + 1) % self.count;
    }
}

fn places(blocks: &mut Blocks) -> Vec<Place> {
    let mut places = Vec::new();
    blocks.collect(|place, _| places.push(place));
    places
}

fn payload(blocks: &mut Blocks, place: Place) -> Result<Vec<u8>, NoDatagram> {
    blocks.datagram(place, 0).map(|datagram| datagram.bytes.to_vec())
}

#[test]
fn a_place_kept_over_the_return_of_its_block_is_refused() {
    let mut memory = Memory::new(2);
    let (mut kernel, mut blocks) = memory.sides();
    assert!(kernel.hand_over(&[b"first"]));
    let kept = places(&mut blocks)[0];
    // Nothing new was handed over, and nothing is given back.
    assert_eq!(blocks.collect(|_, _| ()), 0);
    assert_eq!(payload(&mut blocks, kept).unwrap(), b"first");
    blocks.release();
    assert_eq!(payload(&mut blocks, kept), Err(NoDatagram::Stale), "the kernel has the block");
    assert!(kernel.hand_over(&[b"second"]) && kernel.hand_over(&[b"third"]));
    assert_eq!(payload(&mut blocks, kept), Err(NoDatagram::Stale), "it is handed over again");
    let again = places(&mut blocks);
    assert_eq!((again[1].block, again[1].offset), (kept.block, kept.offset), "the same place");
    assert_eq!(payload(&mut blocks, kept), Err(NoDatagram::Stale), "it has another datagram");
    assert_eq!(payload(&mut blocks, again[1]).unwrap(), b"third");
}

#[test]
fn a_place_of_another_ring_is_refused() {
    let (mut memory, mut larger) = (Memory::new(2), Memory::new(3));
    let ((mut kernel, mut blocks), (mut other, mut others)) = (memory.sides(), larger.sides());
    assert!(kernel.hand_over(&[b"this"]) && other.hand_over(&[b"that"]));
    let (this, that) = (places(&mut blocks)[0], places(&mut others)[0]);
    assert_eq!((this.block, this.offset), (that.block, that.offset));
    assert!(blocks.has(this) && !blocks.has(that));
    assert_eq!(payload(&mut blocks, that), Err(NoDatagram::Stale));
    assert_eq!(payload(&mut others, that).unwrap(), b"that");
}

#[test]
fn a_number_that_its_frame_does_not_have_is_no_datagram() {
    let mut memory = Memory::new(2);
    let (mut kernel, mut blocks) = memory.sides();
    assert!(kernel.hand_over(&[b"one"]));
    let place = places(&mut blocks)[0];
    let none = blocks.datagram(place, 1).map(|datagram| datagram.bytes.len());
    assert_eq!(none, Err(NoDatagram::Unreadable));
}

#[test]
fn what_one_thread_writes_another_gets_whole_and_in_order() {
    let numbers: u32 = if cfg!(miri) { 30 } else { 3_000 };
    let mut memory = Memory::new(3);
    let (mut kernel, mut blocks) = memory.sides();
    let of = |number: u32| number.to_be_bytes().repeat(5);
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for number in 0..numbers {
                let bytes = of(number);
                while !kernel.hand_over(&[&bytes, &bytes]) {
                    std::thread::yield_now();
                }
            }
        });
        loop {
            let is_over = writer.is_finished();
            let places = places(&mut blocks);
            for place in &places {
                blocks.prefetch(*place);
                if let Ok(datagram) = blocks.datagram(*place, 0) {
                    all.push(datagram.bytes.to_vec());
                    // As a participant does that decrypts in place.
                    datagram.bytes.fill(0xff);
                }
            }
            blocks.release();
            if is_over && places.is_empty() {
                break;
            }
            std::thread::yield_now();
        }
    });
    let expect: Vec<_> = (0..numbers).flat_map(|number| [of(number), of(number)]).collect();
    assert!(all == expect, "{} of {} datagrams", all.len(), expect.len());
}

#[test]
fn no_header_makes_the_reader_look_beyond_its_block() {
    let frame = frame_with(b"payload");
    for (first, frames) in [
        (HEADER_BYTES as u32, u32::MAX),
        (0, 2),
        (HEADER_BYTES as u32 - 1, 2),
        (BLOCK_BYTES as u32 - 1, 2),
        (BLOCK_BYTES as u32, 2),
        (u32::MAX, 2),
    ] {
        // The distance to a next frame: none, the same again, the block's end, beyond it.
        for next in [0, 16, (BLOCK_BYTES - HEADER_BYTES - 4) as u32, u32::MAX] {
            let mut memory = Memory::new(2);
            let (mut kernel, mut blocks) = memory.sides();
            let mut contents = frame.clone();
            contents[..4].copy_from_slice(&next.to_ne_bytes());
            kernel.write(&contents, frames, first);
            let found = places(&mut blocks);
            let is_first = first == HEADER_BYTES as u32;
            assert_eq!(!found.is_empty(), is_first, "{first} {frames} {next}");
            for place in found {
                let _ = payload(&mut blocks, place);
            }
        }
    }
}

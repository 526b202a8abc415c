//! Forked children, and frames that can be checked byte by byte.

use throng_ring::{Consumer, Flags, Frame, FrameInfo, Policy, Producer};

/// A forked child. It ends with this value at the latest.
pub(crate) struct Child {
    pub(crate) pid: libc::pid_t,
    reaped: bool,
}

/// Runs `work` in a child process. This process has one thread, so that the child may do anything.
pub(crate) fn fork(work: impl FnOnce()) -> Child {
    // SAFETY: single-threaded; the child leaves with `_exit` and never returns into the caller's
    // stack.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        let code = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            Ok(()) => 0,
            Err(_) => 101,
        };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    Child { pid, reaped: false }
}

impl Child {
    pub(crate) fn kill(&self) {
        // SAFETY: a child of ours that was not reaped, so the number is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }

    /// Waits for its end; the raw status.
    pub(crate) fn wait(&mut self) -> i32 {
        let mut status = 0;
        // SAFETY: waits for our own child.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        assert_eq!(pid, self.pid);
        self.reaped = true;
        status
    }

    pub(crate) fn expect_success(&mut self) {
        let status = self.wait();
        assert_eq!(status, 0, "the child ended with status {status:#x} (signal {})", status & 0x7f);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            self.wait();
        }
    }
}

/// Xorshift: repeatable, and good enough to choose sizes.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn pattern(stream: u32, number: u64) -> u64 {
    (u64::from(stream) << 32 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
}

/// Sends one frame whose every byte follows from stream and number.
pub(crate) fn put(producer: &mut Producer, stream: u32, number: u64, len: usize) -> bool {
    let info =
        FrameInfo { stream, flags: Flags::KEYFRAME, user_data: number, ..FrameInfo::default() };
    let Some(mut claim) = producer.claim(len, &info).expect("the consumer lives") else {
        return false;
    };
    let word = pattern(stream, number).to_le_bytes();
    for chunk in claim.bytes_mut().chunks_mut(8) {
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    claim.commit().expect("a live claim");
    true
}

/// Whether a frame equals what [`put`] wrote, byte for byte.
pub(crate) fn is_whole(consumer: &Consumer, frame: &Frame) -> bool {
    let word = pattern(frame.info.stream, frame.info.user_data).to_le_bytes();
    let bytes = consumer.payload(frame.id).expect("held").to_vec();
    bytes.len() == frame.len && bytes.chunks(8).all(|chunk| chunk == &word[..chunk.len()])
}

/// Sends frames of random sizes for ever, and waits for room for each.
pub(crate) fn produce_for_ever(mut producer: Producer, stream: u32, len_max: u64) -> ! {
    producer.set_policy(Policy::Wait { timeout: std::time::Duration::MAX });
    let mut random = Random(u64::from(stream) * 2 + 1);
    for number in 0.. {
        let len = random.below(len_max) as usize;
        put(&mut producer, stream, number, len);
    }
    unreachable!("the numbers do not end")
}

//! Planted work per packet, encryption or copying, so that a worker saturates at a load that a test
//! chooses.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::planted::Planted;

/// Bytes that one pass encrypts: about a full packet.
const PASS_LEN: usize = 1_200;

/// CPU work for each packet.
pub(crate) struct PlantedWork {
    passes: u32,
    key: Option<LessSafeKey>,
    block: Vec<u8>,
    /// Source and destination of the copies.
    copied: [Vec<u8>; 2],
    takes_turns: bool,
}

impl PlantedWork {
    pub(crate) fn new(planted: &Planted) -> Self {
        let passes = planted.work_per_packet;
        let key = (passes > 0)
            .then(|| UnboundKey::new(&AES_128_GCM, &[7; 16]).ok())
            .flatten()
            .map(LessSafeKey::new);
        // Written, so that the pages are there: copying untouched ones would measure page faults.
        let copied = [1, 2].map(|byte| vec![byte; planted.copy_per_packet_kb as usize * 1_000]);
        Self { passes, key, block: vec![0; PASS_LEN], copied, takes_turns: planted.shared_lock }
    }

    /// Does the planted encryption and copying, under the lock `turn` if that is planted. The
    /// result is discarded.
    #[inline]
    pub(crate) fn spend(&mut self, turn: &Mutex<()>) {
        let _turn = self.takes_turns.then(|| turn.lock().unwrap_or_else(PoisonError::into_inner));
        self.encrypt();
        let [from, to] = &mut self.copied;
        if !from.is_empty() {
            to.copy_from_slice(std::hint::black_box(from));
            std::hint::black_box(to);
        }
    }

    #[inline]
    fn encrypt(&mut self) {
        let Some(key) = &self.key else { return };
        for _ in 0..self.passes {
            let nonce = Nonce::assume_unique_for_key([0; 12]);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut self.block);
            std::hint::black_box(&tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(planted: &Planted) -> PlantedWork {
        PlantedWork::new(planted)
    }

    #[test]
    fn copying_moves_every_byte() {
        let mut copier = work(&Planted { copy_per_packet_kb: 3, ..Planted::default() });
        copier.spend(&Mutex::default());
        assert_eq!(copier.copied, [vec![1; 3_000], vec![1; 3_000]]);
    }

    #[test]
    fn a_shared_lock_is_waited_for_and_only_where_planted() {
        let turn = Mutex::default();
        let planted = Planted { copy_per_packet_kb: 1, ..Planted::default() };
        let mut free = work(&planted);
        let mut locking = work(&Planted { shared_lock: true, ..planted });
        std::thread::scope(|scope| {
            let held = turn.lock().unwrap();
            free.spend(&turn);
            let waits = scope.spawn(|| locking.spend(&turn));
            assert!(!waits.is_finished());
            drop(held);
        });
        assert_eq!([&free.copied[1], &locking.copied[1]], [&[1; 1_000]; 2]);
    }

    #[test]
    fn work_is_done_only_where_planted() {
        let (work, turn) = (
            |passes| work(&Planted { work_per_packet: passes, ..Planted::default() }),
            Mutex::default(),
        );
        let mut idle = work(0);
        idle.spend(&turn);
        assert_eq!(idle.block, [0; PASS_LEN]);
        let mut busy = work(3);
        busy.spend(&turn);
        let (mut once, three_times) = (work(1), busy.block.clone());
        once.spend(&turn);
        // The keystream is the same each time: an odd number of passes is one pass.
        assert_eq!(once.block, three_times);
        assert_ne!(three_times, [0; PASS_LEN]);
    }
}

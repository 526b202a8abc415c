//! The planted limit: further encryption of each packet, so that a worker saturates at a load that a test chooses.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Bytes that one pass encrypts: about a full packet.
const PASS_LEN: usize = 1_200;

/// CPU work that is spent for each packet.
pub(crate) struct PlantedWork {
    passes: u32,
    key: Option<LessSafeKey>,
    block: Vec<u8>,
}

impl PlantedWork {
    pub(crate) fn new(passes: u32) -> Self {
        let key = (passes > 0)
            .then(|| UnboundKey::new(&AES_128_GCM, &[7; 16]).ok())
            .flatten()
            .map(LessSafeKey::new);
        Self { passes, key, block: vec![0; PASS_LEN] }
    }

    /// Encrypts a block as many times as was planted. The result goes nowhere.
    #[inline]
    pub(crate) fn spend(&mut self) {
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

    #[test]
    fn work_is_done_only_where_planted() {
        let mut idle = PlantedWork::new(0);
        idle.spend();
        assert_eq!(idle.block, [0; PASS_LEN]);
        let mut busy = PlantedWork::new(3);
        busy.spend();
        let (mut once, three_times) = (PlantedWork::new(1), busy.block.clone());
        once.spend();
        // The keystream is the same each time: an odd number of passes is one pass.
        assert_eq!(once.block, three_times);
        assert_ne!(three_times, [0; PASS_LEN]);
    }
}

//! Indexes that many viewers of the same file read at the same time, kept once.
//!
//! The index of a two-hour film is several megabytes, and a thousand viewers that start together
//! receive it a thousand times. So its bytes are gathered in one buffer from the beginning: whoever
//! is ahead appends, the others compare what they receive with what is there. They share it as long
//! as every byte is equal, which is stricter than a hash, and needs no buffer of their own.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Bytes of an index, and what was read from them.
#[derive(Debug)]
pub(super) struct Shared<T> {
    len: usize,
    growing: Mutex<Vec<u8>>,
    whole: OnceLock<(Box<[u8]>, T)>,
}

impl<T> Shared<T> {
    fn new(len: usize) -> Self {
        Self { len, growing: Mutex::default(), whole: OnceLock::new() }
    }

    /// All bytes and what was read from them; `None` while some are missing.
    pub(super) fn get(&self) -> Option<(&[u8], &T)> {
        self.whole.get().map(|(bytes, value)| (&**bytes, value))
    }

    /// Compares `piece`, which begins at `at`, with what is there, and appends what is not.
    /// `false`: it differs.
    fn agrees(&self, at: usize, piece: &[u8]) -> bool {
        if let Some((bytes, _)) = self.get() {
            return bytes.get(at..).is_some_and(|rest| rest.starts_with(piece));
        }
        let mut growing = lock(&self.growing);
        if let Some((bytes, _)) = self.get() {
            return bytes.get(at..).is_some_and(|rest| rest.starts_with(piece));
        }
        let Some(known) = growing.get(at..) else { return false };
        let (same, more) = piece.split_at(known.len().min(piece.len()));
        if !known.starts_with(same) {
            return false;
        }
        growing.extend_from_slice(more);
        true
    }

    /// The first bytes, for a reader that goes on alone.
    fn prefix(&self, len: usize) -> Vec<u8> {
        let growing = lock(&self.growing);
        let known = self.get().map_or(&growing[..], |(bytes, _)| bytes);
        known.get(..len).unwrap_or_default().to_vec()
    }

    fn complete(&self, read: impl FnOnce(&[u8]) -> T) {
        let mut growing = lock(&self.growing);
        if self.whole.get().is_none() && growing.len() == self.len {
            let bytes = std::mem::take(&mut *growing).into_boxed_slice();
            let value = read(&bytes);
            // Only this function sets it, under the lock.
            let _ = self.whole.set((bytes, value));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All indexes of one kind that a reader holds.
#[derive(Debug)]
pub(super) struct Pool<T>(Arc<Mutex<Vec<Weak<Shared<T>>>>>);

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Pool<T> {
    /// The index of this length that agrees with these first bytes, or a new one that has them.
    fn join(&self, len: usize, first: &[u8]) -> Arc<Shared<T>> {
        let mut all = lock(&self.0);
        all.retain(|shared| shared.strong_count() > 0);
        let alive = all.iter().filter_map(Weak::upgrade).filter(|shared| shared.len == len);
        if let Some(shared) = alive.into_iter().find(|shared| shared.agrees(0, first)) {
            return shared;
        }
        let shared = Arc::new(Shared::new(len));
        shared.agrees(0, first);
        all.push(Arc::downgrade(&shared));
        shared
    }
}

/// One reader's progress in receiving an index.
#[derive(Debug)]
pub(super) struct Joining<T> {
    pool: Pool<T>,
    shared: Arc<Shared<T>>,
    received: usize,
}

impl<T> Joining<T> {
    /// An index of `len` bytes begins.
    pub(super) fn new(pool: &Pool<T>, len: usize) -> Self {
        Self { pool: pool.clone(), shared: pool.join(len, &[]), received: 0 }
    }

    /// Bytes that are missing.
    pub(super) fn missing(&self) -> usize {
        self.shared.len - self.received
    }

    /// Takes the next bytes, at most [`Self::missing`]; `Some` when they were the last. The first
    /// reader that has them all reads what they mean.
    pub(super) fn feed(
        &mut self,
        piece: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<Arc<Shared<T>>> {
        let piece = piece.get(..self.missing()).unwrap_or(piece);
        if !self.shared.agrees(self.received, piece) {
            let own = [&self.shared.prefix(self.received)[..], piece].concat();
            self.shared = self.pool.join(self.shared.len, &own);
        }
        self.received += piece.len();
        if self.missing() > 0 {
            return None;
        }
        self.shared.complete(read);
        Some(Arc::clone(&self.shared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> u32 {
        bytes.iter().map(|byte| u32::from(*byte)).sum()
    }

    #[test]
    fn the_same_bytes_are_kept_and_read_once() {
        let pool = Pool::default();
        let (mut a, mut b) = (Joining::new(&pool, 4), Joining::new(&pool, 4));
        assert!(a.feed(&[1, 2], sum).is_none());
        assert!(b.feed(&[1, 2, 3], sum).is_none());
        let a = a.feed(&[3, 4, 9], sum).unwrap();
        let b = b.feed(&[4], |_| panic!("read before")).unwrap();
        assert!(Arc::ptr_eq(&a, &b));
        assert_eq!(a.get(), Some((&[1, 2, 3, 4][..], &10)));
        let late = Joining::new(&pool, 4).feed(&[1, 2, 3, 4], |_| panic!("read before")).unwrap();
        assert!(Arc::ptr_eq(&a, &late));
    }

    #[test]
    fn other_bytes_of_the_same_length_are_kept_apart() {
        let pool = Pool::default();
        let (mut a, mut b, mut c) =
            (Joining::new(&pool, 4), Joining::new(&pool, 4), Joining::new(&pool, 4));
        let a = a.feed(&[1, 2, 3, 4], sum).unwrap();
        assert!(b.feed(&[1, 2], sum).is_none());
        let b = b.feed(&[3, 5], sum).unwrap();
        assert_eq!((a.get().unwrap().1, b.get().unwrap().1), (&10, &11));
        assert!(c.feed(&[1, 2, 3], sum).is_none());
        assert!(Arc::ptr_eq(&b, &c.feed(&[5], sum).unwrap()));
        assert_eq!(lock(&pool.0).len(), 2);
    }

    #[test]
    fn an_index_lives_as_long_as_its_readers() {
        let pool = Pool::default();
        drop(Joining::new(&pool, 1).feed(&[7], sum));
        drop(Joining::new(&pool, 2));
        assert_eq!(
            Joining::new(&pool, 1).feed(&[7], |_| 1),
            Joining::new(&pool, 1).feed(&[7], |_| 1)
        );
        assert!(lock(&pool.0).len() <= 2);
    }

    impl<T: PartialEq> PartialEq for Shared<T> {
        fn eq(&self, other: &Self) -> bool {
            self.get() == other.get()
        }
    }
}

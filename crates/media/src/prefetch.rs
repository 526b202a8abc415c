//! Memory that will be read soon, so that the driver can have the CPU load it before.
//!
//! The state of a viewer is some kilobytes in a few allocations, and of thousands of viewers little
//! is in the CPU's caches when the next datagrams of one are handled. Reading it ahead waits for
//! each allocation in turn, since one has the address of the next. Here it is named level by level:
//! what can be named without reading anything that a level before has not named. A driver asks
//! several participants for a level before it asks any for the next one, and has the CPU load what
//! they name without waiting for it.

/// Levels: an allocation, what it points to, and so on.
pub const LEVELS: u8 = 6;

/// Takes the memory that is named.
pub struct Prefetcher<'a>(&'a mut dyn FnMut(*const u8, usize));

impl<'a> Prefetcher<'a> {
    /// `load` gets address and bytes of each piece. It must not read them: they are named to be
    /// loaded, if at all.
    pub fn new(load: &'a mut dyn FnMut(*const u8, usize)) -> Self {
        Self(load)
    }

    /// All of a value, without what it points to.
    pub fn value<T: ?Sized>(&mut self, value: &T) {
        (self.0)((&raw const *value).cast(), size_of_val(value));
    }
}

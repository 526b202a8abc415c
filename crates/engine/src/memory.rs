//! How the allocator lays out the memory of thousands of participants.

/// Lets all threads share the one arena of the process, until a run with several threads begins. To be called before the
/// first thread is made: the arena that a thread has got it keeps, and those beside the process's own grow by a page and a
/// system call at a time.
pub fn share_one_arena() {
    share_arenas(1);
}

/// Lets `threads` threads share as many arenas. By default glibc gives each thread its own, also the
/// collector and the store, and what one of them allocates and another frees leaves holes in each: a tenth of a
/// viewer's memory. Other allocators are left alone.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn share_arenas(threads: usize) {
    // SAFETY: mallopt has no preconditions beyond valid parameters. One that it refuses changes nothing.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, i32::try_from(threads).unwrap_or(i32::MAX)) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn share_arenas(_workers: usize) {}

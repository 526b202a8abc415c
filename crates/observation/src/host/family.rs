//! Families of functions: the kind of work of a function, by its name. The table is data; a family
//! is listed when a remedy follows from it.

use super::Frame;
use serde::{Deserialize, Serialize};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Copying bytes: between buffers, to and from the kernel, through pipes and local sockets.
    Copy,
    /// Taking, waiting for and releasing locks; an interpreter's global lock.
    Lock,
    /// Encryption, authentication, key exchange.
    Crypto,
    /// The send path of the network, from the system call to the device.
    Send,
    /// The receive path of the network.
    Receive,
    /// Waiting for descriptors to become ready.
    Poll,
    /// Reading and writing files.
    File,
    /// Allocating, freeing, faulting in memory.
    Memory,
    /// Collecting garbage.
    Garbage,
    /// Parsing formats: parameter sets, slices, headers, XML, JSON.
    Parse,
    /// The main loop of an interpreter: the program's own functions are not visible behind it.
    Interpreter,
    /// Encoding, decoding and filtering of media.
    Media,
}

/// A family and the names of its functions.
struct Row {
    family: Family,
    /// Its title in tables.
    words: &'static str,
    /// Names of functions; `*` stands for any characters.
    names: &'static [&'static str],
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { family: Family::Lock, words: "locks", names: &[
        "futex*", "__futex*", "do_futex", "__x64_sys_futex", "__arm64_sys_futex", "hash_futex",
        "get_futex*", "wake_up_q", "pthread_mutex_*", "___pthread_mutex_*", "__pthread_mutex_*",
        "pthread_cond_*", "___pthread_cond_*", "__pthread_cond_*", "pthread_rwlock_*", "__lll_*",
        "___pthread_rwlock_*", "sem_wait*", "sem_post*", "native_queued_spin_lock_slowpath",
        "queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath", "*osq_lock*", "*mutex_lock*",
        "*mutex_unlock*", "*mutex_spin*", "rwsem_*", "down_read*", "down_write*", "up_read",
        "up_write", "take_gil", "drop_gil", "*parking_lot*", "*sys::sync::*", "runtime.lock*",
        "runtime.unlock*", "runtime.futex*", "sync.(*Mutex)*", "sync.(*RWMutex)*", "g_mutex_*",
        "g_cond_*", "g_rec_mutex_*",
    ] },
    Row { family: Family::Copy, words: "copying", names: &[
        "memcpy*", "memmove*", "mempcpy*", "__memcpy*", "__memmove*", "__mempcpy*", "memset*",
        "__memset*", "runtime.memmove", "copy_user*", "*copy_to_iter*", "*copy_from_iter*",
        "*copy_to_user*", "*copy_from_user*", "rep_movs*", "copy_page*", "__copy_*", "skb_copy_*",
        "simple_copy_to_iter", "csum_partial_copy*", "csum_and_copy*", "_copy_*", "pipe_read",
        "pipe_write", "anon_pipe_read", "anon_pipe_write", "unix_stream_*", "unix_dgram_*",
    ] },
    Row { family: Family::Crypto, words: "encryption", names: &[
        "*aes*", "*AES*", "*gcm*", "*GCM*", "*ghash*", "*GHASH*", "*chacha*", "*ChaCha*",
        "*poly1305*", "*Poly1305*", "*srtp*", "*SRTP*", "*sha1*", "*SHA1*", "*sha256*", "*SHA256*",
        "*sha512*", "*SHA512*", "*HMAC*", "*hmac*", "*25519*", "ecp_*", "*p256*", "bn_mul*",
        "bn_sqr*", "BN_*", "*_mont_*", "EVP_*", "evp_*", "CRYPTO_*", "icm_*",
    ] },
    Row { family: Family::Send, words: "sending", names: &[
        "send", "sendto", "sendmsg", "sendmmsg", "sendfile", "__send", "__sendto", "__sendmsg",
        "__sendmmsg", "__libc_send*", "__sys_send*", "___sys_send*", "____sys_send*",
        "__x64_sys_send*", "__arm64_sys_send*", "sock_sendmsg*", "sock_write_iter", "udp_send*",
        "udpv6_send*", "udp_push*", "tcp_send*", "tcp_push*", "tcp_write_xmit",
        "__tcp_transmit_skb", "ip_output", "ip_send_skb", "ip_finish_output*", "ip_queue_xmit",
        "ip6_output", "ip6_xmit", "__dev_queue_xmit", "dev_hard_start_xmit", "sch_direct_xmit",
        "*_start_xmit", "__ip_append_data", "__ip_make_skb", "do_sendfile",
        "splice_direct_to_actor",
    ] },
    Row { family: Family::Receive, words: "receiving", names: &[
        "recv", "recvfrom", "recvmsg", "recvmmsg", "__recv", "__recvfrom", "__recvmsg",
        "__recvmmsg", "__libc_recv*", "__sys_recv*", "___sys_recv*", "____sys_recv*",
        "__x64_sys_recv*", "__arm64_sys_recv*", "sock_recvmsg*", "sock_read_iter", "udp_recv*",
        "udpv6_recv*", "tcp_recv*", "tcp_v4_rcv", "tcp_v6_rcv", "tcp_rcv_*", "udp_rcv",
        "udp_queue_rcv*", "__udp4_lib_rcv", "ip_rcv*", "ip_local_deliver*", "__netif_receive_skb*",
        "net_rx_action", "napi_*", "process_backlog",
    ] },
    Row { family: Family::Poll, words: "polling", names: &[
        "epoll_*", "ep_*", "do_epoll_*", "__x64_sys_epoll_*", "poll", "__poll", "ppoll", "do_poll*",
        "do_sys_poll", "select", "__select", "pselect6", "do_select", "core_sys_select",
        "*poll_wait*", "sock_poll", "tcp_poll", "udp_poll", "datagram_poll", "io_uring_enter",
        "__io_uring_enter", "io_cqring_wait*",
    ] },
    Row { family: Family::Garbage, words: "garbage collection", names: &[
        "luaC_*", "propagatemark", "reallymarkobject", "sweeplist", "sweepstep", "singlestep",
        "atomic", "traverse*table*", "lj_gc_*", "gc_*", "*gcDrain*", "runtime.gc*", "runtime.scan*",
        "runtime.mark*", "runtime.sweep*", "runtime.greyobject", "runtime.wbBuf*",
        "*GarbageCollect*", "*Scavenge*", "*MarkCompact*", "_PyGC*", "*erts_garbage*",
    ] },
    Row { family: Family::Memory, words: "memory", names: &[
        "malloc*", "free", "cfree*", "calloc", "realloc*", "_int_malloc", "_int_free*",
        "_int_realloc", "__libc_malloc*", "__libc_free", "__libc_calloc", "__libc_realloc",
        "unlink_chunk*", "malloc_consolidate", "operator new*", "operator delete*", "mi_*", "je_*",
        "tc_*", "runtime.mallocgc*", "brk", "__x64_sys_brk", "g_malloc*", "g_free*", "g_slice_*",
        "asm_exc_page_fault", "exc_page_fault", "handle_mm_fault", "do_anonymous_page",
        "clear_page*", "*alloc_pages*", "free_unref_*", "kmem_cache_*", "kmalloc*", "__kmalloc*",
        "kfree*", "__alloc_skb", "skb_release_data", "__kfree_skb",
    ] },
    Row { family: Family::File, words: "files", names: &[
        "pread*", "pwrite*", "__x64_sys_pread*", "ext4_*", "xfs_*", "btrfs_*", "filemap_*",
        "generic_file_*", "page_cache_*", "do_filp_open", "path_openat", "link_path_walk",
        "*fsync*", "submit_bio*", "blk_*", "iomap_*", "shmem_*", "do_sys_openat2", "vfs_stat*",
        "vfs_fstat*",
    ] },
    Row { family: Family::Parse, words: "parsing", names: &[
        "*parse*", "*Parse*", "analyze_*_parameter_set", "*BitstreamParser*", "*BitReader*",
        "XML_*", "*expat*", "*json*decode*", "*Json*",
    ] },
    Row { family: Family::Interpreter, words: "interpreter", names: &[
        "luaV_*", "luaD_*", "luaH_*", "luaS_*", "lj_BC_*", "lj_vm_*", "_PyEval_*", "PyEval_*",
        "Builtins_*", "*InterpreterEntry*", "zend_execute*", "execute_ex", "process_main", "beam_*",
        "rb_vm_*", "vm_exec*",
    ] },
    Row { family: Family::Media, words: "media", names: &[
        "x264_*", "x265_*", "ff_*", "av_*", "avcodec_*", "avfilter_*", "sws_*", "swr_*", "vpx_*",
        "vp8_*", "vp9_*", "aom_*", "av1_*", "svt_*", "opus_*", "celt_*", "silk_*", "h264_*",
        "hevc_*", "decode_slice*", "encode_slice*", "yuv*", "*jpeg*",
    ] },
];

impl Family {
    /// All families, in the order in which names are matched.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.family)
    }

    /// The family of a function; `None` for the program's own work, or unknown.
    #[must_use]
    pub fn of(frame: &Frame) -> Option<Self> {
        // A function that waits in the kernel has the call's name; states and addresses have none.
        if frame.module == "[state]" || frame.symbol.starts_with("0x") {
            return None;
        }
        ROWS.iter()
            .find(|row| row.names.iter().any(|name| matches(name, &frame.symbol)))
            .map(|row| row.family)
    }

    /// Whether the kind is a path through many functions, so that callees belong to it. Of other
    /// kinds only the self-time is meaningful: a parser that calls back with its results calls the
    /// whole program.
    #[must_use]
    pub fn is_path(self) -> bool {
        matches!(self, Self::Send | Self::Receive | Self::Poll | Self::File | Self::Lock)
    }

    /// Its title in a table.
    #[must_use]
    pub fn words(self) -> &'static str {
        ROWS.iter().find(|row| row.family == self).map_or("", |row| row.words)
    }
}

/// Whether `name` fits `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_what_they_say() {
        let check =
            |pattern, name, expect| assert_eq!(matches(pattern, name), expect, "{pattern} {name}");
        check("free", "free", true);
        check("free", "freedom", false);
        check("mem*cpy", "memcpy", true);
        check("mem*cpy", "mem_cpycp", false);
        check("*aes*", "vaesenc", true);
        check("*a*a*", "a", false);
        check("*", "", true);
        check("", "", true);
        check("a*a", "a", false);
    }

    #[test]
    fn functions_find_their_family() {
        let check = |symbol: &str, module: &str, expect| {
            let frame = Frame { symbol: symbol.into(), module: module.into() };
            assert_eq!(Family::of(&frame), expect, "{symbol}");
        };
        check("__memmove_avx_unaligned_erms", "libc.so.6", Some(Family::Copy));
        check("copy_user_generic_string", "[kernel]", Some(Family::Copy));
        check("rep_movs_alternative", "[kernel]", Some(Family::Copy));
        check("futex", "[syscall]", Some(Family::Lock));
        check("futex_do_wait", "[kernel]", Some(Family::Lock));
        check("pthread_mutex_lock", "libc.so.6", Some(Family::Lock));
        check("take_gil", "python3.12", Some(Family::Lock));
        check("aesni_ctr32_encrypt_blocks", "libcrypto.so.3", Some(Family::Crypto));
        check("srtp_protect", "libsrtp2.so.1", Some(Family::Crypto));
        check("sendto", "libc.so.6", Some(Family::Send));
        check("udp_sendmsg", "[kernel]", Some(Family::Send));
        check("H264Parser::parseSlice", "OvenMediaEngine", Some(Family::Parse));
        check("luaV_execute", "lua5.4", Some(Family::Interpreter));
        check("luaC_step", "lua5.4", Some(Family::Garbage));
        check("x264_pixel_sad", "libx264.so.164", Some(Family::Media));
        check("janus_ice_loop", "janus", None);
        check("0x1240aes", "x", None);
        check("waiting", "[state]", None);
    }

    #[test]
    fn every_family_has_words_and_a_row_of_its_own() {
        let all: Vec<_> = Family::all().collect();
        assert!(all.iter().all(|family| !family.words().is_empty()));
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}

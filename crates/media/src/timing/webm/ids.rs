//! The elements that are read (RFC 9559 section 5, RFC 8794 section 11).

pub(super) const EBML: u32 = 0x1a45_dfa3;
pub(super) const SEGMENT: u32 = 0x1853_8067;
pub(super) const SEEK_HEAD: u32 = 0x114d_9b74;
pub(super) const SEEK: u32 = 0x4dbb;
pub(super) const SEEK_ID: u32 = 0x53ab;
pub(super) const SEEK_POSITION: u32 = 0x53ac;
pub(super) const INFO: u32 = 0x1549_a966;
pub(super) const TRACKS: u32 = 0x1654_ae6b;
pub(super) const CUES: u32 = 0x1c53_bb6b;
pub(super) const TAGS: u32 = 0x1254_c367;
pub(super) const ATTACHMENTS: u32 = 0x1941_a469;
pub(super) const CHAPTERS: u32 = 0x1043_a770;
pub(super) const CLUSTER: u32 = 0x1f43_b675;
pub(super) const TIMESTAMP: u32 = 0xe7;
pub(super) const SIMPLE_BLOCK: u32 = 0xa3;
pub(super) const BLOCK_GROUP: u32 = 0xa0;
pub(super) const BLOCK: u32 = 0xa1;
pub(super) const BLOCK_DURATION: u32 = 0x9b;
pub(super) const REFERENCE_BLOCK: u32 = 0xfb;

/// The name of an element, for errors.
pub(super) fn name(id: u32) -> String {
    let name = match id {
        EBML => "EBML",
        SEGMENT => "Segment",
        SEEK_HEAD => "SeekHead",
        INFO => "Info",
        TRACKS => "Tracks",
        CUES => "Cues",
        CLUSTER => "Cluster",
        TIMESTAMP => "Timestamp",
        SIMPLE_BLOCK => "SimpleBlock",
        BLOCK_GROUP => "BlockGroup",
        BLOCK => "Block",
        _ => return format!("element {id:#x}"),
    };
    format!("element `{name}`")
}

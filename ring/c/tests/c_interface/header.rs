//! The committed header matches the library.

use std::path::Path;

/// `THRONG_RING_WRITE_HEADER=1 cargo test -p throng-ring-c --test c_interface header` regenerates
/// it.
#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in ["status", "types", "producer", "consumer", "lane", "stats"] {
        builder = builder.with_src(root.join("src").join(file).with_extension("rs"));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let path = root.join("include/throng_ring.h");
    if std::env::var_os("THRONG_RING_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let made = String::from_utf8(made).unwrap();
    assert!(
        made == std::fs::read_to_string(path).unwrap(),
        "include/throng_ring.h is old: see this test's comment"
    );
}

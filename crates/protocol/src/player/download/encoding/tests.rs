//! Bodies from encoders, cut anywhere, broken, and grown beyond bounds.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// A playlist of two lines of which the second is repeated, by Google's encoder at its highest
/// level.
const BROTLI: &str = "1b5b00f88dd44ef7426d6ac9ced6828a9d693a9ba0f9ed4bff4f051aa7d4e59d82d281157081f2eef8e1fa8a14003b1a31fd2f";

/// 20 MiB of zeros, by the same.
const BROTLI_BOMB: &str =
    "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd5ffeffffe09f0088c30200ddfb1f";

/// 20 MB of zeros by `zstd --long=27`: a window that no HTTP client has room for.
const ZSTD_LONG: &str = "28b52ffd04886400001000000200e9ff3773e0012c020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300202740020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300402e81020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300602e81020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300903720020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300302740020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300502e81020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300702e81020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300903720020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000020010000200100002001000540000000100fdff0300302740020010000200100002001000020010000200100002001000020010000368090021f750d9";

fn playlist() -> Vec<u8> {
    format!("#EXTM3U\n{}", "#EXTINF:4.000,\nsegment-1.ts\n".repeat(3)).into_bytes()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn encoded(name: &str, text: &[u8]) -> Vec<u8> {
    match name {
        "gzip" | "x-gzip" => {
            let mut to = GzEncoder::new(Vec::new(), Compression::default());
            to.write_all(text).unwrap();
            to.finish().unwrap()
        }
        "deflate" => {
            let mut to = ZlibEncoder::new(Vec::new(), Compression::default());
            to.write_all(text).unwrap();
            to.finish().unwrap()
        }
        "bare deflate" => {
            let mut to = DeflateEncoder::new(Vec::new(), Compression::default());
            to.write_all(text).unwrap();
            to.finish().unwrap()
        }
        "zstd" => compress_to_vec(text, CompressionLevel::Fastest),
        name => panic!("{name}"),
    }
}

fn decoder(name: &str) -> Result<Option<Decoder>, DecodeError> {
    let mut headers = HeaderMap::new();
    headers
        .insert(CONTENT_ENCODING, HeaderValue::from_str(name.trim_start_matches("bare ")).unwrap());
    Decoder::of(&headers)
}

/// Decodes `body` in pieces of `piece` bytes.
fn decoded(
    name: &str,
    body: &[u8],
    piece: usize,
    bytes_max: usize,
) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = decoder(name)?.unwrap();
    let mut out = Vec::new();
    for piece in body.chunks(piece) {
        out.extend(decoder.decode(piece, bytes_max - out.len())?);
    }
    decoder.finish().map(|()| out)
}

const ALL: [&str; 5] = ["gzip", "x-gzip", "deflate", "bare deflate", "zstd"];

#[test]
fn each_encoding_is_decoded_however_its_body_is_cut() {
    let text = playlist();
    for piece in [1, 2, 3, 7, 10_000] {
        for name in ALL {
            let body = encoded(name, &text);
            assert_eq!(
                decoded(name, &body, piece, text.len()).as_ref(),
                Ok(&text),
                "{name} by {piece}"
            );
        }
        assert_eq!(
            decoded("br", &bytes(BROTLI), piece, text.len()).as_ref(),
            Ok(&text),
            "by {piece}"
        );
    }
}

#[test]
fn what_a_piece_holds_is_decoded_at_once() {
    // A live playlist or a part is read while it comes.
    let mut to = GzEncoder::new(Vec::new(), Compression::default());
    to.write_all(b"#EXTM3U\n").unwrap();
    to.flush().unwrap();
    let mut decoder = decoder("gzip").unwrap().unwrap();
    assert_eq!(decoder.decode(to.get_ref(), 100).unwrap(), b"#EXTM3U\n");
    assert!(matches!(decoder.finish(), Err(DecodeError::Broken(_))));
}

#[test]
fn a_body_that_is_cut_off_or_broken_is_an_error() {
    let text: Vec<u8> = (0..9_000_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
    for name in ALL {
        let body = encoded(name, &text);
        for missing in [1, 5, body.len() / 2] {
            let result = decoded(name, &body[..body.len() - missing], 1_000, text.len());
            assert!(
                matches!(result, Err(DecodeError::Broken(_))),
                "{name} without {missing}: {result:?}"
            );
        }
    }
    for name in ["gzip", "br", "zstd"] {
        let result = decoded(name, b"#EXTM3U\n#EXT-X-TARGETDURATION:4\n", 1_000, 1_000);
        assert!(matches!(result, Err(DecodeError::Broken(_))), "{name}: {result:?}");
    }
    let mut body = encoded("gzip", &text);
    let at = body.len() - 6;
    body[at] ^= 1;
    assert!(
        matches!(decoded("gzip", &body, 1_000, text.len()), Err(DecodeError::Broken(_))),
        "checksum"
    );
    let mut body = bytes(BROTLI);
    body.truncate(30);
    assert!(matches!(decoded("br", &body, 1_000, 1_000), Err(DecodeError::Broken(_))));
    let result = decoded("zstd", &bytes(ZSTD_LONG), 1_000, 30_000_000);
    assert!(
        matches!(&result, Err(DecodeError::Broken(what)) if what.contains("window")),
        "{result:?}"
    );
}

#[test]
fn an_empty_body_and_what_follows_the_end_are_no_errors() {
    for name in ["gzip", "deflate", "br", "zstd"] {
        assert_eq!(decoded(name, b"", 1, 10).unwrap(), b"", "{name}");
    }
    for name in ["gzip", "deflate", "bare deflate"] {
        let body = [encoded(name, b"abc"), b"more".to_vec()].concat();
        for piece in [1, 100] {
            assert_eq!(decoded(name, &body, piece, 10).unwrap(), b"abc", "{name}");
        }
    }
    let two = [encoded("zstd", b"abc"), encoded("zstd", b"def")].concat();
    assert_eq!(decoded("zstd", &two, 100, 10).unwrap(), b"abcdef");
}

#[test]
fn what_becomes_too_long_is_given_up_at_the_limit() {
    let zeros = vec![0; 20 << 20];
    for (name, body) in ["gzip", "deflate", "zstd"]
        .map(|name| (name, encoded(name, &zeros)))
        .into_iter()
        .chain([("br", bytes(BROTLI_BOMB))])
    {
        for bytes_max in [0, 1, 65_536, 1 << 20] {
            assert_eq!(
                decoded(name, &body, usize::MAX, bytes_max),
                Err(DecodeError::TooLong),
                "{name}"
            );
        }
        // One piece is bounded even where the body is not.
        assert_eq!(
            decoded(name, &body, usize::MAX, usize::MAX),
            Err(DecodeError::TooLong),
            "{name}"
        );
        if name != "br" {
            assert_eq!(
                decoded(name, &body, 128, usize::MAX).map(|all| all.len()),
                Ok(20 << 20),
                "{name}"
            );
        }
    }
}

#[test]
fn an_encoding_that_was_not_asked_for_is_an_error_and_identity_is_none() {
    assert!(Decoder::of(&HeaderMap::new()).unwrap().is_none());
    assert!(decoder("identity").unwrap().is_none());
    assert_eq!(decoder("GZip").unwrap().unwrap().name(), "gzip");
    for name in ["compress", "dcb", "gzip, br"] {
        assert_eq!(decoder(name).err(), Some(DecodeError::Unknown(name.into())));
    }
}

#[test]
fn newer_encodings_are_asked_for_where_chromium_does() {
    let (all, old) = ("gzip, deflate, br, zstd", "gzip, deflate");
    for (url, expect) in [
        ("https://video.example/a", all),
        ("http://video.example/a", old),
        ("http://127.0.0.1:8080/a", all),
        ("http://127.9.9.9/a", all),
        ("http://[::1]/a", all),
        ("http://localhost/a", all),
        ("http://a.localhost./a", all),
        ("http://notlocalhost/a", old),
        ("http://10.0.0.1/a", old),
    ] {
        assert_eq!(accepted(&Url::parse(url).unwrap()), expect, "{url}");
    }
}

proptest! {
    #[test]
    fn no_body_makes_it_panic_or_grow(body in proptest::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
        for name in ["gzip", "deflate", "br", "zstd"] {
            let result = decoded(name, &body, piece, 1_000);
            prop_assert!(result.is_err() || result.is_ok_and(|all| all.len() <= 1_000));
        }
    }

    #[test]
    fn what_was_encoded_comes_back(text in proptest::collection::vec(0_u8..4, 0..5_000), piece in 1_usize..400) {
        for name in ALL {
            let body = encoded(name, &text);
            let result = decoded(name, &body, piece, text.len());
            prop_assert_eq!(result.as_ref(), Ok(&text), "{}", name);
        }
    }

    #[test]
    fn a_changed_byte_makes_no_panic(at in 0_usize..200, change in 1_u8..255) {
        let text = playlist();
        for name in ALL {
            let mut body = encoded(name, &text);
            let length = body.len();
            body[at % length] ^= change;
            let _ = decoded(name, &body, 50, 100_000);
        }
        let mut body = bytes(BROTLI);
        let length = body.len();
        body[at % length] ^= change;
        let _ = decoded("br", &body, 50, 100_000);
    }
}

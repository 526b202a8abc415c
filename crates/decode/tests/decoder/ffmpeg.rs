//! Tests with real FFmpeg: all frames are decoded, with their numbers, at every size and codec of
//! the test card.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use throng_decode::{
    CardNumbers, DecodeError, Decoder, Output, Picture, Program, References, card, encode,
};
use throng_media::card::Rung;
use throng_observation::Codec;

fn decode(
    program: &Program,
    codec: Codec,
    output: Output,
    coded: &[throng_decode::CodedPicture],
) -> Vec<Picture> {
    let (tell, results) = mpsc::channel();
    let (decoder, mut feed) =
        Decoder::start(program, codec, (640, 360), output, move |picture| drop(tell.send(picture)))
            .unwrap();
    for (index, picture) in (0..).zip(coded) {
        feed.frame(index, picture.key_frame, &picture.bytes).unwrap();
    }
    drop(feed);
    decoder.finish().unwrap();
    results.iter().collect()
}

#[test]
fn every_picture_of_the_card_comes_out_with_its_number() {
    for codec in [Codec::Vp8, Codec::H264] {
        for rung in Rung::ALL {
            let coded = card(rung, codec).unwrap();
            let pictures = decode(&Program::default(), codec, Output::Luma, &coded);
            assert_eq!(pictures.len(), coded.len(), "{rung:?} {codec:?}");
            let mut numbers = CardNumbers::default();
            for (index, picture) in (0..).zip(&pictures) {
                assert_eq!(
                    (picture.index, (picture.width, picture.height)),
                    (index, rung.size()),
                    "{codec:?}"
                );
                assert_eq!(numbers.picture(picture), Some(index as u8), "{rung:?} {codec:?}");
            }
            assert_eq!(numbers.take().next, coded.len() as u64 - 1);
        }
    }
}

#[test]
fn a_damaged_picture_is_less_like_its_source() {
    let program = Program::default();
    let references = References::new(&program);
    let (rung, codec) = (Rung::P240, Codec::H264);
    let mut coded = card(rung, codec).unwrap();
    let whole = decode(&program, codec, Output::Luma, &coded);
    let given_up_at = Instant::now() + Duration::from_secs(30);
    let like = loop {
        if let Some(alike) = references.compare(codec, 5, &whole[5]) {
            break alike;
        }
        assert!(Instant::now() < given_up_at, "the reference is made aside");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!((like - 1.0).abs() < 1e-9, "{like}");
    // A frame is lost without a notice to the decoder: pictures are wrong until the next key frame.
    coded.remove(3);
    let damaged = decode(&program, codec, Output::Luma, &coded);
    let worst = (3..15)
        .filter_map(|at| references.compare(codec, at as u8 + 1, &damaged[at]))
        .fold(1.0, f64::min);
    assert!(worst < 0.999, "{worst}");
}

#[test]
fn streams_are_encoded_as_asked_and_decoded_without_their_pixels() {
    let program = Program::default();
    for codec in [Codec::Vp8, Codec::H264] {
        let coded = encode(&program, codec, (320, 240), 30.0, 256e3, 2).unwrap();
        assert_eq!(coded.len(), 60, "{codec:?}");
        assert!(coded[0].key_frame && (coded[59].at_ms - 59.0 * 1e3 / 30.0).abs() < 1e-6);
        let bits: usize = coded.iter().map(|picture| picture.bytes.len() * 8).sum();
        assert!((200_000..1_200_000).contains(&bits), "{codec:?}: {bits}");
        let pictures = decode(&program, codec, Output::Nothing, &coded);
        assert_eq!(pictures.len(), 60, "{codec:?}");
        assert!(pictures.iter().all(|picture| picture.luma.is_empty() && picture.width == 320));
    }
}

#[test]
fn what_cannot_be_decoded_says_what_to_do() {
    let nowhere = Program { ffmpeg: "/nowhere/ffmpeg".into(), decoder: None };
    let error = nowhere.version().unwrap_err().to_string();
    assert!(error.contains("apt-get install ffmpeg"), "{error}");
    assert!(matches!(
        Decoder::start(&Program::default(), Codec::Opus, (1, 1), Output::Luma, drop),
        Err(DecodeError::Codec(Codec::Opus))
    ));
    let unknown = Program { decoder: Some("no-such-decoder".into()), ..Program::default() };
    let (decoder, _feed) =
        Decoder::start(&unknown, Codec::Vp8, (1, 1), Output::Luma, drop).unwrap();
    let error = decoder.finish().unwrap_err().to_string();
    assert!(error.contains("no-such-decoder"), "{error}");
}

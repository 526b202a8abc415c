//! Recordings and captures: items read are within the file and come to an end. And media files of
//! every kind: each clip can be played.

use std::sync::Arc;

use throng_media::container::{mjr, pcap};
use throng_media::source::{Format, Player, read};
use throng_observation::Codec;

use super::container::mend_checksums;

/// More frames than the loop of a file of a few kilobytes has.
const PLAYED: usize = 60;

pub(super) fn mjr_file(file: &[u8]) {
    let Ok(reader) = mjr::MjrReader::new(file) else { return };
    let packets: Vec<_> = reader.collect();
    assert!(packets.iter().rev().skip(1).all(Result::is_ok), "the first error ends it");
    let whole: Vec<_> = packets.iter().filter_map(|packet| packet.as_ref().ok()).collect();
    assert!(whole.iter().map(|packet| 10 + packet.rtp.len()).sum::<usize>() + 10 <= file.len());
    assert!(
        whole.windows(2).all(|two| two[0].received_ms.is_some() == two[1].received_ms.is_some())
    );
}

pub(super) fn pcap_file(file: &[u8]) {
    let Ok(reader) = pcap::PcapReader::new(file) else { return };
    let datagrams: Vec<_> = reader.collect();
    assert!(datagrams.iter().rev().skip(1).all(Result::is_ok), "the first error ends it");
    let whole = datagrams.iter().filter_map(|datagram| datagram.as_ref().ok());
    // The headers of a record, of IPv4 and of UDP at least.
    assert!(whole.map(|datagram| 44 + datagram.payload.len()).sum::<usize>() + 24 <= file.len());
}

/// Media files: an error is one short line; a clip loops with growing times, and is not larger than
/// the file.
pub(crate) fn source(file: &[u8]) {
    let codecs = [None, Some(Codec::H264), Some(Codec::H265), Some(Codec::Vp9), Some(Codec::Opus)];
    let codec = codecs[usize::from(file.last().copied().unwrap_or_default()) % codecs.len()];
    play(file, &Format::default());
    play(file, &Format { codec, fps: Some(25.0), ssrc: None });
    let mut mended = file.to_vec();
    mend_checksums(&mut mended);
    if mended != file {
        play(&mended, &Format::default());
    }
}

fn play(file: &[u8], format: &Format) {
    let clip = match read(file, format) {
        Ok(clip) => Arc::new(clip),
        Err(error) => {
            let said = error.to_string();
            assert!(
                !said.is_empty() && said.len() < 1_000 && !said.chars().any(char::is_control),
                "{said:?}"
            );
            return;
        }
    };
    assert!(clip.frame_count() > 0 && clip.duration_s() > 0.0 && clip.bitrate_bps() >= 0.0);
    let mut player = Player::new(Arc::clone(&clip));
    assert!(clip.is_key(&player.clone().advance()), "a viewer can begin with the first frame");
    let mut due = player.next_due();
    let mut payload = Vec::new();
    for _ in 0..PLAYED {
        let frame = player.advance();
        assert!(player.next_due() > due);
        due = player.next_due();
        assert!(clip.packet_count(&frame) > 0);
        for packet in 0..clip.packet_count(&frame) {
            payload.clear();
            assert!(clip.write_payload(&frame, packet, 1, &mut payload));
            assert_eq!(payload.len(), clip.payload_len(&frame, packet));
        }
    }
    player.request_key_frame();
    assert!(clip.is_key(&player.advance()));
}

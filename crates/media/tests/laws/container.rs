//! Files of coded media: items read are within the file, come to an end, and can be written and
//! read again.

use throng_media::container::{annexb, ivf, matroska, ogg};

use super::recording;

/// Containers: the same bytes as a file of each kind.
pub(crate) fn container(file: &[u8]) {
    annex_b(file);
    ivf_file(file);
    matroska_file(file);
    ogg_file(file);
    recording::mjr_file(file);
    recording::pcap_file(file);
    let mut mended = file.to_vec();
    mend_checksums(&mut mended);
    ogg_file(&mended);
}

fn annex_b(stream: &[u8]) {
    let units: Vec<&[u8]> = annexb::nal_units(stream).collect();
    assert!(units.iter().map(|unit| unit.len() + 3).sum::<usize>() <= stream.len());
    let mut again = Vec::new();
    for unit in &units {
        assert!(!unit.windows(3).any(|three| three == [0, 0, 1]) && unit.last() != Some(&0));
        again.extend_from_slice(&[0, 0, 0, 1]);
        again.extend_from_slice(unit);
    }
    assert!(annexb::nal_units(&again).eq(units.iter().copied()));
    let pictures: Vec<_> = annexb::h264_access_units(stream).collect();
    assert!(pictures.iter().all(|picture| !picture.nals.is_empty()));
    assert!(pictures.iter().flat_map(|picture| &picture.nals).eq(&units));
}

fn ivf_file(file: &[u8]) {
    let Ok(reader) = ivf::IvfReader::new(file) else { return };
    let frames: Vec<_> = reader.collect();
    let whole: Vec<_> = frames.iter().filter_map(|frame| frame.as_ref().ok()).collect();
    // Only the last can be truncated.
    assert!(frames.len() - whole.len() <= usize::from(frames.last().is_some_and(Result::is_err)));
    assert!(whole.iter().map(|frame| 12 + frame.data.len()).sum::<usize>() + 32 <= file.len());
    let mut again = file[..32].to_vec();
    again[6..8].copy_from_slice(&32u16.to_le_bytes());
    for frame in &whole {
        again.extend((frame.data.len() as u32).to_le_bytes());
        again.extend(frame.pts.to_le_bytes());
        again.extend_from_slice(frame.data);
    }
    let reread: Vec<_> =
        ivf::IvfReader::new(&again).expect("what was written").map(Result::unwrap).collect();
    assert!(reread.iter().eq(whole));
}

fn ogg_file(file: &[u8]) {
    let (mut bytes, mut failed) = (0, false);
    for packet in ogg::OggReader::new(file) {
        assert!(!failed, "nothing is read after an error");
        match packet {
            Ok(packet) => {
                bytes += packet.len();
                assert!(packet.len() <= ogg::PACKET_LEN_MAX);
                let _ = ogg::OpusHead::parse(&packet);
            }
            Err(error) => {
                failed = true;
                assert!(error.to_string().contains("offset"));
            }
        }
    }
    assert!(bytes <= file.len());
}

/// Sets every page's correct checksum (RFC 3533 §6), so that damaged pages pass the check.
pub(super) fn mend_checksums(file: &mut [u8]) {
    let mut rest = file;
    while rest.starts_with(b"OggS") && rest.len() > 27 {
        let segments = usize::from(rest[26]);
        let Some(laces) = rest.get(27..27 + segments) else { return };
        let len = 27 + segments + laces.iter().map(|lace| usize::from(*lace)).sum::<usize>();
        let Some((page, after)) = rest.split_at_mut_checked(len) else { return };
        page[22..26].fill(0);
        let crc = page.iter().fold(0, |crc: u32, byte| {
            (0..8).fold(crc ^ (u32::from(*byte) << 24), |crc, _| {
                (crc << 1) ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 }
            })
        });
        page[22..26].copy_from_slice(&crc.to_le_bytes());
        rest = after;
    }
}

fn matroska_file(file: &[u8]) {
    // After a valid header, and as the whole file.
    let mut behind = matroska::header(throng_observation::Codec::Vp8, (320, 240)).expect("video");
    behind.extend_from_slice(file);
    for file in [file, &behind] {
        let Ok(reader) = matroska::MatroskaReader::new(file) else { continue };
        let frames: Vec<_> = reader.collect();
        assert!(frames.iter().rev().skip(1).all(Result::is_ok), "the first error ends it");
        let whole: Vec<_> = frames.iter().filter_map(|frame| frame.as_ref().ok()).collect();
        assert!(whole.iter().map(|frame| frame.data.len()).sum::<usize>() <= file.len());
    }
}

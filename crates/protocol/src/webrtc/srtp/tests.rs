use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn aes_cm_keystream_is_that_of_rfc_3711_b_2() {
    let key = counter_mode(&AES_128, &hex("2B7E151628AED2A6ABF7158809CF4F3C")).unwrap();
    let iv: [u8; 16] = hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000").try_into().unwrap();
    let mut stream = [0; 48];
    apply_keystream(&key, &iv, &mut stream).unwrap();
    let expect = hex(
        "E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB 41E95B3BB0A2E8DD477901E4FCA894C0",
    );
    assert_eq!(stream.as_slice(), expect);
}

#[test]
fn derived_keys_are_those_of_rfc_3711_b_3() {
    let (key, salt) =
        (hex("E1F97A0D3E018BE0D64FA32C06DE4139"), hex("0EC675AD498AFEEBB6960B3AABE6"));
    for (label, expect) in [
        (0, "C61E7A93744F39EE10734AFE3FF7A087"),
        (1, "CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4"),
        (2, "30CBBC08863D8C85D49DB34A9AE1"),
    ] {
        let expect = hex(expect);
        let mut got = vec![0; expect.len()];
        derive_key(&key, &salt, label, &mut got).unwrap();
        assert_eq!(got, expect, "label {label}");
    }
}

const RFC_7714_RTP: &str = "8040f17b 8041f8d3 5501a0b2 47616c6c 69612065 7374206f 6d6e6973 20646976 69736120 696e2070 \
    61727465 73207472 6573";

fn rfc_7714_cipher(profile: Profile) -> Cipher {
    let key: Vec<u8> = (0..profile.key_len() as u8).collect();
    let mut salt = [0; 14];
    salt[..12].copy_from_slice(&hex("51756964 2070726f 2071756f"));
    Cipher::from_session_keys(profile, &key, &[], &salt).unwrap()
}

fn sealer_of(cipher: impl Fn() -> Cipher) -> Sealer {
    Sealer { rtp: cipher(), control: ControlSealer { rtcp: cipher(), rtcp_index: 0 } }
}

#[test]
fn gcm_packets_are_those_of_rfc_7714_16() {
    for (profile, expect) in [
        (
            Profile::AeadAes128Gcm,
            "8040f17b 8041f8d3 5501a0b2 f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b \
             36de3adf 8833899d 7f27beb1 6a9152cf 765ee439 0cce",
        ),
        (
            Profile::AeadAes256Gcm,
            "8040f17b 8041f8d3 5501a0b2 32b1de78 a822fe12 ef9f78fa 332e33aa b1801238 9a58e2f3 b50b2a02 76ffae0f \
             1ba63799 b87b7aa3 db36dfff d6b0f9bb 7878d7a7 6c13",
        ),
    ] {
        let plain = hex(RFC_7714_RTP);
        let mut buffer = [plain.clone(), vec![0; RTP_GROWTH_MAX]].concat();
        let sealer = sealer_of(|| rfc_7714_cipher(profile));
        let sealed = sealer.seal_rtp(&mut buffer, plain.len(), 12, 0x5501_a0b2, 0xf17b).unwrap();
        assert_eq!(buffer[..sealed], hex(expect), "{profile:?}");
        let opener = Opener { rtp: rfc_7714_cipher(profile), rtcp: rfc_7714_cipher(profile) };
        let payload = opener.open_rtp(&mut buffer[..sealed], 12, 0x5501_a0b2, 0xf17b).unwrap();
        assert_eq!(buffer[payload], plain[12..]);
    }
}

#[test]
fn gcm_control_packet_is_that_of_rfc_7714_17() {
    let plain = hex(
        "81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61 deadbeef deadbeef deadbeef \
         deadbeef deadbeef",
    );
    let expect = hex(
        "81c8000d 4d617273 63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d c676a5f1 730d6fda 4ce09b46 \
         86303ded 0bb9275b c84aa458 96cf4d2f c5abf872 45d9eade 800005d4",
    );
    let mut sealer = sealer_of(|| rfc_7714_cipher(Profile::AeadAes128Gcm));
    sealer.control.rtcp_index = 0x5d3;
    let mut packet = plain.clone();
    sealer.seal_rtcp(&mut packet).unwrap();
    assert_eq!(packet, expect);
    let cipher = || rfc_7714_cipher(Profile::AeadAes128Gcm);
    let len = Opener { rtp: cipher(), rtcp: cipher() }.open_rtcp(&mut packet).unwrap();
    assert_eq!(packet[..len], plain);
}

/// The keys of both ends of a session of `profile`.
fn ends(profile: Profile) -> (SessionKeys, SessionKeys) {
    let material: Vec<u8> =
        (0..profile.keying_material_len() as u8).map(|b| b.wrapping_mul(37)).collect();
    (
        SessionKeys::new(profile, &material, true).unwrap(),
        SessionKeys::new(profile, &material, false).unwrap(),
    )
}

fn rtp_packet(sequence: u16, payload: usize) -> Vec<u8> {
    let mut packet = vec![0x80, 96, (sequence >> 8) as u8, sequence as u8, 0, 0, 0, 1, 0, 0, 0, 7];
    packet.extend((0..payload).map(|i| i as u8));
    packet
}

#[test]
fn what_one_end_seals_only_the_other_opens() {
    for profile in Profile::ALL {
        let (client, server) = ends(profile);
        let (mut sealer, opener) = (server.sealer().unwrap(), client.opener().unwrap());
        for (payload, index) in [(0, 0), (1, 65_535), (1_000, 65_536), (1_200, (1 << 40) + 5)] {
            let plain = rtp_packet(index as u16, payload);
            let mut buffer = [plain.clone(), vec![0; RTP_GROWTH_MAX]].concat();
            let sealed = sealer.seal_rtp(&mut buffer, plain.len(), 12, 7, index).unwrap();
            assert_eq!(sealed, plain.len() + profile.rtp_growth());
            let wire = buffer[..sealed].to_vec();

            let mut copy = wire.clone();
            let range = opener.open_rtp(&mut copy, 12, 7, index).unwrap();
            assert_eq!(copy[range], plain[12..]);

            let wrong_key = server.opener().unwrap().open_rtp(&mut wire.clone(), 12, 7, index);
            let wrong_rollover = opener.open_rtp(&mut wire.clone(), 12, 7, index + 65_536);
            let mut bent = wire.clone();
            *bent.last_mut().unwrap() ^= 1;
            let wrong_tag = opener.open_rtp(&mut bent, 12, 7, index);
            for refused in [wrong_key, wrong_rollover, wrong_tag] {
                assert_eq!(refused, Err(SrtpError::Authentication), "{profile:?}");
            }
        }
        for length in [8_usize, 32, 100] {
            let plain: Vec<u8> = (0..length as u8).collect();
            let mut packet = plain.clone();
            sealer.seal_rtcp(&mut packet).unwrap();
            assert!(packet.len() <= length + RTCP_GROWTH_MAX);
            let mut bent = packet.clone();
            bent[4] ^= 1;
            assert_eq!(opener.open_rtcp(&mut bent), Err(SrtpError::Authentication));
            let len = opener.open_rtcp(&mut packet).unwrap();
            assert_eq!(packet[..len], plain, "{profile:?}");
        }
    }
}

#[test]
fn every_length_and_bend_is_refused_without_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for profile in Profile::ALL {
        let opener = ends(profile).0.opener().unwrap();
        for len in 0..80 {
            let bytes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            assert!(opener.open_rtcp(&mut bytes.clone()).is_err());
            for header_len in [0, 12, 40, 79] {
                assert!(opener.open_rtp(&mut bytes.clone(), header_len, 1, 1).is_err());
            }
        }
    }
    assert!(matches!(
        SessionKeys::new(Profile::AeadAes256Gcm, &[0; 87], true),
        Err(SrtpError::KeyLength { .. })
    ));
    let sealer = ends(Profile::AeadAes128Gcm).0.sealer().unwrap();
    assert!(sealer.seal_rtp(&mut [0; 20], 12, 12, 1, 1).is_err(), "no room for the tag");
    assert!(sealer.seal_rtp(&mut [0; 60], 8, 12, 1, 1).is_err(), "header beyond the packet");
}

#[test]
fn index_follows_the_sequence_over_wraps_and_reordering() {
    let mut estimator = IndexEstimator::default();
    for (sequence, expect) in [
        (65_534_u16, 65_534_u64),
        (65_535, 65_535),
        (0, 65_536),
        (65_533, 65_533), // late, from before the wrap
        (2, 65_538),
        (40_000, 40_000), // more than half a cycle ahead is late
        (30_000, 65_536 + 30_000),
        (60_000, 65_536 + 60_000),
        (10, 131_082),
    ] {
        let index = estimator.estimate(sequence);
        assert_eq!(index, expect, "sequence {sequence}");
        estimator.accept(index);
    }
    let mut first_cycle = IndexEstimator::default();
    first_cycle.accept(5);
    assert_eq!(first_cycle.estimate(65_000), 65_000, "nothing lies before the first cycle");
}

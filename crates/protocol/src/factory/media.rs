//! The media that a participant sends, by its role.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use throng_media::card::{self, Rung};
use throng_media::source::Clip;
use throng_observation::{Codec, Layer, MediaKind};
use throng_scenario::{MediaFile, PublishConfig, Role};

use crate::published::PublishedMedia;
use crate::signalling::livekit;
use crate::webrtc::Outgoing;
use crate::webrtc::sender::Ladder;
use crate::webrtc::session::MediaToSend;

/// The streams that a participant of that role sends. Each starts at another position in the loop,
/// so that key frames of different participants do not coincide.
pub(super) fn outgoing(
    role: &Role,
    number: u32,
    clips: &BTreeMap<MediaFile, Arc<Clip>>,
) -> Vec<Outgoing> {
    let Some(publish) = &role.publish else { return Vec::new() };
    let sound = match &publish.audio_file {
        Some(file) => clips.get(file).cloned(),
        None if publish.audio => card::speech().ok(),
        None => None,
    };
    let offset = Duration::from_millis(u64::from(number % 30) * 100);
    let sound = sound.map(|clip| Outgoing {
        media: MediaToSend { kind: clip.kind(), rids: Vec::new() },
        ladders: vec![clip.into()],
        offset,
        adapts: publish.adapts,
    });
    // Each layer of a simulcast is a stream of its own; a single encoding has no RID. The largest
    // comes first, as the most preferred (RFC 8853 section 5.2): Janus identifies layers by this
    // order, LiveKit by their RIDs.
    let layers: Vec<_> = if publish.simulcast.is_empty() {
        picture(publish, clips).map(|ladder| (None, ladder)).into_iter().collect()
    } else {
        let of_card =
            |(layer, rung)| Some((layer, card::picture(rung, publish.codec).ok()?.into()));
        sizes(publish).into_iter().rev().filter_map(of_card).collect()
    };
    let rids =
        layers.iter().filter_map(|(layer, _)| Some(rid(*layer.as_ref()?).to_owned())).collect();
    let pictures = (!layers.is_empty()).then(|| Outgoing {
        media: MediaToSend { kind: MediaKind::Video, rids },
        ladders: layers.into_iter().map(|(_, ladder)| ladder).collect(),
        offset,
        adapts: publish.adapts,
    });
    [sound, pictures].into_iter().flatten().collect()
}

/// The tracks of a publisher by RTSP, video first, as servers expect them: one encoding each,
/// because nothing asks for another.
pub(super) fn published(
    role: &Role,
    number: u32,
    clips: &BTreeMap<MediaFile, Arc<Clip>>,
) -> Vec<PublishedMedia> {
    let mut tracks = outgoing(role, number, clips);
    tracks.sort_by_key(|track| track.media.kind != MediaKind::Video);
    let media = tracks.iter().filter_map(|track| {
        let clip = Arc::clone(track.ladders.first()?.top());
        Some(PublishedMedia { clip, offset: track.offset })
    });
    media.collect()
}

/// The tracks of a publisher by RTMP or SRT, video first: H.264 and AAC, whatever WebRTC would
/// send.
pub(super) fn fed(
    role: &Role,
    number: u32,
    clips: &BTreeMap<MediaFile, Arc<Clip>>,
) -> Vec<PublishedMedia> {
    let Some(publish) = &role.publish else { return Vec::new() };
    let of_file = |file: &MediaFile| clips.get(file).cloned();
    let card = |name: &String| card::picture(Rung::from_name(name)?, Codec::H264).ok();
    let picture =
        publish.video_file.as_ref().and_then(of_file).or(publish.video.as_ref().and_then(card));
    let sound = match &publish.audio_file {
        Some(file) => of_file(file),
        None if publish.audio => card::tone_aac().ok(),
        None => None,
    };
    let offset = Duration::from_millis(u64::from(number % 30) * 100);
    let tracks = [picture, sound].into_iter().flatten();
    tracks.map(|clip| PublishedMedia { clip, offset }).collect()
}

/// The encodings of one picture, the smallest first, with their layers.
fn sizes(publish: &PublishConfig) -> Vec<(Option<Layer>, Rung)> {
    let names: &[Layer] = match publish.simulcast.len() {
        0 => {
            return publish
                .video
                .as_deref()
                .and_then(Rung::from_name)
                .map(|rung| (None, rung))
                .into_iter()
                .collect();
        }
        2 => &[Layer::Low, Layer::Medium],
        _ => &[Layer::Low, Layer::Medium, Layer::High],
    };
    let rungs = publish.simulcast.iter().filter_map(|name| Rung::from_name(name));
    names.iter().copied().map(Some).zip(rungs).collect()
}

/// The RID of a layer in the description (RFC 8851): a quarter, a half and the full size, named as
/// in libwebrtc's clients, which servers expect.
fn rid(layer: Layer) -> &'static str {
    match layer {
        Layer::Off | Layer::Low => "q",
        Layer::Medium => "h",
        Layer::High => "f",
    }
}

/// The layers as signalled to LiveKit.
pub(crate) fn sent_layers(role: &Role) -> Vec<livekit::SentLayer> {
    let sizes = role.publish.as_ref().map(sizes).unwrap_or_default();
    let to_layer = |(layer, rung): (Option<Layer>, Rung)| livekit::SentLayer {
        rid: layer.map_or_else(String::new, |layer| rid(layer).to_owned()),
        layer: layer.unwrap_or(Layer::High),
        width: rung.width(),
        height: rung.height(),
        bitrate_bps: rung.bitrate_bps(),
    };
    sizes.into_iter().map(to_layer).collect()
}

/// The video that is sent: a file, which has one rate, or the test card.
pub(super) fn picture(
    publish: &PublishConfig,
    clips: &BTreeMap<MediaFile, Arc<Clip>>,
) -> Option<Ladder> {
    match &publish.video_file {
        Some(file) => clips.get(file).cloned().map(Ladder::from),
        None => card_ladder(publish.video.as_deref().and_then(Rung::from_name)?, publish.codec),
    }
}

/// The test card at `rung`, and at the rungs below it for senders that adapt their rate.
pub(super) fn card_ladder(rung: Rung, codec: Codec) -> Option<Ladder> {
    card::ladder(rung, codec).ok().and_then(Ladder::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_card_has_the_rungs_below_it_and_a_simulcast_and_a_file_have_none() {
        let sizes = |publish: PublishConfig,
                     clips: &BTreeMap<MediaFile, Arc<Clip>>|
         -> Vec<Vec<u64>> {
            let role = Role { publish: Some(publish), ..Role::default() };
            let pictures =
                outgoing(&role, 0, clips).into_iter().filter(|o| o.media.kind == MediaKind::Video);
            let kbps = |clip: &Arc<Clip>| clip.bitrate_bps() as u64 / 1_000;
            pictures
                .flat_map(|out| out.ladders)
                .map(|ladder| ladder.down().map(kbps).collect())
                .collect()
        };
        let usual = Role::default().publish.unwrap();
        let clips = BTreeMap::new();
        for codec in [Codec::Vp8, Codec::H264] {
            let card = |rung| card::picture(rung, codec).unwrap();
            let kbps = |rung| card(rung).bitrate_bps() as u64 / 1_000;
            let all = [Rung::P360, Rung::P240, Rung::P180, Rung::P144].map(kbps).to_vec();
            let publish = PublishConfig { video: Some("360p".into()), codec, ..usual.clone() };
            assert_eq!(sizes(publish.clone(), &clips), [all]);
            let simulcast = ["144p", "360p"].map(String::from).to_vec();
            let each = [vec![kbps(Rung::P360)], vec![kbps(Rung::P144)]];
            assert_eq!(
                sizes(PublishConfig { video: None, simulcast, ..publish.clone() }, &clips),
                each
            );
            let file = MediaFile { path: "x.ivf".into(), codec: None, fps_milli: None, ssrc: None };
            let read = BTreeMap::from([(file.clone(), card(Rung::P240))]);
            let of_file = PublishConfig { video: None, video_file: Some(file), ..publish };
            assert_eq!(sizes(of_file, &read), [[kbps(Rung::P240)]]);
        }
    }
}

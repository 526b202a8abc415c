//! Media files of a scenario: read once, packetised once, shared by all participants that send
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::anyhow;
use throng_media::source::{Clip, ClipError, Format, read};
use throng_observation::{Codec, MediaKind};
use throng_scenario::{Action, Carriage, MediaFile, Plan, PublishConfig, Role, Target};

use crate::console::CliError;

pub(crate) type Clips = BTreeMap<MediaFile, Arc<Clip>>;

/// Reads the files that the plan names. An error names the file, the problem, and the remedy.
pub(crate) fn clips(plan: &Plan) -> Result<Clips, CliError> {
    let mut clips = Clips::new();
    for ((cohort, role), destination) in
        plan.cohorts.iter().zip(&plan.roles).zip(&plan.destinations)
    {
        let Some(publish) = &role.publish else { continue };
        let files = [("video", &publish.video_file), ("audio", &publish.audio_file)];
        for (key, file) in files.into_iter().filter_map(|(key, file)| Some((key, file.as_ref()?))) {
            if !clips.contains_key(file) {
                let clip = clip(file).map_err(|why| {
                    CliError::usage(anyhow!(
                        "publish.{key} of {cohort} cannot be played: {}: {why}",
                        file.path
                    ))
                })?;
                clips.insert(file.clone(), Arc::new(clip));
            }
            let kind = clips.get(file).map(|clip| clip.kind());
            let expected = if key == "video" { MediaKind::Video } else { MediaKind::Audio };
            if let Some(kind) = kind.filter(|kind| *kind != expected) {
                let why = format!("it holds {}; name it as `{}`", kind.key(), kind.key());
                return Err(CliError::usage(anyhow!(
                    "publish.{key} of {cohort} cannot be played: {}: {why}",
                    file.path
                )));
            }
        }
        screens(cohort, role, &clips)?;
        silence(cohort, role, plan, &clips)?;
        ingest(cohort, role, &destination.target, &clips)?;
    }
    Ok(clips)
}

/// SHA-256 of the files that the plan names, by path; a file that became unreadable is left out.
pub(crate) fn hashes(plan: &Plan) -> BTreeMap<String, String> {
    files(plan)
        .filter_map(|path| Some((path.clone(), MediaFile::digest(&std::fs::read(path).ok()?))))
        .collect()
}

/// The paths of all files that the plan names: media that is published, recordings of pages.
pub(crate) fn files(plan: &Plan) -> impl Iterator<Item = &String> {
    let publishers = plan.roles.iter().filter_map(|role| role.publish.as_ref());
    let media = publishers.flat_map(PublishConfig::files).map(|file| &file.path);
    media.chain(
        plan.roles
            .iter()
            .filter_map(|role| role.player.recorded_page.as_ref())
            .map(|page| &page.har),
    )
}

fn clip(file: &MediaFile) -> Result<Clip, String> {
    let bytes = std::fs::read(&file.path).map_err(|error| {
        format!("{error}; paths are relative to the folder in which throng is started")
    })?;
    let format = Format {
        codec: file.codec.map(throng_scenario::MediaCodec::codec),
        fps: file.fps_milli.map(|milli| f64::from(milli) / 1e3),
        ssrc: file.ssrc,
    };
    read(&bytes, &format).map_err(|error| {
        let help = match &error {
            ClipError::Damaged(_) => "; create the file again",
            ClipError::Codec { .. } => "; name another codec, or transcode it to H.264 or VP8",
            ClipError::Empty => "; record for longer",
            ClipError::Unknown
            | ClipError::NoKeyFrame
            | ClipError::TooLong
            | ClipError::Stream(_) => "",
        };
        format!("{error}{help}")
    })
}

/// A shared screen is a test card of the same codec as the usual video.
fn screens(cohort: &str, role: &Role, clips: &Clips) -> Result<(), CliError> {
    let file = role.publish.as_ref().and_then(|publish| publish.video_file.as_ref());
    let codec = file.and_then(|file| clips.get(file)).map(|clip| clip.codec());
    let has_screen = role.script.iter().any(|cue| matches!(cue.action, Action::ScreenShare(_)));
    match codec.filter(|codec| {
        has_screen && throng_media::card::picture(throng_media::card::Rung::P144, *codec).is_err()
    }) {
        Some(codec) => Err(CliError::usage(anyhow!(
            "script of {cohort} shares a screen, which comes in VP8 and H.264, but the picture is \
             {}: transcode the file",
            codec.name()
        ))),
        None => Ok(()),
    }
}

/// Between its turns a participant sends Opus DTX (silence), for which other codecs have no packet.
fn silence(cohort: &str, role: &Role, plan: &Plan, clips: &Clips) -> Result<(), CliError> {
    let file = role.publish.as_ref().and_then(|publish| publish.audio_file.as_ref());
    let codec = file.and_then(|file| clips.get(file)).map(|clip| clip.codec());
    match codec.filter(|codec| plan.conversation.is_some() && *codec != Codec::Opus) {
        Some(codec) => Err(CliError::usage(anyhow!(
            "with [conversation], {cohort} is silent between its turns, which it can be in Opus \
             only, but its sound is {}: transcode the file, or take [conversation] away",
            codec.name()
        ))),
        None => Ok(()),
    }
}

/// RTMP and SRT carry H.264 and AAC; the others carry no AAC.
fn ingest(cohort: &str, role: &Role, target: &Target, clips: &Clips) -> Result<(), CliError> {
    let protocol = target.protocol();
    let files = role.publish.iter().flat_map(PublishConfig::files);
    for (file, codec) in files.filter_map(|file| Some((file, clips.get(file)?.codec()))) {
        let is_carried = matches!(codec, Codec::H264 | Codec::Aac);
        let carries = match protocol.carriage() == Carriage::Ingest {
            true if !is_carried => "H.264 and AAC",
            false if codec == Codec::Aac => "Opus, among others, and no AAC",
            _ => continue,
        };
        return Err(CliError::usage(anyhow!(
            "publish of {cohort} cannot be played: {}: {} carries {carries}, and this is {}: \
             transcode it",
            file.path,
            protocol.name(),
            codec.name()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_scenario::Scenario;

    /// A recording of Janus with a few packets of sound.
    fn recording(codec: &str) -> Vec<u8> {
        let header = format!("{{\"t\":\"a\",\"c\":\"{codec}\"}}");
        let mut file =
            [&b"MJR00002"[..], &(header.len() as u16).to_be_bytes(), header.as_bytes()].concat();
        for number in 0..3 {
            let packet = [0x80, 8, 0, number, 0, 0, number, 0, 0, 0, 0, 9, 0x78, 1, 2];
            file.extend(b"MEET\0\0\0\0\0\x0f");
            file.extend(packet);
        }
        file
    }

    #[test]
    fn turns_to_speak_are_sent_in_opus() {
        for (codec, talk, is_refused) in [
            ("pcma", "[conversation]\ntalkspurt = \"6s\"\n", true),
            ("pcma", "", false),
            ("opus", "[conversation]\ntalkspurt = \"6s\"\n", false),
        ] {
            let path =
                std::env::temp_dir().join(format!("throng-{}-{codec}.mjr", std::process::id()));
            std::fs::write(&path, recording(codec)).unwrap();
            let text = format!(
                "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1234\"\n{talk}[crowd]\nsize = 2\npublish = {{ audio = {path:?} }}\n"
            );
            let read = clips(&Scenario::parse(&text).unwrap().plan());
            std::fs::remove_file(&path).unwrap();
            let said = read.err().map(|stop| format!("{stop:?}"));
            assert_eq!(said.is_some(), is_refused, "{codec}: {said:?}");
            assert!(said.is_none_or(|said| said.contains("its sound is PCMA")));
        }
    }
}

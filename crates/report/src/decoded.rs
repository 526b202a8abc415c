//! Decoded tapped tracks, compared with the estimates of the meters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::run::{DecodedRow, RunData, TrackRow};
use throng_observation::units::duration_ms;
use throng_observation::{Distribution, OneWayDelay};

/// A tapped track: the figures of its decoder, and the estimates of the meters for the same track.
/// Absent figures are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decoded {
    /// The tapped participant, by the order of joins.
    pub participant: u32,
    /// Which of its tracks.
    pub track: u16,
    /// Its sender, in a conference.
    pub from: Option<String>,
    /// Its codec.
    pub codec: String,
    /// Width of the last picture, pixels.
    pub width: u32,
    /// Height of the last picture, pixels.
    pub height: u32,
    /// Coded frames given to the decoder.
    pub frames_fed: u64,
    /// Coded frames that the tap dropped because the decoder was too slow.
    pub frames_dropped: u64,
    /// Places where frames were incomplete, and decoding waited for the next key frame.
    pub breaks: u64,
    /// Decoded pictures.
    pub pictures: u64,
    /// Pictures a second, mean over its whole seconds.
    pub fps: Option<f64>,
    /// The same as the meters estimate it: decodable frames a second.
    pub fps_meter: Option<f64>,
    /// Pictures whose number on the test card could be read.
    pub numbers_read: u64,
    /// Of those, how many followed the one before.
    pub numbers_next: u64,
    /// Of those, how many showed the number before once more.
    pub numbers_repeated: u64,
    /// Numbers that were passed over.
    pub numbers_skipped: u64,
    /// Freezes between pictures.
    pub freezes: u64,
    /// Freezes as the meters count them.
    pub freezes_meter: u64,
    /// Time frozen, milliseconds.
    pub frozen_ms: f64,
    /// Time frozen as the meters see it, milliseconds.
    pub frozen_ms_meter: f64,
    /// From capture to picture, milliseconds, median.
    pub glass_delay_ms_p50: Option<f64>,
    /// The same, 95th percentile.
    pub glass_delay_ms_p95: Option<f64>,
    /// The meters' one-way delay of the same track, from capture to the last packet, milliseconds,
    /// median.
    pub one_way_delay_ms_p50_meter: Option<f64>,
    /// Source of the capture times.
    pub capture_basis: Option<String>,
    /// From the last packet of a frame to its picture, milliseconds, 95th percentile.
    pub decode_delay_ms_p95: Option<f64>,
    /// Structural similarity with the source's pictures, mean; 1 is equal.
    pub ssim_mean: Option<f64>,
    /// The least similar picture.
    pub ssim_min: Option<f64>,
}

/// Every tapped track, in order.
pub(crate) fn summarise(run: &RunData) -> Vec<Decoded> {
    let mut tracks: BTreeMap<_, Vec<&DecodedRow>> = BTreeMap::new();
    for row in &run.decoded {
        tracks.entry((row.participant, row.track)).or_default().push(row);
    }
    tracks
        .into_iter()
        .filter_map(|((participant, track), rows)| {
            let metered =
                run.tracks.iter().find(|row| row.participant == participant && row.track == track);
            of_track(&rows, metered)
        })
        .collect()
}

fn of_track(rows: &[&DecodedRow], metered: Option<&TrackRow>) -> Option<Decoded> {
    let (first, last) = (rows.first()?, rows.last()?);
    let sum = |of: fn(&DecodedRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    let (mut decode_delay_us, mut glass_delay) = (Distribution::new(), OneWayDelay::default());
    for row in rows {
        decode_delay_us.merge(&row.decode_delay_us);
        glass_delay.merge(&row.glass_delay);
    }
    let compared = sum(|row| row.ssim_pictures);
    let alike: f64 =
        rows.iter().filter_map(|row| Some(row.ssim_mean? * row.ssim_pictures as f64)).sum();
    Some(Decoded {
        participant: first.participant.0,
        track: first.track.0,
        from: metered.and_then(|track| track.from.clone()),
        codec: last.codec.name().into(),
        width: last.width,
        height: last.height,
        frames_fed: sum(|row| row.frames_fed),
        frames_dropped: sum(|row| row.frames_dropped),
        breaks: sum(|row| row.breaks),
        pictures: sum(|row| row.pictures),
        fps: fps(rows),
        fps_meter: metered.and_then(|track| track.fps),
        numbers_read: sum(|row| row.numbers_read),
        numbers_next: sum(|row| row.numbers_next),
        numbers_repeated: sum(|row| row.numbers_repeated),
        numbers_skipped: sum(|row| row.numbers_skipped),
        freezes: sum(|row| row.freeze_count),
        freezes_meter: metered.map_or(0, |track| track.counters.freeze_count),
        frozen_ms: sum(|row| row.freeze_us) as f64 / 1e3,
        frozen_ms_meter: metered.map_or(0.0, |track| track.counters.freeze_us as f64 / 1e3),
        glass_delay_ms_p50: glass_delay.quantile_ms(0.5),
        glass_delay_ms_p95: glass_delay.quantile_ms(0.95),
        one_way_delay_ms_p50_meter: metered.and_then(|track| track.absolute_delay.quantile_ms(0.5)),
        capture_basis: glass_delay.basis().map(|basis| basis.key().to_owned()),
        decode_delay_ms_p95: decode_delay_us.quantile_in(0.95, 1e3),
        ssim_mean: (compared > 0).then(|| alike / compared as f64),
        ssim_min: rows.iter().filter_map(|row| row.ssim_min).reduce(f64::min),
    })
}

/// A decoder takes so many seconds to start and to catch up on a machine that is busy.
const CATCHES_UP_S: i64 = 5;
/// A rate is not told from fewer seconds.
const MEASURED_S_MIN: i64 = 2;

/// The first and the last second of a track are not whole. At its start the decoder catches up: in
/// the second one, and up to the last that has a quarter more pictures than the median second, and
/// before it one that had less than half.
fn fps(rows: &[&DecodedRow]) -> Option<f64> {
    let (first, last) = (rows.first()?.second, rows.last()?.second);
    let whole = || rows.iter().filter(|row| (first + 1..last).contains(&row.second));
    let mut usual: Vec<u64> = whole().map(|row| row.pictures).collect();
    usual.sort_unstable();
    let usual = usual.get(usual.len() / 2).copied()?;
    let is_behind = |row: &DecodedRow| row.pictures.saturating_mul(2) < usual;
    let catches_up = whole().filter(|row| {
        row.second <= first + CATCHES_UP_S
            && row.pictures.saturating_mul(4) > usual.saturating_mul(5)
            && rows.iter().any(|before| before.second < row.second && is_behind(before))
    });
    let from = catches_up.map(|row| row.second).fold(first + 1, i64::max) + 1;
    let pictures: u64 = whole().filter(|row| row.second >= from).map(|row| row.pictures).sum();
    (last - from >= MEASURED_S_MIN).then(|| pictures as f64 / (last - from) as f64)
}

/// The lines of the terminal's summary.
pub(crate) fn lines(decoded: &[Decoded]) -> Vec<String> {
    const SHOWN_MAX: usize = 4;
    let mut lines: Vec<String> = decoded.iter().take(SHOWN_MAX).map(line).collect();
    if decoded.len() > SHOWN_MAX {
        lines.push(format!("and {} more tracks: see the report", decoded.len() - SHOWN_MAX));
    }
    lines
}

fn line(track: &Decoded) -> String {
    let mut line = format!("viewer {}", track.participant);
    if let Some(from) = &track.from {
        let _ = write!(line, " from {from}");
    }
    let _ = write!(line, ": {} {}x{}", track.codec, track.width, track.height);
    if let Some(fps) = track.fps {
        let meter =
            track.fps_meter.map_or_else(String::new, |meter| format!(" (meter {meter:.1})"));
        let _ = write!(line, ", {fps:.1} fps decoded{meter}");
    }
    let _ = write!(line, ", {} freezes (meter {})", track.freezes, track.freezes_meter);
    if let Some(delay) = track.glass_delay_ms_p50 {
        let _ = write!(line, ", capture to picture p50 {}", duration_ms(delay));
    }
    if track.numbers_read > 0 {
        let _ = write!(
            line,
            ", test card: {} in order, {} skipped",
            track.numbers_next, track.numbers_skipped
        );
    }
    if let Some(ssim) = track.ssim_mean {
        let _ = write!(line, ", SSIM {ssim:.4}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, summarise, text};
    use std::time::Duration;
    use throng_observation::run::ParticipantId;
    use throng_observation::{CaptureBasis, Codec, TrackId};

    /// Ten seconds of participant 0's video at 30 fps; the decoder starts late and freezes once.
    fn tapped() -> RunData {
        let mut run = example::healthy(5, 10);
        let track =
            run.tracks.iter().find(|track| track.codec != Codec::Opus).map(|track| track.track);
        run.decoded = (0..10)
            .map(|second| {
                let pictures = match second {
                    0 => 8,
                    1 => 52,
                    9 => 4,
                    _ => 30,
                };
                let mut glass_delay = OneWayDelay::default();
                (0..pictures).for_each(|_| glass_delay.record(CaptureBasis::Mark, 42_000));
                DecodedRow {
                    second,
                    participant: ParticipantId(0),
                    track: track.unwrap_or(TrackId(0)),
                    codec: Codec::Vp8,
                    width: 426,
                    height: 240,
                    frames_fed: 30,
                    frames_dropped: 0,
                    breaks: 0,
                    pictures,
                    numbers_read: pictures,
                    numbers_next: pictures,
                    numbers_repeated: 0,
                    numbers_skipped: 0,
                    freeze_count: u64::from(second == 5),
                    freeze_us: if second == 5 { 400_000 } else { 0 },
                    decode_delay_us: Distribution::new(),
                    glass_delay,
                    ssim_mean: Some(0.99),
                    ssim_min: Some(if second == 5 { 0.7 } else { 0.98 }),
                    ssim_pictures: pictures,
                }
            })
            .collect();
        run
    }

    #[test]
    fn what_a_decoder_catches_up_with_is_not_its_frame_rate() {
        // On a machine that is busy it starts late; a fast second later on is one of the stream's.
        for (pictures, fps) in [
            ([0, 0, 95, 30, 30, 30, 30, 30, 30, 2], 30.0),
            ([8, 52, 30, 60, 30, 30, 30, 30, 30, 2], 30.0),
            ([30, 30, 30, 30, 30, 30, 30, 70, 30, 30], 250.0 / 7.0),
            // A stream that gets worse has its good seconds too.
            ([20, 30, 30, 30, 0, 0, 0, 0, 0, 0], 60.0 / 7.0),
        ] {
            let mut run = tapped();
            for (row, pictures) in run.decoded.iter_mut().zip(pictures) {
                row.pictures = pictures;
            }
            assert_eq!(
                super::fps(&run.decoded.iter().collect::<Vec<_>>()),
                Some(fps),
                "{pictures:?}"
            );
        }
    }

    #[test]
    fn decoded_figures_are_next_to_estimates() {
        let run = tapped();
        let summary = summarise(&run, &[], Duration::ZERO);
        let [track] = summary.decoded.as_slice() else { panic!("{:?}", summary.decoded) };
        assert_eq!((track.fps, track.pictures, track.freezes), (Some(30.0), 274, 1));
        assert!(track.fps_meter.is_some(), "the meters saw the same track");
        assert!((track.glass_delay_ms_p50.unwrap() - 42.0).abs() < 0.5);
        assert_eq!((track.ssim_min, track.frozen_ms), (Some(0.7), 400.0));
        assert!((track.ssim_mean.unwrap() - 0.99).abs() < 1e-9);
        let words = text::summary(&summary);
        assert!(words.contains("viewer 0: VP8 426x240, 30.0 fps decoded (meter"), "{words}");
        let page = crate::html::render(&run, &summary);
        assert!(page.contains(">Decoded</a></h2>") && page.contains("426 × 240"));
        let none = summarise(&example::healthy(5, 10), &[], Duration::ZERO);
        assert!(
            none.decoded.is_empty()
                && !crate::html::render(&run, &none).contains(">Decoded</a></h2>")
        );
    }
}

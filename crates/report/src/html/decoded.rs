//! The page's table of tapped tracks: decoded figures next to the estimates of the meters.

use throng_observation::units::duration_ms;

use super::markup::{known, table};
use crate::summary::Summary;

pub(crate) fn render(summary: &Summary) -> String {
    if summary.decoded.is_empty() {
        return String::new();
    }
    let ms = |value| known(value, duration_ms);
    let number = |value, digits: usize| known(value, |v: f64| format!("{v:.digits$}"));
    let rows: Vec<_> = summary
        .decoded
        .iter()
        .map(|track| {
            let from = track.from.as_ref().map_or_else(String::new, |from| format!(" from {from}"));
            vec![
                format!("viewer {}{from}", track.participant),
                format!("{} {} × {}", track.codec, track.width, track.height),
                format!("{} / {}", number(track.fps, 1), number(track.fps_meter, 1)),
                format!("{} / {}", track.freezes, track.freezes_meter),
                format!(
                    "{} / {}",
                    duration_ms(track.frozen_ms),
                    duration_ms(track.frozen_ms_meter)
                ),
                format!(
                    "{} / {}",
                    ms(track.glass_delay_ms_p50),
                    ms(track.one_way_delay_ms_p50_meter)
                ),
                ms(track.decode_delay_ms_p95),
                format!(
                    "{} / {} / {}",
                    track.numbers_next, track.numbers_repeated, track.numbers_skipped
                ),
                format!("{} / {}", number(track.ssim_mean, 4), number(track.ssim_min, 4)),
                format!("{} / {} / {}", track.pictures, track.breaks, track.frames_dropped),
            ]
        })
        .collect();
    let heads = [
        "track",
        "picture",
        "fps: decoded / meter",
        "freezes: decoded / meter",
        "frozen: decoded / meter",
        "p50 from capture: to picture / to last packet (meter)",
        "last packet to picture p95",
        "test card: in order / repeated / skipped",
        "SSIM mean / least",
        "pictures / breaks / dropped by the tap",
    ];
    format!(
        "<h2>Decoded</h2><p>These participants' frames were decoded by another process. Decoded \
         figures are next to what the meters estimate from headers and timing.</p>{}",
        table(&heads, &rows)
    )
}

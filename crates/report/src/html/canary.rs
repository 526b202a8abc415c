//! The page's table of browsers, compared with the virtual participants.

use std::fmt::Write as _;

use throng_observation::units::duration_ms;

use super::markup::{escape, known, table};
use crate::canary::CanarySummary;
use crate::summary::Summary;

pub(crate) fn render(summary: &Summary) -> String {
    let Some(canary) = &summary.canary else { return String::new() };
    let rows: Vec<_> = canary
        .agreement
        .iter()
        .map(|row| {
            let figures = [row.browser, row.virtual_, row.difference, row.bound]
                .map(|value| row.shown(value));
            let verdict = match (row.disputed, row.bound) {
                (true, _) => "disputed",
                (false, Some(_)) => "agrees",
                (false, None) => "not judged",
            };
            [vec![row.name().to_owned()], figures.into(), vec![verdict.into()]].concat()
        })
        .collect();
    let ms = |value| known(value, duration_ms);
    let browsers: Vec<_> = canary
        .browsers
        .iter()
        .map(|one| {
            vec![
                one.browser.to_string(),
                one.version.clone(),
                ms(one.connect_ms),
                ms(one.first_frame_ms),
                one.candidates_refused.to_string(),
                one.failure.clone().unwrap_or_default(),
            ]
        })
        .collect();
    format!(
        "<h2>Browsers compared with the crowd</h2><p>{}</p>{}{}",
        sentence(canary),
        table(
            &["figure", "browsers", "virtual participants", "difference", "noise explains", ""],
            &rows
        ),
        table(
            &["browser", "version", "connect", "first frame", "candidates refused", "failed"],
            &browsers
        ),
    )
}

fn sentence(canary: &CanarySummary) -> String {
    let mut text = format!(
        "{} of {} browsers showed video. Media figures are those of the same {} s on both sides, \
         by the same definitions; a packet is lost as browsers count it: a repeat on an RTX \
         stream takes nothing back, one on the stream's own SSRC does.",
        canary.playing,
        canary.browsers.len(),
        canary.seconds
    );
    let _ = write!(text, " Agreement: {}.", escape(&canary.verdict()));
    if let Some(cores) = canary.cpu_cores {
        text.push_str(&format!(" The browsers used {cores:.2} cores of the generator's machine."));
    }
    let ms = [
        ("A frame waited in their jitter buffers for", canary.jitter_buffer_ms),
        ("Decoding a frame took", canary.decode_ms),
    ];
    for (what, ms) in ms.into_iter().filter_map(|(what, ms)| Some((what, ms?))) {
        text.push_str(&format!(" {what} {} in the mean.", duration_ms(ms)));
    }
    text
}

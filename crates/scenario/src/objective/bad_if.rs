//! Bounds of one second of one participant, from the objectives: a search classifies bad seconds by
//! them.

use throng_observation::BadIf;

use super::{Metric, Objective, Threshold};

/// The strictest bounds that `objectives` set, and the defaults of all others. The statistic
/// (`p95`) is ignored: the search decides how many users and seconds may exceed a bound.
#[must_use]
pub fn bad_if(objectives: &[Objective]) -> BadIf {
    let mut bounds = BadIf::default();
    let named = |metrics: &[Metric]| {
        let of_it = objectives.iter().filter(|objective| metrics.contains(&objective.metric));
        of_it.map(|objective| objective.threshold).collect::<Vec<_>>()
    };
    let lowest = |metrics: &[Metric], default: f64| {
        named(metrics).into_iter().map(Threshold::value).reduce(f64::min).unwrap_or(default)
    };
    bounds.loss_ratio_max = lowest(&[Metric::VideoLoss, Metric::AudioLoss], bounds.loss_ratio_max);
    let of_delay = [Metric::VideoDelay, Metric::AudioDelay];
    bounds.delay_ms_max = lowest(&of_delay, bounds.delay_ms_max);
    bounds.recorded_delay_ms_max = lowest(&of_delay, bounds.recorded_delay_ms_max);
    bounds.jitter_ms_max =
        lowest(&[Metric::VideoJitter, Metric::AudioJitter], bounds.jitter_ms_max);
    bounds.join_ms_max = lowest(&[Metric::Connect, Metric::Startup], bounds.join_ms_max);
    bounds.chat_delay_ms_max = lowest(&[Metric::ChatDelivery], bounds.chat_delay_ms_max);
    let of_source =
        named(&[Metric::VideoFps]).into_iter().filter_map(|threshold| match threshold {
            Threshold::OfSource(ratio) => Some(ratio),
            _ => None,
        });
    bounds.fps_ratio_min = of_source.reduce(f64::max).unwrap_or(bounds.fps_ratio_min);
    let delivery = named(&[Metric::Delivery]).into_iter().map(Threshold::value);
    bounds.delivery_ratio_min = delivery.reduce(f64::max).unwrap_or(bounds.delivery_ratio_min);
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_bound_the_second_and_silence_leaves_the_default() {
        let objectives: Vec<Objective> = [
            "video.loss p95 < 2%",
            "audio.loss < 3%",
            "fps min > 0.9 of source",
            "connect p99 < 5s",
            "chat.delivery p95 < 1s",
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
        let bounds = bad_if(&objectives);
        assert_eq!(
            (bounds.loss_ratio_max, bounds.fps_ratio_min, bounds.join_ms_max),
            (0.02, 0.9, 5_000.0)
        );
        assert_eq!(bounds.delay_ms_max, BadIf::default().delay_ms_max);
        assert_eq!(bounds.recorded_delay_ms_max, 1_000.0);
        let strict = bad_if(&["audio.delay p95 < 80ms".parse().unwrap()]);
        assert_eq!((strict.delay_ms_max, strict.recorded_delay_ms_max), (80.0, 80.0));
        assert_eq!(
            (bounds.chat_delay_ms_max, BadIf::default().chat_delay_ms_max),
            (1_000.0, 2_000.0)
        );
        assert_eq!(bounds.delivery_ratio_min, BadIf::default().delivery_ratio_min);
    }

    #[test]
    fn the_time_to_start_and_the_delivery_of_players_bound_the_second() {
        let texts = [
            "connect p99 < 5s",
            "startup p95 < 2s",
            "delivery > 0.9",
            "delivery min > 80%",
            "stalls p95 < 3",
        ];
        let objectives: Vec<Objective> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let bounds = bad_if(&objectives);
        assert_eq!((bounds.join_ms_max, bounds.delivery_ratio_min), (2_000.0, 0.9));
    }
}

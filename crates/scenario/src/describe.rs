//! The plan as text: the output of `throng check`.

use std::collections::HashSet;
use std::fmt::Write;

use crate::objective::Quantile;
use crate::plan::Plan;
use crate::run::Caps;
use crate::share::Share;
use crate::units::shown;

/// URLs that are shown of each cohort: enough to see the pattern.
const URLS_SHOWN_MAX: usize = 3;
/// Joins that are searched for different URLs.
const JOINS_LOOKED_AT_MAX: usize = 10_000;

impl Plan {
    /// Target, crowd, schedule, load, requirements and objectives, one line each; secrets redacted.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, f: &mut String) -> std::fmt::Result {
        let load = &self.expected;
        writeln!(f, "target      {} ({})", self.target.display(), self.target.protocol().name())?;
        for line in &self.arrivals {
            writeln!(f, "crowd       {line}")?;
        }
        for line in self.urls() {
            writeln!(f, "url         {line}")?;
        }
        if self.share != Share::ALL {
            writeln!(f, "share       {} of the crowd", self.share)?;
        }
        writeln!(f, "schedule    {}", self.schedule())?;
        let assumed =
            if load.assumed { " (bit rates assumed; set yours under [stream])" } else { "" };
        writeln!(
            f,
            "load        at most {} users at a time, {} joins within a second",
            load.users, load.joins_per_s
        )?;
        writeln!(
            f,
            "server      {} Mbit/s out, {} Mbit/s in{assumed}",
            mbit(load.server_out_mbit_per_s),
            mbit(load.server_in_mbit_per_s)
        )?;
        writeln!(
            f,
            "generator   {} open files, {} UDP ports",
            self.needs.file_descriptors, self.needs.ports
        )?;
        writeln!(f, "caps        {}", caps(&self.caps))?;
        for watch in &self.watch {
            writeln!(f, "watch       {}", watch.describe())?;
        }
        if let Some(canary) = &self.canary {
            let first = format!("the first at {}", shown(canary.at));
            let (count, every) = (canary.browsers, shown(canary.every));
            match count {
                1 => writeln!(f, "canary      1 browser, at {}", shown(canary.at))?,
                _ => writeln!(f, "canary      {count} browsers, {first}, then one every {every}")?,
            }
        }
        match self.objectives.as_slice() {
            [] => writeln!(f, "objectives  none: the run only measures"),
            objectives => objectives.iter().try_for_each(|objective| {
                let quantile = objective.statistic.quantile();
                let measured = quantile.and(objective.metric.entry().quantile);
                let over = measured.map_or("the whole run", Quantile::population);
                writeln!(f, "objective   {objective}  (over {over})")
            }),
        }
    }

    /// The first few URLs of each cohort whose URL has variables, and the number of further ones.
    fn urls(&self) -> Vec<String> {
        let cohorts = self.arrivals.len().max(1);
        let mut lines = Vec::new();
        for cohort in 0..cohorts {
            let mut of_cohort =
                self.joins.iter().filter(|join| usize::from(join.cohort.0) % cohorts == cohort);
            let mut seen = HashSet::new();
            let mut urls: Vec<String> = of_cohort
                .by_ref()
                .take(JOINS_LOOKED_AT_MAX)
                .filter_map(|join| {
                    self.destinations.get(usize::from(join.cohort.0))?.shown(join.place)
                })
                .filter(|url| seen.insert(url.clone()))
                .collect();
            let more = urls.len().saturating_sub(URLS_SHOWN_MAX);
            urls.truncate(URLS_SHOWN_MAX);
            if let Some(last) = urls.last_mut().filter(|_| more > 0) {
                let at_least = if of_cohort.next().is_some() { "at least " } else { "" };
                let _ = write!(last, " and {at_least}{more} more");
            }
            lines.extend(urls);
        }
        lines
    }

    fn schedule(&self) -> String {
        let mut text = match (self.joins.first(), self.joins.last()) {
            (Some(first), Some(last)) => {
                format!(
                    "{} joins from {} to {}, ",
                    self.joins.len(),
                    shown(first.at),
                    shown(last.at)
                )
            }
            _ => "no joins, ".into(),
        };
        let _ = write!(text, "ends after {}", shown(self.duration));
        if !self.warm_up.is_zero() {
            let _ = write!(text, ", media objectives from {}", shown(self.warm_up));
        }
        text
    }
}

fn caps(caps: &Caps) -> String {
    if *caps == Caps::NONE {
        return "none (loopback)".into();
    }
    let parts = [
        caps.users.map(|users| format!("{users} users")),
        caps.joins_per_s.map(|rate| format!("{rate} joins/s")),
        caps.mbit_per_s.map(|rate| format!("{rate} Mbit/s")),
        caps.duration.map(shown),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn mbit(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.2}") } else { format!("{rate:.0}") }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    #[test]
    fn the_plan_is_described_line_by_line() {
        let scenario = Scenario::parse(
            "objectives = [\"video.loss p95 < 1%\", \"failed < 1%\"]\n[target]\nurl = \"janus+ws://127.0.0.1:8188/streaming/1?pin=hunter2\"\n\
             [crowd]\nsize = 100\nstay = \"20s\"\n[run]\nduration = \"1m\"\nwarm_up = \"5s\"\n[stream]\nvideo = \"1Mbit/s\"\naudio = \"48kbit/s\"\n",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let plan = scenario.plan();
        assert_eq!(
            plan.describe(),
            "target      janus+ws://127.0.0.1:8188/streaming/1?pin=… (Janus Streaming)\n\
             crowd       100 viewers, one every 100 ms with jitter (seed 1), stay 20.00 s\n\
             schedule    100 joins from 0 s to 10.00 s, ends after 1 min 00 s, media objectives from 5.00 s\n\
             load        at most 100 users at a time, 10 joins within a second\n\
             server      111 Mbit/s out, 0.85 Mbit/s in\n\
             generator   264 open files, 100 UDP ports\n\
             caps        none (loopback)\n\
             objective   video.loss p95 < 1%  (over user-seconds)\n\
             objective   failed < 1%  (over the whole run)\n"
        );
    }
}

//! What the flags of `throng watch` mean.

use std::sync::Arc;
use std::time::Duration;

use throng_scenario::{AddressPolicy, units};
use throng_watch::remote::Consent;
use throng_watch::{SourceConfig, Target, WatchConfig};

use crate::args::{Watch, duration, networks, with_unit};
use crate::console::CliError;

impl Watch {
    /// What is watched.
    pub(crate) fn config(&self) -> Result<WatchConfig, CliError> {
        let period = duration("--every", &self.every)?;
        Ok(WatchConfig {
            targets: self.targets()?,
            period,
            is_exclusive: true,
            ..WatchConfig::default()
        })
    }

    /// The logs and endpoints that are read in addition to the counters.
    pub(crate) fn sources(&self) -> Result<SourceConfig, CliError> {
        let networks = networks(&self.allow_target)?;
        let own = throng_engine::preflight::own_addresses();
        let reach = AddressPolicy::new(own, networks).with_this_host();
        let sources = SourceConfig {
            logs: self.log.clone(),
            access_logs: self.access_log.clone(),
            metrics: self.metrics.clone(),
            packs: crate::watchers::packs(self.packs.as_deref())?,
            pack: self.pack.clone(),
            allowed: Arc::new(move |address| {
                reach.permits_address(address).map(drop).map_err(|refusal| refusal.to_string())
            }),
        };
        sources.check().map_err(CliError::usage)?;
        Ok(sources)
    }

    pub(crate) fn duration(&self) -> Result<Option<Duration>, CliError> {
        self.lasts.as_deref().map(|text| duration("--for", text)).transpose()
    }

    /// The targets in words.
    pub(crate) fn title(&self) -> String {
        let names: Vec<_> =
            self.targets().unwrap_or_default().iter().map(ToString::to_string).collect();
        if names.is_empty() { "this host".into() } else { names.join(", ") }
    }

    /// The load that the agent agrees to.
    pub(crate) fn consent(&self) -> Result<Option<Consent>, CliError> {
        if self.allow_load.is_empty() {
            return Ok(None);
        }
        let joins = self.max_joins.as_deref();
        let joins =
            joins.map(|text| with_unit("--max-joins", text, units::rate_per_s)).transpose()?;
        let bits = self.max_bit_rate.as_deref();
        let bits =
            bits.map(|text| with_unit("--max-bit-rate", text, units::bit_rate)).transpose()?;
        let lasts = self
            .max_duration
            .as_deref()
            .map(|text| duration("--max-duration", text))
            .transpose()?;
        Ok(Some(Consent {
            ports: self.allow_load.iter().map(ToString::to_string).collect(),
            users_max: self.max_users,
            joins_per_s_max: joins,
            mbit_per_s_max: bits.map(|bits| bits / 1e6),
            duration_s_max: lasts.map(|lasts| lasts.as_secs()),
        }))
    }

    /// The targets.
    pub(crate) fn targets(&self) -> Result<Vec<Target>, CliError> {
        let kinds = [
            ("process", &self.process),
            ("unit", &self.unit),
            ("cgroup", &self.cgroup),
            ("pid", &self.pid),
            ("port", &self.port),
        ];
        let mut targets = Vec::new();
        for (kind, texts) in kinds {
            for text in texts {
                targets.push(Target::parse(kind, text).map_err(CliError::usage)?);
            }
        }
        if !self.command.is_empty() {
            targets.push(Target::Command(self.command.clone()));
        }
        Ok(targets)
    }
}

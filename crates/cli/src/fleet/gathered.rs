//! A fleet that is ready: its workers have their shares, and have agreed to play them.

use std::time::Duration;

use anyhow::anyhow;
use throng_fleet::disciplined::ClockWord;
use throng_fleet::message::{Build, Order};
use throng_fleet::shares::Shares;
use throng_fleet::{Coordinator, GatherConfig, Member};
use throng_observation::fleet::{WorkerInfo, of_two_us};
use throng_observation::run::ClockError;
use throng_scenario::{Destination, Plan, Role, Scenario};

use super::clock_source::{self, ClockSource};
use super::ssh::Remote;
use super::{build, bus, bus_wait, error, may_be_plain, reached};
use crate::args::{Common, OnLoss, duration};
use crate::console::{CliError, Interrupt, say};
use crate::{media, run_id};

/// How long workers are waited for, unless the user says otherwise.
const WAIT: Duration = Duration::from_secs(30);

/// Workers that have a share each.
pub(crate) struct Gathered {
    pub(super) coordinator: Coordinator,
    pub(super) members: Vec<Member>,
    pub(super) shares: Shares,
    pub(super) on_loss: OnLoss,
    /// The run's name on the bus, and this program: what has to be known to collect it.
    pub(super) run: String,
    pub(super) build: Build,
    /// Workers of `--on`, which end with the run.
    pub(super) remote: Option<Remote>,
    /// What this host said of its clock when all were ready.
    word: Option<ClockWord>,
}

impl Gathered {
    /// Finds the workers that the flags ask for, and lets them prepare; `None` without `--fleet`
    /// and `--on`. In a search participants are added and removed.
    pub(crate) fn gather(
        scenario: &Scenario,
        plan: &Plan,
        common: &Common,
        is_search: bool,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, CliError> {
        let flags = &common.fleet;
        let clock_source = ClockSource::of(flags.clock_error.as_deref())?;
        let asked = if flags.on.is_empty() { flags.workers } else { Some(flags.on.len()) };
        if let Some(workers) = asked {
            check(plan, workers)?;
        }
        let on_loss = on_loss(plan, flags.on_loss.unwrap_or_default(), is_search)?;
        let mut remote = Remote::start(flags, common)?;
        let bus = match &remote {
            Some(remote) => Some(remote.bus().map_err(error)?),
            None => bus(&flags.bus)?,
        };
        let Some(bus) = bus else { return Ok(None) };
        let workers = remote.as_ref().map(Remote::count).or(flags.workers);
        let workers = workers.ok_or_else(|| CliError::usage("--fleet needs --workers N"))?;
        let wait =
            flags.fleet_wait.as_deref().map(|text| duration("--fleet-wait", text)).transpose()?;
        let wait = wait.unwrap_or(WAIT);
        let run = format!("{:016x}", run_id::random(u32::MAX - 1));
        let connect = || Coordinator::connect(&bus, &run, &may_be_plain(&plan.target.allow));
        let coordinator = reached(bus_wait(flags.fleet_wait.as_deref())?, interrupt, connect)?;
        let coordinator = coordinator.with_host_clock(clock_source.watch());
        say(&format!("waiting for {workers} workers on {}", coordinator.bus()));
        let overrides = scenario.source.overrides().iter();
        let config = GatherConfig {
            workers,
            wait,
            build: build::build()?,
            order: Order {
                run: run.clone(),
                worker: 0,
                weights: Vec::new(),
                scenario: scenario.source.expose().to_owned(),
                overrides: overrides
                    .map(|o| (o.path.clone(), o.value.clone(), o.is_text))
                    .collect(),
                seed: run_id::seed(),
                added_participants_max: is_search
                    .then(|| u32::try_from(plan.joins.len()).unwrap_or(u32::MAX)),
                reassigns: on_loss == OnLoss::Reassign,
            },
            plan_sha256: build::plan_sha256(scenario, plan),
            media_files: media::hashes(plan),
        };
        let gathered = coordinator.gather(&config, &|| interrupt.is_set());
        let members = match gathered {
            Ok(members) => members,
            Err(why) => {
                coordinator.forget();
                let more = remote.as_mut().map(Remote::problems).unwrap_or_default();
                let CliError { exit, error } = error(why);
                return Err(CliError { exit, error: anyhow!("{error}{more}") });
            }
        };
        let weights: Vec<u32> = members.iter().map(|member| member.weight).collect();
        let shares = Shares::of(&weights).map_err(CliError::usage)?;
        let (build, word) = (config.build, coordinator.word());
        let gathered = Self { coordinator, members, shares, on_loss, run, build, remote, word };
        gathered.introduce(plan, is_search);
        Ok(Some(gathered))
    }

    /// Says who plays how many.
    fn introduce(&self, plan: &Plan, is_search: bool) {
        let counts = self.shares.counts(u32::try_from(plan.joins.len()).unwrap_or(u32::MAX));
        for (member, count) in self.members.iter().zip(counts) {
            let clock = member.ready.clock;
            let within = clock.bound_us as f64 / 1e3;
            let share = if is_search {
                format!("weight {}", member.weight)
            } else {
                format!("{count} joins")
            };
            let basis = clock_source::basis(&clock, self.word);
            say(&format!(
                "worker {}: {share}, clock known to ±{within:.1} ms ({basis})",
                member.name
            ));
            for warning in &member.ready.warnings {
                say(&format!("warning: worker {}: {warning}", member.name));
            }
        }
    }

    /// Facts about the workers, for the run folder.
    pub(crate) fn workers(&self) -> Vec<WorkerInfo> {
        let info = |member: &Member| WorkerInfo {
            name: member.name.clone(),
            cores: member.cores,
            weight: member.weight,
            participants: member.ready.participants,
            clock_offset_us: member.ready.clock.offset_us,
            clock_bound_us: member.ready.clock.bound_us,
            clock_basis: clock_source::basis(&member.ready.clock, self.word),
            clock_end: None, // known at the end
            round_trip_us: member.ready.clock.round_trip_us,
            host: member.ready.host.clone(),
        };
        self.members.iter().map(info).collect()
    }

    /// The error of one-way delays: that of the target's clock, and those of two workers, of which
    /// one may have sent what the other receives.
    pub(crate) fn clock_error(&self, of_target: &ClockError) -> ClockError {
        let of_two = of_two_us(self.members.iter().map(|member| member.ready.clock.bound_us));
        let basis = format!(
            "{}; between two workers the errors of both clocks, ±{:.1} ms in all at the start",
            of_target.basis,
            of_two as f64 / 1e3
        );
        ClockError { bound_us: of_target.bound_us.map(|bound| bound.saturating_add(of_two)), basis }
    }
}

/// What happens when a worker is lost, as far as that is possible. A search whose crowd has become
/// another one answers nothing.
fn on_loss(plan: &Plan, asked: OnLoss, is_search: bool) -> Result<OnLoss, CliError> {
    // Who is added to a crowd does not know who follows it, and the last one to leave would end the
    // room.
    let ends_rooms = plan.room.is_some() && plan.joins.iter().any(|join| join.others_follow);
    match asked {
        _ if is_search => Ok(OnLoss::Abort),
        OnLoss::Reassign if ends_rooms => Err(CliError::usage(
            "--on-loss reassign: participants that leave rooms which the run makes, while others \
             still join them, are not reassigned; leave `stay` or [room] away, or use go-on",
        )),
        asked => Ok(asked),
    }
}

/// What a fleet cannot play.
pub(super) fn check(plan: &Plan, workers: usize) -> Result<(), CliError> {
    check_crowd(plan, plan.joins.len(), workers)
}

/// The same of a crowd with so many joins at most.
pub(crate) fn check_crowd(plan: &Plan, most: usize, workers: usize) -> Result<(), CliError> {
    if plan.tap.is_some() {
        return Err(CliError::usage(
            "--tap decodes what this process receives, and with --fleet it receives nothing",
        ));
    }
    let of_all = |(role, destination): (&Role, &Destination)| {
        role.player.peers.is_some() || role.is_in_chat(destination.target.protocol())
    };
    if workers > 1 && plan.roles.iter().zip(&plan.destinations).any(of_all) {
        return Err(CliError::usage(
            "chats and peers need all their participants on one machine, which tracks what each \
             has sent and holds: play them by one worker, or without --fleet",
        ));
    }
    if workers > most {
        return Err(CliError::usage(format!(
            "--workers {workers}: there are {most} joins, and each worker needs one"
        )));
    }
    Ok(())
}

//! A matrix ready to run: the file with its scenario, and every cell checked before anything is
//! started.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_analysis::experiment::Choice;
use throng_analysis::findings;
use throng_report::matrix::{MatrixFactor, MatrixMeasure, ProofInput, ProofShrink, ProofVariant};
use throng_rig::parse_cpus;
use throng_scenario::matrix::{
    Cell, CellConfig, Matrix, Measure, Order, Pair, Places, PlannedRun, ReadyWhen, SearchKeys,
    Template,
};
use throng_scenario::{Arrival as _, Override, Scenario, units};

use super::chosen::{Chosen, SEARCHES_MAX};
use super::needs::minutes;
use super::options::{Kind, Options};
use super::{shown, shrink};
use crate::console::CliError;
use crate::{find, fleet, scenario};

/// From the last join until the hold is judged: connected users are judged at once, and have 3 s to
/// begin (docs/find.md).
const SETTLE: Duration = Duration::from_secs(3);
/// The value of `server.watch` for a server that is not watched.
pub(super) const NOT_WATCHED: &str = "none";
/// Arrivals that last longer are no part of a cell.
const GATHERS_MAX: &str = "50m";

/// A matrix and where its files are.
#[derive(Clone)]
pub(super) struct MatrixPlan {
    pub(super) matrix: Matrix,
    /// The file as it was read.
    pub(super) text: String,
    /// The file.
    pub(super) file: PathBuf,
    /// Its folder.
    pub(super) base: PathBuf,
    /// The scenario file, and its text.
    pub(super) scenario: PathBuf,
    pub(super) scenario_text: String,
    pub(super) options: Options,
    pub(super) cells: Vec<Cell>,
    /// Of a proof: after how many pairs it is looked at, by the file.
    pub(super) looks: Vec<u32>,
    /// What a search of the baseline chose to measure; `None` before it, and where the file says
    /// it.
    pub(super) chosen: Option<Chosen>,
    /// It is read for its report: secrets that were not kept are missing.
    pub(super) is_stored: bool,
}

/// The times of a cell's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HoldTimes {
    /// When the hold begins, seconds after the first join.
    pub(super) from_s: u64,
    /// When it ends, and the run with it.
    pub(super) until_s: u64,
}

impl MatrixPlan {
    /// Reads the file and its scenario.
    pub(super) fn read(file: &Path, options: Options) -> Result<Self, CliError> {
        let wrong = |path: &Path, error: &dyn std::fmt::Display| {
            CliError::usage(format!("cannot read {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(file, &error))?;
        let file = file.canonicalize().map_err(|error| wrong(file, &error))?;
        Self::of_text(&text, &file, None, options)
    }

    /// The plan of a matrix whose file is no longer where it was: for its report.
    pub(super) fn of_copies(
        text: &str,
        scenario: &Path,
        file: &Path,
        options: Options,
    ) -> Result<Self, CliError> {
        Self::of_text(text, file, Some(scenario), options)
    }

    fn of_text(
        text: &str,
        file: &Path,
        scenario: Option<&Path>,
        options: Options,
    ) -> Result<Self, CliError> {
        let matrix = match options.kind {
            Kind::Matrix => Matrix::parse(text),
            Kind::Proof => Matrix::parse_proof(text, options.shrink.as_deref()),
        };
        let matrix = matrix.map_err(|error| {
            CliError::usage(format!("{} cannot be run as it is:\n{error}", file.display()))
        })?;
        let base = file.parent().unwrap_or(Path::new("/")).to_owned();
        let scenario = scenario.map_or_else(|| base.join(&matrix.scenario), Path::to_owned);
        let scenario_text = std::fs::read_to_string(&scenario).map_err(|error| {
            CliError::usage(format!("cannot read {}: {error}", scenario.display()))
        })?;
        let cells = matrix.cells();
        let looks =
            if options.is_sequential { matrix.looks() } else { matrix.pairs.into_iter().collect() };
        let (text, file) = (text.to_owned(), file.to_owned());
        let (chosen, is_stored) = (None, false);
        Ok(Self {
            matrix,
            text,
            file,
            base,
            scenario,
            scenario_text,
            options,
            cells,
            looks,
            chosen,
            is_stored,
        })
    }

    /// The same of a proof that ends after so many pairs: its runs are the first ones of the longer
    /// proof.
    pub(super) fn ending_after(mut self, pairs: u32) -> Self {
        self.matrix.pairs = Some(pairs);
        self
    }

    /// The same whose pairs measure what was chosen.
    pub(super) fn measuring(mut self, chosen: Chosen) -> Self {
        if let Measure::Auto { hold, search } = self.matrix.measure {
            self.matrix.measure = match chosen.choice {
                Choice::Hold { .. } => Measure::Hold(hold),
                Choice::Search(_) | Choice::NoLimit { .. } => Measure::Find(search),
            };
        }
        if let Choice::NoLimit { .. } = chosen.choice {
            // What has no limit has none to relieve.
            self.matrix.pairs = Some(0);
            self.looks.clear();
        }
        self.chosen = Some(chosen);
        self
    }

    /// The crowd that is held in place of the scenario's, if a search chose it.
    fn held(&self) -> Option<u32> {
        match self.chosen.as_ref()?.choice {
            Choice::Hold { users, .. } => Some(users),
            Choice::Search(_) | Choice::NoLimit { .. } => None,
        }
    }

    /// After how many pairs this is a look that may end the proof, if the run with this index is
    /// next.
    pub(super) fn look_before(&self, index: usize) -> Option<u32> {
        let runs_of_pair = 2 * self.cells.len().saturating_sub(1);
        let is_next = |pairs: &u32| {
            self.matrix.pairs.is_some_and(|all| *pairs <= all)
                && *pairs as usize * runs_of_pair == index
        };
        self.looks.iter().copied().find(is_next)
    }

    /// Checks every cell: its overrides, files, CPUs and patterns. A cell that would fail at its
    /// turn, hours later, is an error now; what this machine does not allow is found out when it
    /// runs.
    pub(super) fn check(&self) -> Result<(), CliError> {
        self.check_findings()?;
        for cell in &self.cells {
            let config = self.config(cell, Path::new("/dir"));
            self.confined(config).and_then(|config| self.check_cell(&config)).map_err(|stop| {
                let name = self.matrix.describe(cell);
                CliError::new(
                    stop.exit,
                    anyhow::anyhow!("cell {} ({name}): {:#}", cell.number, stop.error),
                )
            })?;
        }
        Ok(())
    }

    /// A finding that does not exist would never be named, and so never still be.
    fn check_findings(&self) -> Result<(), CliError> {
        let levels = self.matrix.factors.iter().flat_map(|factor| &factor.levels);
        let of_levels = levels.filter_map(|level| level.relieves.as_ref());
        let of_factors = self.matrix.factors.iter().filter_map(|factor| factor.relieves.as_ref());
        let mut named = of_levels.chain(of_factors).filter_map(|relief| relief.finding.as_deref());
        match named.find(|named| findings::keys().all(|key| key != *named)) {
            Some(unknown) => Err(CliError::usage(format!(
                "relieves.finding: there is no finding `{unknown}`; docs/findings.md lists all"
            ))),
            None => Ok(()),
        }
    }

    fn check_cell(&self, config: &CellConfig) -> Result<(), CliError> {
        let (sets, _) = self.overrides(config)?;
        if let Some(workers) = self.options.workers {
            self.check_crowd(&sets, workers)?;
        }
        if let Some(cpus) = &config.server.cpus {
            parse_cpus(cpus).map_err(|error| CliError::usage(format!("server.cpus: {error}")))?;
        }
        if let Some(ReadyWhen::Log(pattern)) = config.server.ready.as_ref().map(|ready| &ready.when)
        {
            throng_rig::pattern(pattern)
                .map_err(|error| CliError::usage(format!("server.ready.log: {error}")))?;
        }
        self.files(config).map(drop)
    }

    /// What of a cell so many workers cannot play.
    fn check_crowd(&self, sets: &[String], workers: usize) -> Result<(), CliError> {
        let plan = self.scenario_with(&self.parsed(sets)?)?.plan();
        let joins = match self.matrix.measure {
            Measure::Hold(_) => plan.joins.len(),
            // Without a ceiling a search has joins for all.
            Measure::Find(SearchKeys { ceiling, .. })
            | Measure::Auto { search: SearchKeys { ceiling, .. }, .. } => {
                ceiling.map_or(usize::MAX, |users| users as usize)
            }
        };
        fleet::check_crowd(&plan, joins, workers)
    }

    /// With `--resume` as many workers must play as before.
    pub(super) fn check_workers(&self, asked: Option<usize>) -> Result<(), CliError> {
        if asked == self.options.workers {
            return Ok(());
        }
        let said = |workers: Option<usize>| match workers {
            Some(count) => counted(count, "worker"),
            None => "this machine".to_owned(),
        };
        Err(CliError::usage(format!(
            "the runs of this {} were played by {}, and the others would be by {}: they could not be compared. Give --resume the \
             same --fleet and --workers, or --on, as at the beginning",
            self.options.kind.noun(),
            said(self.options.workers),
            said(asked)
        )))
    }

    /// A cell with the folder of its server's files.
    pub(super) fn config(&self, cell: &Cell, dir: &Path) -> CellConfig {
        self.matrix.cell(cell, &Places { dir: shown(dir), base: shown(&self.base) })
    }

    /// The same with less of what the cell has less of.
    pub(super) fn confined(&self, config: CellConfig) -> Result<CellConfig, CliError> {
        shrink::apply(config).map_err(CliError::usage)
    }

    /// The configuration files of a cell: where each is to be, and its text.
    pub(super) fn files(&self, config: &CellConfig) -> Result<Vec<(PathBuf, String)>, CliError> {
        let known: BTreeSet<String> =
            config.variables.iter().map(|(name, _)| name.clone()).collect();
        let value = |name: &str| {
            let found = config.variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let file = |file: &throng_scenario::matrix::ServerFile<String>| {
            let template = self.base.join(&file.template);
            let wrong = |error: &dyn std::fmt::Display| {
                CliError::usage(format!("{}: {error}", template.display()))
            };
            let text = std::fs::read_to_string(&template).map_err(|error| wrong(&error))?;
            let read = Template::of_file(&text, &known)
                .map_err(|error| CliError::usage(format!("{}:\n{error}", template.display())))?;
            Ok((self.base.join(&file.path), read.render(&value)))
        };
        config.server.files.iter().map(file).collect()
    }

    /// The scenario's overrides in a cell, as `PATH=VALUE`, and the times of the hold. The scenario
    /// is read with them, so that what is wrong is an error.
    pub(super) fn overrides(
        &self,
        config: &CellConfig,
    ) -> Result<(Vec<String>, Option<HoldTimes>), CliError> {
        let (mut sets, mut parsed) = self.crowd(config, self.held())?;
        let Measure::Hold(hold) = self.matrix.measure else {
            self.scenario_with(&parsed)?;
            return Ok((sets, None));
        };
        let times = self.hold_times(&parsed, hold)?;
        sets.push(format!("run.duration=\"{}s\"", times.until_s));
        sets.push(format!("run.warm_up=\"{}s\"", times.from_s));
        parsed.extend(scenario::parse_sets(sets.get(sets.len() - 2..).unwrap_or_default())?);
        self.scenario_with(&parsed)?;
        Ok((sets, Some(times)))
    }

    /// The scenario with these overrides.
    fn scenario_with(&self, overrides: &[Override]) -> Result<Scenario, CliError> {
        let read = if self.is_stored { scenario::read_stored } else { scenario::read };
        read(&self.scenario, overrides)
    }

    /// Overrides, read. A variable that is not there any more is no error of a report.
    fn parsed(&self, sets: &[String]) -> Result<Vec<Override>, CliError> {
        if !self.is_stored {
            return scenario::parse_sets(sets);
        }
        let each =
            sets.iter().filter_map(|set| scenario::parse_sets(std::slice::from_ref(set)).ok());
        Ok(each.flatten().collect())
    }

    /// The overrides of a cell without the times of its hold, as `PATH=VALUE` and read; the crowd
    /// has `users`, if that is given.
    fn crowd(
        &self,
        config: &CellConfig,
        users: Option<u32>,
    ) -> Result<(Vec<String>, Vec<Override>), CliError> {
        let of_all_cells = self.matrix.set.len();
        let set = |(path, value): &(String, String)| format!("{path}={value}");
        let again = &self.options.again;
        let mut sets = again.scenario.clone();
        sets.extend(config.set.iter().take(of_all_cells).map(set));
        sets.extend(again.set.iter().cloned());
        sets.extend(config.set.iter().skip(of_all_cells).map(set));
        sets.extend(self.options.set.iter().cloned());
        let mut parsed = self.parsed(&sets)?;
        let allow = &self.options.allow_target;
        if !allow.is_empty() {
            let list: Vec<String> = allow.iter().map(|cidr| format!("\"{cidr}\"")).collect();
            parsed.push(Override::flag_toml(
                "--allow-target",
                "target.allow",
                &format!("[{}]", list.join(", ")),
            ));
        }
        if let Some(users) = users {
            let size = find::of_load(&self.scenario_with(&parsed)?, users);
            parsed.extend(scenario::parse_sets(std::slice::from_ref(&size))?);
            sets.push(size);
        }
        Ok((sets, parsed))
    }

    /// When the crowd of the scenario with these overrides is held.
    fn hold_times(&self, parsed: &[Override], hold: Duration) -> Result<HoldTimes, CliError> {
        let long = Override::flag("hold", "run.duration", GATHERS_MAX);
        let overrides: Vec<Override> = parsed.iter().cloned().chain([long]).collect();
        let scenario = self.scenario_with(&overrides)?;
        let from_s = (gathers(&scenario) + SETTLE).as_secs_f64().ceil() as u64;
        Ok(HoldTimes { from_s, until_s: from_s + hold.as_secs_f64().ceil() as u64 })
    }

    /// How long a run takes that holds the crowd of a cell, `users` or that of the scenario.
    pub(super) fn hold_takes(&self, cell: &Cell, hold: Duration, users: Option<u32>) -> Duration {
        let config = self.config(cell, Path::new("/dir"));
        let parsed = self.crowd(&config, users).map(|(_, parsed)| parsed);
        let times = parsed.and_then(|parsed| self.hold_times(&parsed, hold));
        let server = &config.server;
        let is_watched = server.command.is_some() && server.watch.as_deref() != Some(NOT_WATCHED);
        let baseline = if is_watched { crate::watchers::BASELINE } else { Duration::ZERO };
        Duration::from_secs(times.map_or(0, |times| times.until_s)) + baseline
    }

    /// The scenario of a cell; `None` if it cannot be read.
    pub(super) fn scenario_of(&self, config: &CellConfig) -> Option<Scenario> {
        let (_, parsed) = self.crowd(config, None).ok()?;
        self.scenario_with(&parsed).ok()
    }

    /// The largest crowd that a search of the baseline tries.
    pub(super) fn ceiling(&self, search: &SearchKeys) -> Option<u32> {
        let config = self.config(self.cells.first()?, Path::new("/dir"));
        Some(find::ceiling(search.ceiling, &self.scenario_of(&config)?))
    }

    /// The most users of a held crowd.
    pub(super) fn users_max(&self, cell: &Cell, search: &SearchKeys) -> u32 {
        let scenario = self.scenario_of(&self.config(cell, Path::new("/dir")));
        let allowed = scenario.and_then(|scenario| find::users_allowed(&scenario));
        let most = |users: Option<u32>| users.unwrap_or(u32::MAX);
        most(search.ceiling).min(most(allowed))
    }

    pub(super) fn runs(&self) -> Vec<PlannedRun> {
        self.matrix.runs()
    }

    pub(super) fn cell(&self, planned: &PlannedRun) -> Option<&Cell> {
        self.cells.get(planned.cell)
    }

    /// `files=30 storage=disk, run 2`.
    pub(super) fn label(&self, planned: &PlannedRun) -> String {
        let name = self.cell(planned).map(|cell| self.matrix.describe(cell)).unwrap_or_default();
        if self.matrix.repeats_of(planned.cell) > 1 {
            format!("{name}, run {}", planned.repeat)
        } else {
            name
        }
    }

    pub(super) fn factors(&self) -> Vec<MatrixFactor> {
        let factor = |factor: &throng_scenario::matrix::Factor| MatrixFactor {
            name: factor.name.clone(),
            levels: factor.levels.iter().map(|level| level.name.clone()).collect(),
        };
        self.matrix.factors.iter().map(factor).collect()
    }

    pub(super) fn measure(&self) -> MatrixMeasure {
        match self.matrix.measure {
            // Nothing was measured yet.
            Measure::Hold(_) | Measure::Auto { .. } => MatrixMeasure::Hold,
            Measure::Find(_) => MatrixMeasure::Find,
        }
    }

    pub(super) fn order(&self) -> &'static str {
        match self.matrix.order {
            Order::Random => "random",
            Order::Written => "written",
            Order::Abba => "abba",
        }
    }

    /// How long the runs take, without the starts and stops of servers: with searches as long as
    /// their budget, and with searches that are stopped unfinished. Where a search is to choose
    /// what they measure, with the crowd of the scenario, and that search.
    pub(super) fn takes(&self) -> [Duration; 2] {
        let least = self.takes_with(1, |budget| budget.max(find::BUDGET_MIN));
        [least, self.takes_with(SEARCHES_MAX, find::stops_after)]
    }

    /// The same with so many searches that choose, where one is needed.
    fn takes_with(&self, first: u32, search_takes: impl Fn(Duration) -> Duration) -> Duration {
        let of = |cell: &Cell| match &self.matrix.measure {
            Measure::Find(search) => search_takes(search.budget),
            Measure::Hold(hold) | Measure::Auto { hold, .. } => {
                self.hold_takes(cell, *hold, self.held())
            }
        };
        let first = match &self.matrix.measure {
            Measure::Auto { search, .. } => search_takes(search.budget) * first,
            Measure::Hold(_) | Measure::Find(_) => Duration::ZERO,
        };
        let all = self.cells.iter().enumerate();
        let pairs: Duration =
            all.map(|(index, cell)| of(cell) * self.matrix.repeats_of(index)).sum();
        first + pairs
    }

    /// What a proof compares; `None` for a matrix.
    pub(super) fn proof(&self, repeated: &[Pair]) -> Option<ProofInput> {
        let levels = &self.matrix.factors.first().filter(|_| self.matrix.is_proof())?.levels;
        let variant = |(cell, level): (usize, &throng_scenario::matrix::Level)| {
            // A filter at the full rate is no change.
            let shrink = level.shrink.iter().find(|shrink| shrink.to < 1.0);
            ProofVariant {
                cell,
                relieves: level.relieves.clone(),
                more: level.more,
                shrink: shrink.map(|shrink| ProofShrink {
                    resource: shrink.resource.key().to_owned(),
                    to: shrink.to,
                    is_placebo: shrink.is_placebo,
                }),
            }
        };
        let variants = levels.iter().enumerate().skip(1).map(variant).collect();
        let blocks = self.matrix.blocks().into_iter();
        let blocks = blocks
            .map(|block| (block.variant, block.runs.map(|run| (run.cell, run.repeat))))
            .collect();
        let busy_difference = self.matrix.busy_difference;
        let again = repeated
            .iter()
            .map(|pair| (pair.variant, pair.runs.each_ref().map(|run| (run.cell, run.repeat))))
            .collect();
        // Before pairs are made once more there is a further look.
        let looks = self.looks.len() + usize::from(!repeated.is_empty());
        let (no_limit_up_to, beyond) = match self.chosen.as_ref().map(|chosen| chosen.choice) {
            Some(Choice::NoLimit { users }) => (Some(users), None),
            Some(Choice::Hold { users, passing }) => {
                (None, Some(f64::from(users) / f64::from(passing.max(1))))
            }
            Some(Choice::Search(_)) | None => (None, None),
        };
        Some(ProofInput {
            variants,
            blocks,
            repeated: again,
            looks,
            demands: Vec::new(),
            busy_difference,
            chosen: self.chosen.as_ref().map(|chosen| chosen.why.clone()),
            no_limit_up_to,
            beyond,
        })
    }

    /// `6 cells, 12 runs`.
    fn size(&self) -> String {
        let runs = counted(self.runs().len(), "run");
        match self.matrix.pairs {
            Some(pairs) => {
                format!("{}, {pairs} pairs each, {runs}", counted(self.cells.len() - 1, "variant"))
            }
            None => format!("{}, {runs}", counted(self.cells.len(), "cell")),
        }
    }

    /// `about 8 min`; of searches `about 8 to 16 min`.
    fn about(&self) -> String {
        let [least, most] = self.takes().map(minutes);
        if least < most {
            format!("about {least} to {most} min")
        } else {
            format!("about {least} min")
        }
    }

    /// The runs and how long they take: `1 variant, 4 pairs each, 8 runs, about 3 min`.
    pub(super) fn needs(&self) -> String {
        format!("{}, {}", self.size(), self.about())
    }

    /// What is measured, where a search of the baseline chooses it or has chosen it.
    fn measured(&self) -> Option<String> {
        if let Some(chosen) = &self.chosen {
            return Some(chosen.why.clone());
        }
        let Measure::Auto { hold, search } = &self.matrix.measure else { return None };
        Some(format!(
            "held for {} or searched: a search of {} chooses it first (budget {})",
            units::write_duration(*hold),
            self.baseline(),
            units::write_duration(search.budget)
        ))
    }

    /// The name of a proof's baseline.
    pub(super) fn baseline(&self) -> &str {
        let first = self.matrix.factors.first().and_then(|factor| factor.levels.first());
        first.map_or("the baseline", |level| level.name.as_str())
    }

    /// The lines before the first run.
    pub(super) fn introduction(&self, folder: &Path) -> impl Iterator<Item = String> {
        let about = self.about();
        let played =
            self.options.workers.map(|count| format!(", played by {}", counted(count, "worker")));
        let (size, order, played) = (self.size(), self.order(), played.unwrap_or_default());
        let path = folder.display();
        let first = format!("{size}, {order} order, {about}{played}; folder {path}");
        std::iter::once(first).chain(self.measured())
    }

    /// The cells and the order, for `--plan`.
    pub(super) fn describe(&self) -> String {
        let about = self.about();
        let mut out = format!("{}, {} order, {about}\n", self.size(), self.order());
        if let Some(measured) = self.measured() {
            let _ = writeln!(out, "{measured}");
        }
        for (index, planned) in self.runs().iter().enumerate() {
            let number = self.cell(planned).map_or(0, |cell| cell.number);
            let _ = writeln!(out, "{:>4}  cell {number:>3}  {}", index + 1, self.label(planned));
        }
        out
    }
}

/// `1 run`, `2 runs`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// When the last participant joins for the first time.
fn gathers(scenario: &Scenario) -> Duration {
    let rooms = scenario.target.rooms;
    let last = scenario.crowd.iter().filter_map(|cohort| {
        let last = cohort.arrival.offsets(cohort.size.saturating_mul(rooms)).last()?;
        Some(cohort.starts_at.saturating_add(last))
    });
    last.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::options::HiddenOfCopies;
    use super::*;
    use crate::kept::Hidden;

    fn plan(file: &Path) -> MatrixPlan {
        MatrixPlan::read(
            file,
            Options { kind: Kind::Proof, is_sequential: true, ..Options::default() },
        )
        .unwrap_or_else(|stop| panic!("{}: {:#}", file.display(), stop.error))
    }

    /// With its scenario and all templates.
    #[test]
    fn every_proof_among_the_examples_can_be_run() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prove");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_proof = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "toml")
                && std::fs::read_to_string(path).unwrap().contains("[[variant]]")
        };
        let proofs: Vec<PathBuf> = files.filter(is_proof).collect();
        assert!(proofs.len() >= 7, "{proofs:?}");
        for file in proofs {
            plan(&file)
                .check()
                .unwrap_or_else(|stop| panic!("{}: {:#}", file.display(), stop.error));
        }
    }

    #[test]
    fn a_hold_begins_when_the_cohort_that_comes_last_has_come() {
        let place = tempfile::tempdir().unwrap();
        let (file, scenario) = (place.path().join("proof.toml"), place.path().join("viewers.toml"));
        let cohort = |name: &str, more: &str| {
            format!(
                "[[crowd]]\nname = \"{name}\"\nsize = 5\narrival = {{ every = \"1s\", jitter = false }}\n{more}\n"
            )
        };
        let text = format!(
            "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n{}{}",
            cohort("first", ""),
            cohort("second", "starts_at = \"20s\"")
        );
        std::fs::write(&scenario, text).unwrap();
        std::fs::write(
            &file,
            "scenario = \"viewers.toml\"\nhold = \"5s\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n",
        )
        .unwrap();
        let plan = plan(&file);
        let config = plan.config(&plan.cells[0], Path::new("/dir"));
        let (_, times) = plan.overrides(&config).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        // The last of five comes 4 s after the first, and has 3 s to begin.
        assert_eq!(times, Some(HoldTimes { from_s: 27, until_s: 32 }));
    }

    #[test]
    fn what_is_announced_has_room_for_all_searches_that_choose() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prove/srs-cpus.toml");
        let plan = plan(Path::new(file));
        let Measure::Auto { search, .. } = &plan.matrix.measure else {
            panic!("{:?}", plan.matrix.measure)
        };
        // An invalid one, the same again, and one between its ends.
        let without = plan.takes_with(0, find::stops_after);
        assert_eq!(plan.takes()[1] - without, find::stops_after(search.budget) * 3);
    }

    #[test]
    fn a_look_is_before_the_first_run_of_the_next_round() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prove/stage-workers.toml");
        // Four pairs of each of two variants: rounds of eight runs.
        let plan = plan(Path::new(file));
        let looks = |plan: &MatrixPlan| {
            (0..=16).filter_map(|index| Some((index, plan.look_before(index)?))).collect::<Vec<_>>()
        };
        assert_eq!((plan.runs().len(), looks(&plan)), (16, vec![(8, 2), (16, 4)]));
        let ended = plan.ending_after(2);
        assert_eq!((ended.runs().len(), looks(&ended), ended.looks.len()), (8, vec![(8, 2)], 2));
    }

    #[test]
    fn what_completes_a_copy_is_overridden_by_what_overrides_the_file() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("matrix.toml");
        let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\ntoken = \"…\"\n\
            [crowd]\nsize = 5\n";
        std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
        let text = "scenario = \"viewers.toml\"\nhold = \"5s\"\n\
            [set]\n\"target.turn_password\" = \"…\"\n\
            [[factor]]\nname = \"token\"\nset = \"target.token\"\nlevels = [\"one\", \"two\"]\n";
        std::fs::write(&file, text).unwrap();
        let set: toml::Table = "\"target.turn_password\" = \"…\"".parse().unwrap();
        let hidden =
            HiddenOfCopies { scenario: Hidden::of_file(scenario), set: Hidden::of_table(&set) };
        let given = ["target.token=a", "target.turn_password=b"].map(str::to_owned);
        let options = Options::default()
            .with_secrets(&given, &hidden)
            .unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let plan =
            MatrixPlan::read(&file, options).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let config = plan.config(&plan.cells[0], Path::new("/dir"));
        let (sets, _) = plan.crowd(&config, None).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let expect = [
            "target.token=a",
            "target.turn_password=\"…\"",
            "target.turn_password=b",
            "target.token=\"one\"",
        ];
        assert_eq!(sets, expect);
    }

    #[test]
    fn a_finding_that_does_not_exist_is_an_error_at_once() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("proof.toml");
        let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";
        std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
        for (finding, is_known) in [("one_thread_full", true), ("one_thread_ful", false)] {
            let text = format!(
                "scenario = \"viewers.toml\"\nhold = \"5s\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nrelieves = {{ finding = \"{finding}\" }}\n"
            );
            std::fs::write(&file, text).unwrap();
            let checked = plan(&file).check();
            assert_eq!(checked.is_ok(), is_known, "{finding}");
        }
    }
}

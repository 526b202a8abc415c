//! `throng find`: plays one long run whose crowd grows and shrinks as the search wants, until it knows how many are served
//! well.

mod crowd;
mod hold_printer;
mod plan;
mod profile_triggers;
mod seconds;
mod values;

use std::time::{Duration, Instant};

use throng_analysis::search::{End, Search, Second};
use throng_engine::{NewParticipant, RunHandle};
use throng_observation::run::{Ending, Row};
use throng_observation::{HoldRow, RunTime};
use throng_report::ObjectiveResult;
use throng_store::RunFolder;
use throng_watch::SourceConfig;

use crate::args::Find;
use crate::canary::{self, Canaries};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::live::Display;
use crate::report::{self, ReportOptions};
use crate::store_writer::StoreWriter;
use crate::watchers::{self, Agents, Watchers};
use crate::{CliError, run, say, say_lines};
use crowd::{Crowd, CrowdAction};
use hold_printer::HoldPrinter;
use plan::SearchPlan;
use profile_triggers::ProfileTriggers;
use seconds::Seconds;

/// How often the crowd is brought nearer to its size, and a person sees something new.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// Searches, reports, and says how it ended.
pub(crate) fn find(command: &Find) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(|error| CliError::new(Exit::Invalid, error))?;
    let earlier = command.resume.as_deref().map(plan::earlier).transpose()?.unwrap_or_default();
    let search_plan = SearchPlan::of(command)?;
    let (common, plan) = (&command.common, &search_plan.plan);
    let packs = watchers::packs(common.packs.as_deref())?;
    let agents = Agents::connect(plan);
    let browser = canary::program(plan)?;
    let permission = run::permission(plan, common, &agents)?;
    let warnings = search_plan.warnings();
    warnings.iter().for_each(|warning| say_lines(&format!("warning: {warning}")));
    search_plan.introduce();

    let path = run::folder(&search_plan.scenario, common);
    let info = run::info(&search_plan.scenario, plan, &permission, warnings);
    run::say_baseline(plan);
    let mut writer = RunFolder::create(&path, &info).map_err(|error| CliError::new(Exit::Usage, error))?;
    for hold in &earlier {
        writer.write(Row::Hold(Box::new(hold.clone())));
    }
    let canaries = Canaries::start(plan, browser, &permission)?;
    let (handle, rows, rows_in) = run::start_open(&search_plan.scenario, plan, &permission, common)?;
    // They stay for the whole search, beside the crowd of every load.
    canaries.begin(handle.started_at(), &rows_in);
    let speaks = !common.plain;
    let sources = SourceConfig { packs, allowed: permission.address_check(), ..SourceConfig::default() };
    let mut watchers = Watchers::start(plan, handle.started_at(), rows_in.clone(), &sources, agents, speaks);
    writer.starts_at(handle.started_at_unix_us()).map_err(|error| CliError::new(Exit::Invalid, error))?;
    let seconds = Seconds::default();
    let observer = seconds.clone();
    let sink = StoreWriter::start(writer, rows, move |row| observer.observe(row))
        .map_err(|error| CliError::new(Exit::Invalid, error))?;

    let mut search_loop = SearchLoop {
        search: Search::resume(search_plan.settings, &earlier).named(search_plan.values.clone()),
        crowd: Crowd::new(search_plan.crowd.clone()),
        seconds,
        handle: &handle,
        deadline: search_plan.deadline,
        keep: Box::new(move |row| drop(rows_in.send(Row::Hold(Box::new(row))))),
        printer: HoldPrinter::new(common.quiet || common.json),
        triggers: ProfileTriggers::new(&search_plan.settings.schedule),
    };
    let quit = search_loop.run(&interrupt, &mut watchers, run::display(plan, common));
    drop(search_loop);
    canaries.stop();
    handle.stop();
    let end = handle.wait();
    watchers.stop();
    let ending = match quit {
        SearchStop::Over => Ending::Complete,
        SearchStop::Person => Ending::Interrupted,
        SearchStop::OutOfTime => {
            say("the time budget is used up; the report holds what the search found so far");
            Ending::Complete
        }
        SearchStop::RunEnded => {
            if let Some(why) = &end.why {
                say(&format!("the run ended early: {why}"));
            }
            end.ending
        }
    };
    let kept = sink.finish(ending, end.ended_at);
    if let Err(error) = &kept {
        say(&format!("the end of the run could not be stored, what follows is partial: {error}"));
    }
    let csv = common.csv || search_plan.scenario.output.csv;
    let wanted = ReportOptions { json: common.json, csv, details: common.details };
    let exit = report::make(&path, &wanted).map_err(|error| CliError::new(Exit::Invalid, error))?;
    if quit == SearchStop::Person {
        say(&format!("to go on with this search: throng find … --resume {}", path.display()));
    }
    Ok(if kept.is_ok() { exit } else { Exit::Invalid })
}

/// Why searching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchStop {
    /// The search came to its end.
    Over,
    /// A person, or a signal.
    Person,
    /// The time that was allowed is over.
    OutOfTime,
    /// A guard ended the run.
    RunEnded,
}

/// A search that goes on.
struct SearchLoop<'a> {
    search: Search,
    crowd: Crowd,
    seconds: Seconds,
    handle: &'a RunHandle,
    deadline: RunTime,
    keep: Box<dyn Fn(HoldRow)>,
    printer: HoldPrinter,
    /// When the server is profiled.
    triggers: ProfileTriggers,
}

impl SearchLoop<'_> {
    fn run(
        &mut self,
        interrupt: &Interrupt,
        watchers: &mut Watchers,
        mut display: Box<dyn Display>,
    ) -> SearchStop {
        let mut show_at = Instant::now();
        loop {
            if interrupt.is_set() {
                return SearchStop::Person;
            }
            if self.handle.is_finished() || self.handle.is_stopped() {
                return SearchStop::RunEnded;
            }
            self.take_seconds();
            if self.search.end().is_some() {
                return SearchStop::Over;
            }
            if self.handle.now() >= self.deadline.min(self.handle.ends_at()) {
                return SearchStop::OutOfTime;
            }
            self.adjust();
            if Instant::now() >= show_at {
                show_at += SHOW_EVERY;
                watchers.is_full(self.triggers.is_near_limit);
                watchers.look(self.triggers.has_failed);
                let none: &[ObjectiveResult] = &[];
                if display.show(&self.handle.live(), none, &watchers.figures(), Some(&self.search.progress()))
                {
                    return SearchStop::Person;
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Tells the search of the seconds that have closed.
    fn take_seconds(&mut self) {
        self.crowd.note_failed(self.seconds.take_failed());
        for seen in self.seconds.take() {
            let second = Second {
                at: seen.ends_at(),
                users: seen.users,
                bad: seen.bad,
                delay_ms: seen.delay_ms,
                is_limited: seen.is_limited || self.crowd.has_failed_by_generator(),
                is_complete: self.crowd.was_complete(seen.ends_at()),
            };
            let is_bad = seen.bad * 100.0 > f64::from(seen.users);
            self.triggers.on_second(&self.search.progress(), second.is_complete, is_bad);
            for row in self.search.second(&second) {
                self.printer.step(&row, self.search.progress().passing);
                (self.keep)(row);
            }
            if let Some(end) = self.search.end() {
                self.printer.end(why(end));
                return;
            }
        }
    }

    fn adjust(&mut self) {
        let (handle, now) = (self.handle, self.handle.now());
        if now < RunTime(0) {
            return; // The idle server is being looked at.
        }
        let wants = self.search.wants().max(self.crowd.fixed());
        self.crowd.adjust(wants, now, |step| match step {
            CrowdAction::Call { cohort, place, at, source_ip } => {
                Some(handle.add_participant(NewParticipant { cohort, place, at, source_ip }))
            }
            CrowdAction::Dismiss(participant) => {
                handle.remove_participant(participant);
                None
            }
        });
    }
}

/// The end of a search, for a person.
fn why(end: &End) -> &'static str {
    match end {
        End::Found => "the limit is found",
        End::Ceiling => "the largest crowd that may be tried is served well",
        End::GeneratorLimited => "the generator is the limit: of the server nothing is known above",
        End::NeverPasses => "not even the smallest crowd is served well",
        End::TooNoisy => "this host is too noisy: seconds are bad that no load explains",
        End::NotSustained => "below the limit a crowd is served well, but not for long",
        End::NoRecovery => "after the load that failed the server does not come back",
    }
}

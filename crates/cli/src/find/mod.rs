//! `throng find`: plays one long run whose crowd grows and shrinks as the search wants, until it knows how many are served
//! well.

mod crowd;
mod ladder;
mod moments;
mod plan;
mod seconds;
mod values;

use std::time::{Duration, Instant};

use throng_analysis::search::{End, Search, Second};
use throng_engine::{RunHandle, Visit};
use throng_observation::run::{Ending, Row};
use throng_observation::{HoldRow, RunTime};
use throng_report::ObjectiveResult;
use throng_store::RunFolder;
use throng_watch::Beside;

use crate::args::Find;
use crate::canary::{self, Canaries};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::live::Display;
use crate::report::{self, Wanted};
use crate::sink::Sink;
use crate::watchers::{self, Agents, Watchers};
use crate::{Stop, run, say, say_lines};
use crowd::{Crowd, Step};
use ladder::Ladder;
use moments::Moments;
use plan::Searched;
use seconds::Seconds;

/// How often the crowd is brought nearer to its size, and a person sees something new.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// Searches, reports, and says how it ended.
pub(crate) fn find(command: &Find) -> Result<Exit, Stop> {
    let interrupt = Interrupt::listen().map_err(|error| Stop::new(Exit::Invalid, error))?;
    let earlier = command.resume.as_deref().map(plan::earlier).transpose()?.unwrap_or_default();
    let searched = Searched::of(command)?;
    let (common, plan) = (&command.common, &searched.plan);
    let packs = watchers::packs(common.packs.as_deref())?;
    let agents = Agents::connect(plan);
    let browser = canary::program(plan)?;
    let permission = run::permission(plan, common, &agents)?;
    let warnings = searched.warnings();
    warnings.iter().for_each(|warning| say_lines(&format!("warning: {warning}")));
    searched.introduce();

    let path = run::folder(&searched.scenario, common);
    let info = run::info(&searched.scenario, plan, &permission, warnings);
    run::say_baseline(plan);
    let mut writer = RunFolder::create(&path, &info).map_err(|error| Stop::new(Exit::Usage, error))?;
    for hold in &earlier {
        writer.write(Row::Hold(Box::new(hold.clone())));
    }
    let canaries = Canaries::start(plan, browser, &permission)?;
    let (handle, rows, rows_in) = run::start_open(&searched.scenario, plan, &permission, common)?;
    // They stay for the whole search, beside the crowd of every load.
    canaries.begin(handle.started_at(), &rows_in);
    let speaks = !common.plain;
    let beside = Beside { packs, allowed: permission.may_ask(), ..Beside::default() };
    let mut watchers = Watchers::start(plan, handle.started_at(), rows_in.clone(), &beside, agents, speaks);
    writer.starts_at(handle.started_at_unix_us()).map_err(|error| Stop::new(Exit::Invalid, error))?;
    let seconds = Seconds::new(plan.cohorts.len().try_into().unwrap_or(u16::MAX));
    let heard = seconds.clone();
    let sink = Sink::start(writer, rows, move |row| heard.hear(row))
        .map_err(|error| Stop::new(Exit::Invalid, error))?;

    let mut searching = Searching {
        search: Search::resume(searched.settings, &earlier).named(searched.values.clone()),
        crowd: Crowd::new(searched.make_up.clone()),
        seconds,
        handle: &handle,
        deadline: searched.deadline,
        keep: Box::new(move |row| drop(rows_in.send(Row::Hold(Box::new(row))))),
        ladder: Ladder::new(common.quiet || common.json),
        moments: Moments::new(&searched.settings.pace),
    };
    let quit = searching.run(&interrupt, &mut watchers, run::display(plan, common));
    drop(searching);
    canaries.stop();
    handle.stop();
    let end = handle.wait();
    watchers.stop();
    let ending = match quit {
        Quit::Over => Ending::Complete,
        Quit::Person => Ending::Interrupted,
        Quit::OutOfTime => {
            say("the search has taken all the time there was; what it knows by now is reported");
            Ending::Complete
        }
        Quit::RunEnded => {
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
    let csv = common.csv || searched.scenario.output.csv;
    let wanted = Wanted { json: common.json, csv, details: common.details };
    let exit = report::make(&path, &wanted).map_err(|error| Stop::new(Exit::Invalid, error))?;
    if quit == Quit::Person {
        say(&format!("to go on with this search: throng find … --resume {}", path.display()));
    }
    Ok(if kept.is_ok() { exit } else { Exit::Invalid })
}

/// Why searching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quit {
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
struct Searching<'a> {
    search: Search,
    crowd: Crowd,
    seconds: Seconds,
    handle: &'a RunHandle,
    deadline: RunTime,
    keep: Box<dyn Fn(HoldRow)>,
    ladder: Ladder,
    /// When the server is profiled.
    moments: Moments,
}

impl Searching<'_> {
    fn run(&mut self, interrupt: &Interrupt, watchers: &mut Watchers, mut display: Box<dyn Display>) -> Quit {
        let mut show_at = Instant::now();
        loop {
            if interrupt.is_set() {
                return Quit::Person;
            }
            if self.handle.is_finished() || self.handle.is_stopped() {
                return Quit::RunEnded;
            }
            self.hear();
            if self.search.end().is_some() {
                return Quit::Over;
            }
            if self.handle.now() >= self.deadline.min(self.handle.ends_at()) {
                return Quit::OutOfTime;
            }
            self.aim();
            if Instant::now() >= show_at {
                show_at += SHOW_EVERY;
                watchers.is_full(self.moments.is_near_limit);
                watchers.look(self.moments.has_failed);
                let none: &[ObjectiveResult] = &[];
                if display.show(&self.handle.live(), none, &watchers.figures(), Some(&self.search.progress()))
                {
                    return Quit::Person;
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Tells the search of the seconds that have closed.
    fn hear(&mut self) {
        self.crowd.note_failed(self.seconds.take_failed());
        for seen in self.seconds.take() {
            let second = Second {
                at: seen.ends_at(),
                users: seen.users,
                bad: seen.bad,
                delay_ms: seen.delay_ms,
                is_limited: seen.is_limited || self.crowd.has_failed_by_us(),
                is_complete: self.crowd.was_complete(seen.ends_at()),
            };
            let is_bad = seen.bad * 100.0 > f64::from(seen.users);
            self.moments.second(&self.search.progress(), second.is_complete, is_bad);
            for row in self.search.second(&second) {
                self.ladder.step(&row, self.search.progress().passing);
                (self.keep)(row);
            }
            if let Some(end) = self.search.end() {
                self.ladder.end(why(end));
                return;
            }
        }
    }

    fn aim(&mut self) {
        let (handle, now) = (self.handle, self.handle.now());
        if now < RunTime(0) {
            return; // The idle server is being looked at.
        }
        let wants = self.search.wants().max(self.crowd.fixed());
        self.crowd.aim(wants, now, |step| match step {
            Step::Call { cohort, place, at, source_ip } => {
                Some(handle.call(Visit { cohort, place, at, source_ip }))
            }
            Step::Dismiss(participant) => {
                handle.dismiss(participant);
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

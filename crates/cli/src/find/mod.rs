//! `throng find`: one long run whose crowd grows and shrinks as the search wants, until the largest
//! load that is served well is known.

mod announced;
mod crowd;
mod earlier;
mod hold_printer;
mod largest;
mod plan;
mod profile_triggers;
mod seconds;
mod values;
mod variation;

use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use throng_analysis::search::{End, Search, Second};
use throng_engine::NewParticipant;
use throng_observation::run::{Ending, Row};
use throng_observation::{Failure, Goal, RunTime, Unloaded, shell};

use crate::args::{Find, Outputs};
use crate::console::{CliError, Exit, Interrupt, say};
use crate::generator::Generator;
use crate::kept::KeptCommand;
use crate::live::{self, Display, State};
use crate::scenario;
use crate::served::{Outlets, Served};
use crate::session::{self, Joins, Prepared, Session};
use crate::watchers::{self, Watchers};
use announced::Announced;
use crowd::{Crowd, CrowdAction};
use hold_printer::HoldPrinter;
pub(crate) use largest::{BUDGET_MIN, ceiling, of_load, stops_after, users_allowed};
use plan::SearchPlan;
use profile_triggers::ProfileTriggers;
use seconds::Seconds;

/// How often the crowd is adjusted, and how often the display is updated.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const SHOW_EVERY: Duration = Duration::from_millis(250);

pub(crate) fn find(command: &Find) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let earlier = command.resume.as_deref().map(earlier::earlier).transpose()?.unwrap_or_default();
    let search_plan = SearchPlan::of(command)?;
    let (common, plan) = (&command.common, &search_plan.plan);
    if common.dry_run {
        return session::describe(plan, common.fleet.plays_here());
    }
    if !search_plan.values.is_empty() && !common.fleet.plays_here() {
        return Err(CliError::usage(
            "--vary of a value is searched by one machine: leave --fleet and --on away",
        ));
    }
    let Outputs { prometheus, otlp, serve, .. } = &common.outputs;
    let outlets = Outlets::take(prometheus.as_ref(), otlp.as_deref(), serve.as_ref())?;
    let prepared =
        Prepared::new(&search_plan.scenario, plan, common)?.with_fleet(true, &interrupt)?;
    let warnings = prepared.with_left_out(search_plan.warnings(&prepared.pages));
    session::print_warnings(&warnings);
    search_plan.introduce();
    let info = prepared.info(warnings);
    watchers::announce_baseline(plan);
    let served = outlets.of_run(&info, common.outputs.otlp_traces, &interrupt)?;
    let prepared = prepared.with_traces(served.traces());
    let seconds = Seconds::default();
    let on_row = {
        let (observer, figures) = (seconds.clone(), served.figures());
        move |row: &Row| {
            observer.observe(row);
            figures.iter().for_each(|figures| figures.take(row));
        }
    };
    // The scenario as it was asked: that of the plan has its crowd at its largest.
    let asked = scenario::of_find(command, &[]).unwrap_or_else(|_| search_plan.scenario.clone());
    let asked = KeptCommand::find(command).of(&asked, plan);
    let mut session =
        Session::start(prepared, &info, Joins::BySearch(&earlier), !common.outputs.plain, on_row)?;
    asked.keep(&session.folder);
    served.began(&asked.name(), &session.folder, session.handle.started_at_unix_us());
    let ending = SearchLoop {
        search: Search::resume(search_plan.settings, &earlier).named(search_plan.values.clone()),
        crowd: Crowd::new(search_plan.crowd.clone()),
        seconds,
        handle: &*session.handle,
        rows: &session.rows,
        has_values: !search_plan.values.is_empty(),
        deadline: search_plan.deadline,
        announced: search_plan.announced(),
        printer: HoldPrinter::new(common.outputs.quiet || common.outputs.json),
        triggers: ProfileTriggers::new(&search_plan.settings.schedule),
        judged_beyond: None,
        served: &served,
    }
    .run(&interrupt, &mut session.watchers, live::open(plan, common, served.addresses()));
    let folder = session.folder.clone();
    let exit = served.apart(|| session.finish(ending))?;
    served.ended(&folder);
    if ending == Some(Ending::Interrupted) {
        let resume = shell::flag("--resume", &folder);
        say(&format!("to continue this search: throng find … {resume}"));
    }
    Ok(exit)
}

/// A search and the run that it drives.
struct SearchLoop<'a> {
    search: Search,
    crowd: Crowd,
    seconds: Seconds,
    handle: &'a dyn Generator,
    rows: &'a SyncSender<Row>,
    /// Whether a value varies, and not the size of the crowd.
    has_values: bool,
    deadline: RunTime,
    announced: Announced,
    printer: HoldPrinter,
    /// When the server is profiled.
    triggers: ProfileTriggers,
    /// What users see without load, beyond which those who play the crowd judge them.
    judged_beyond: Option<Unloaded>,
    /// Who else wants to know how far it has come.
    served: &'a Served,
}

impl SearchLoop<'_> {
    /// Runs until the search, the user, a signal or the time budget ends it; `None` if a guard of
    /// the engine does.
    fn run(
        &mut self,
        interrupt: &Interrupt,
        watchers: &mut Watchers,
        display: Box<dyn Display>,
    ) -> Option<Ending> {
        let ending = self.until_end(interrupt, watchers, display);
        self.publish(true);
        ending
    }

    fn until_end(
        &mut self,
        interrupt: &Interrupt,
        watchers: &mut Watchers,
        mut display: Box<dyn Display>,
    ) -> Option<Ending> {
        let mut show_at = Instant::now();
        self.judge(); // A search that goes on may know it already.
        loop {
            if interrupt.is_set() {
                return Some(Ending::Interrupted);
            }
            if self.handle.is_finished() || self.handle.is_stopped() {
                return None;
            }
            self.take_seconds();
            if !self.has_values && self.seconds.tries_again(self.wanted()) {
                self.crowd.begin_anew();
            }
            if let Some(failure) = self.unreachable() {
                say(&format!("nobody is served, whatever the load: {failure}; the search ends"));
                return Some(Ending::Complete);
            }
            if self.search.end().is_some() {
                return Some(Ending::Complete);
            }
            if self.handle.now() >= self.deadline.min(self.handle.ends_at()) {
                say("the time budget is used up; the report holds what the search found so far");
                return Some(Ending::Complete);
            }
            if let Some(correction) = self.announced.correction(self.handle.now()) {
                say(&correction);
            }
            self.adjust();
            if Instant::now() >= show_at {
                show_at += SHOW_EVERY;
                self.publish(false);
                session::keep_marks(self.served.marks(), self.handle.now(), self.rows);
                watchers.is_full(self.triggers.is_near_limit);
                watchers.look(self.triggers.has_failed);
                let (live, servers, progress) =
                    (self.handle.live(), watchers.figures(), self.search.progress());
                let state = State {
                    live: &live,
                    objectives: &[],
                    servers: &servers,
                    search: Some(&progress),
                };
                if display.show(&state) {
                    return Some(Ending::Interrupted);
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Tells others how far it has come; `is_over`: nothing more is held, for whatever reason.
    fn publish(&self, is_over: bool) {
        if let Some(figures) = self.served.figures() {
            figures.set_search(self.search.progress(), is_over);
        }
        self.served.look_at_workers(self.handle);
    }

    /// Why a search is of no use. Of values that vary, such as the target itself, another one may
    /// be reached.
    fn unreachable(&self) -> Option<Failure> {
        self.seconds.unreachable(self.wanted()).filter(|_| !self.has_values)
    }

    /// The size that the crowd should have now.
    fn wanted(&self) -> u32 {
        self.search.wants().max(self.crowd.fixed())
    }

    /// Passes closed seconds on to the search.
    fn take_seconds(&mut self) {
        self.crowd.note_failed(self.seconds.take_failed());
        for seen in self.seconds.take() {
            self.printer.second(seen.second, seen.quality);
            let second = Second {
                at: seen.ends_at(),
                users: seen.users(),
                bad: seen.quality.bad_users(),
                bad_by_patterns: seen.quality.bad_by_patterns(),
                clauses: seen.quality.clauses,
                media: seen.media,
                delay_ms: seen.delay_ms,
                is_limited: seen.is_limited || self.crowd.has_failed_by_generator(),
                is_complete: self.crowd.was_complete(seen.ends_at()),
            };
            let is_bad = seen.quality.is_bad(Goal::Acceptable);
            self.triggers.on_second(&self.search.progress(), second.is_complete, is_bad);
            for row in self.search.second(&second) {
                self.printer.step(&row, self.search.progress().passing);
                // Without a store there is nowhere to write it.
                let _ = self.rows.send(Row::Hold(Box::new(row)));
            }
            // Before the seconds after it, which other bounds judged.
            self.judge();
            if let Some(end) = self.search.end() {
                self.printer.end(&why(end, self.seconds.limited_by().as_deref()));
                return;
            }
        }
    }

    /// Has users judged beyond what they see without load, once the search knows it.
    fn judge(&mut self) {
        let Some(unloaded) = self.search.unloaded().copied() else { return };
        if self.judged_beyond.replace(unloaded) != Some(unloaded) {
            self.handle.judge_beyond(unloaded);
            self.crowd.judged_anew();
            self.printer.unloaded(&unloaded);
        }
    }

    fn adjust(&mut self) {
        let (handle, now) = (self.handle, self.handle.now());
        if now < RunTime(0) {
            return; // The baseline of the idle server.
        }
        let wants = self.wanted();
        self.crowd.adjust(wants, now, |step| match step {
            CrowdAction::Call { cohort, place, at, source_ip } => {
                Some(handle.add_participant(NewParticipant {
                    participant: None,
                    cohort,
                    place,
                    at,
                    source_ip,
                }))
            }
            CrowdAction::Dismiss(participant) => {
                handle.remove_participant(participant);
                None
            }
        });
        if handle.has_made_changes() {
            self.crowd.confirmed(now);
        }
    }
}

/// The end of a search in words. `limited_by`: what the generator lacked, if it did.
fn why(end: &End, limited_by: Option<&str>) -> String {
    let why = match end {
        End::Found => "the limit is found",
        End::Ceiling => "the largest crowd that may be tried is served well",
        End::GeneratorLimited => {
            let limit = limited_by.map_or_else(String::new, |limit| format!(" ({limit})"));
            return format!(
                "the generator was the limit too often{limit}: the search ends with what it could \
                 judge"
            );
        }
        End::NeverPasses => "not even the smallest crowd is served well",
        End::TooNoisy => "this host is too noisy: seconds are bad for other reasons than the load",
        End::NotSustained => "a crowd below the limit is served well, but not for long",
        End::NoRecovery => "the server does not recover after the load that failed",
    };
    why.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_the_generator_ended_says_by_what_limit() {
        let limit = "thread 0 used 93 % of its core, more than 70 %";
        assert_eq!(
            why(&End::GeneratorLimited, Some(limit)),
            format!(
                "the generator was the limit too often ({limit}): the search ends with what it could judge"
            )
        );
        // It is not the reason of another end.
        assert_eq!(why(&End::Found, Some(limit)), "the limit is found");
    }
}

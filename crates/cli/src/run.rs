//! `throng run` and `throng view`: plays a scenario as planned.

use std::time::{Duration, Instant};

use throng_observation::run::{Ending, Row};
use throng_report::ObjectiveResult;
use throng_scenario::Scenario;

use crate::args::{Common, Outputs};
use crate::console::{CliError, Exit, Interrupt, say};
use crate::kept::KeptCommand;
use crate::live::{self, Display, State};
use crate::rolling_objectives::RollingObjectives;
use crate::served::{Outlets, Served};
use crate::session::{self, Joins, Prepared, Session};
use crate::watchers::{self, Watchers};

/// How often the display is updated.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// How often objectives are judged during the run.
const JUDGE_EVERY: Duration = Duration::from_secs(2);

/// Plays `scenario` and reports; the exit code says how it ended. `asked` is kept, so that it can
/// be done again.
pub(crate) fn run(
    scenario: &Scenario,
    common: &Common,
    asked: KeptCommand,
) -> Result<Exit, CliError> {
    throng_engine::share_one_arena();
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let plan = scenario.plan();
    if common.dry_run {
        return session::describe(&plan, common.fleet.plays_here());
    }
    if let Some(problem) = session::foreign_source(&plan) {
        return Err(CliError::usage(problem));
    }
    let Outputs { prometheus, otlp, serve, .. } = &common.outputs;
    let outlets = Outlets::take(prometheus.as_ref(), otlp.as_deref(), serve.as_ref())?;
    let prepared = Prepared::new(scenario, &plan, common)?.with_fleet(false, &interrupt)?;
    let warnings = prepared.with_left_out(session::warnings(&plan, &prepared.pages));
    session::print_warnings(&warnings);
    let info = prepared.info(warnings);
    watchers::announce_baseline(&plan);
    let served = outlets.of_run(&info, common.outputs.otlp_traces, &interrupt)?;
    let prepared = prepared.with_traces(served.traces());
    let display = live::open(&plan, common, served.addresses());
    let shows_objectives = display.shows_objectives();
    let is_judged = !plan.objectives.is_empty()
        && (common.until_missed
            || shows_objectives
            || prometheus.is_some()
            || otlp.is_some()
            || watchers::wait_for_failure(&plan));
    let rolling = is_judged.then(|| RollingObjectives::new(info.clone()));
    let on_row = {
        let (rolling, figures) = (rolling.clone(), served.figures());
        move |row: &Row| {
            rolling.iter().for_each(|rolling| rolling.take(row));
            figures.iter().for_each(|figures| figures.take(row));
        }
    };
    let asked = asked.of(scenario, &plan);
    let mut session = Session::start(prepared, &info, Joins::Planned, !shows_objectives, on_row)?;
    asked.keep(&session.folder);
    served.began(&asked.name(), &session.folder, session.handle.started_at_unix_us());
    let judged = Judged { rolling, served: &served, until_missed: common.until_missed };
    let ending = supervise(&mut session, &interrupt, display, &judged);
    let folder = session.folder.clone();
    let exit = served.apart(|| session.finish(ending))?;
    served.ended(&folder);
    Ok(exit)
}

/// How a run is judged while it goes on.
struct Judged<'a> {
    rolling: Option<RollingObjectives>,
    /// Who else wants to know.
    served: &'a Served,
    /// Whether a missed objective ends it.
    until_missed: bool,
}

impl Judged<'_> {
    fn objectives(&self) -> Vec<ObjectiveResult> {
        let objectives = self.rolling.as_ref().map(RollingObjectives::judge).unwrap_or_default();
        self.served.figures().iter().for_each(|figures| figures.set_objectives(&objectives));
        objectives
    }
}

/// Shows the run until its end; the user, a signal or, with `until_missed`, a missed objective ends
/// it early. Starts profiles at their moments. Returns how the run ended, if the engine does not
/// know it.
fn supervise(
    session: &mut Session,
    interrupt: &Interrupt,
    mut display: Box<dyn Display>,
    judged: &Judged<'_>,
) -> Option<Ending> {
    let Session { handle, watchers, rows, .. } = session;
    let (mut ending, mut is_stopping, mut has_missed) = (None, false, false);
    let mut judge_at = Instant::now() + JUDGE_EVERY;
    let mut objectives = judged.objectives();
    let mut show = |objectives: &[ObjectiveResult], watchers: &Watchers| {
        let (live, servers) = (handle.live(), watchers.figures());
        display.show(&State { live: &live, objectives, servers: &servers, search: None })
    };
    while !handle.is_finished() {
        let person_quits = show(&objectives, watchers);
        if !is_stopping && (person_quits || interrupt.is_set()) {
            handle.stop();
            is_stopping = true;
        }
        if judged.rolling.is_some() && !is_stopping && Instant::now() >= judge_at {
            judge_at = Instant::now() + JUDGE_EVERY;
            objectives = judged.objectives();
            has_missed |= objectives.iter().any(ObjectiveResult::is_missed);
            if judged.until_missed && has_missed {
                handle.stop();
                (ending, is_stopping) = (Some(Ending::Complete), true);
            }
        }
        if !is_stopping {
            watchers.look(has_missed);
        }
        session::keep_marks(judged.served.marks(), handle.now(), rows);
        judged.served.look_at_workers(&**handle);
        std::thread::sleep(SHOW_EVERY);
    }
    show(&objectives, watchers);
    judged.served.look_at_workers(&**handle);
    // The messages below are printed after the full-screen view is closed.
    drop(display);
    if ending.is_some() {
        say("an objective was missed: the run ended, as --until-missed asks");
    }
    ending
}

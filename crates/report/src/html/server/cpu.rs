//! Where the CPU time went: threads stacked over time and over users, and the hottest threads by
//! name.

use std::collections::BTreeMap;

use throng_analysis::experiment::mean;
use throng_observation::host::catalogue::PROCESS_CPU;
use throng_observation::units::percent;

use super::super::markup::{self, table};
use super::super::stack::{Layer, Stack};
use super::charts::ServerCharts;

/// Groups of threads with a colour of their own; the others are one.
const GROUPS_MAX: usize = 5;
/// Threads of the table.
const THREADS_MAX: usize = 12;
/// Colours from the bottom of a stack up; the last is for what is left.
const COLOURS: [u8; 6] = [1, 4, 3, 2, 5, 6];

/// CPU by group of threads over the run.
pub(super) fn over_time(charts: &ServerCharts<'_>) -> String {
    let layers = layers(charts);
    let ratio = threads_of_processes(charts);
    let note = match ratio {
        Some(ratio) => format!(
            "Threads of one kind together. Dashed: the processes as the kernel counts them; the \
             threads come to {} of it.",
            percent(ratio)
        ),
        None => "Threads of one kind together.".into(),
    };
    Stack {
        title: "CPU by thread",
        unit: "cores",
        note: &note,
        x_unit: "s",
        x: &charts.time.starts,
        layers,
        whole: processes(charts).map(|values| ("processes".to_owned(), values)),
    }
    .render()
}

/// The same over the number of viewers: which kind of thread grows with them.
pub(super) fn over_users(charts: &ServerCharts<'_>) -> String {
    let mut points_by_users: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    let most =
        charts.time.points.iter().filter_map(|p| p.crowd.map(|sums| sums[2])).fold(0.0, f64::max);
    // More than a hundred places cannot be distinguished.
    let step = (most / 100.0).ceil().max(1.0);
    for (index, point) in charts.time.points.iter().enumerate() {
        if let Some(sums) = point.crowd {
            let users = (sums[2] / step).round() * step;
            points_by_users.entry(users as i64).or_default().push(index);
        }
    }
    if points_by_users.len() < 3 {
        return String::new();
    }
    let by_users = |values: &[Option<f64>]| {
        let at = |at: &usize| values.get(*at).copied().flatten();
        points_by_users.values().map(|points| mean(points.iter().filter_map(at))).collect()
    };
    let layers = layers(charts)
        .into_iter()
        .map(|layer| Layer { values: by_users(&layer.values), ..layer })
        .collect();
    let users: Vec<i64> = points_by_users.keys().copied().collect();
    Stack {
        title: "CPU by thread against viewers",
        unit: "cores",
        note: "Mean over all moments with as many viewers playing. Threads whose use grows faster \
               than the number of viewers saturate first.",
        x_unit: "viewers",
        x: &users,
        layers,
        whole: processes(charts).map(|values| ("processes".to_owned(), by_users(&values))),
    }
    .render()
}

fn layers(charts: &ServerCharts<'_>) -> Vec<Layer> {
    charts
        .threads
        .groups(charts.grid, charts.knowledge, GROUPS_MAX)
        .into_iter()
        .zip(COLOURS)
        .filter(|(group, _)| group.cpu_s > 0.0)
        .map(|(group, colour)| {
            let count = if group.count > 1 { format!(" ({})", group.count) } else { String::new() };
            Layer { name: format!("{}{count}", group.name), colour, values: group.cores }
        })
        .collect()
}

fn processes(charts: &ServerCharts<'_>) -> Option<Vec<Option<f64>>> {
    let list = charts.host.metric(PROCESS_CPU);
    let mut sums = vec![None; charts.grid.count];
    list.iter().for_each(|process| process.add_to(charts.grid, &mut sums));
    (!list.is_empty()).then_some(sums)
}

fn threads_of_processes(charts: &ServerCharts<'_>) -> Option<f64> {
    let processes = charts.host.total(PROCESS_CPU).filter(|total| *total > 0.0)?;
    Some(charts.threads.cpu_s() / processes)
}

/// The busiest threads, their work, and the setting that would relieve them.
pub(super) fn hottest(charts: &ServerCharts<'_>) -> String {
    let busy: Vec<_> = charts.threads.0.iter().filter(|thread| thread.cpu_s > 0.0).collect();
    if busy.is_empty() {
        return String::new();
    }
    let (mut is_any_known, mut shown) = (false, std::collections::BTreeSet::new());
    let rows: Vec<Vec<String>> = busy
        .iter()
        .take(THREADS_MAX)
        .map(|thread| {
            let known = charts.knowledge.thread(thread.process, thread.name);
            is_any_known |= known.is_some();
            // Threads of one kind show their work once.
            let known =
                known.filter(|_| shown.insert(charts.knowledge.group(thread.process, thread.name)));
            vec![
                thread.name.to_owned(),
                thread.tid.to_owned(),
                percent(thread.cpu_p50),
                percent(thread.cpu_max),
                format!("{:.2} s", thread.cpu_s),
                markup::known(thread.wait_p95, percent),
                known.map(|known| known.meaning.clone()).unwrap_or_default(),
                known.map(throng_observation::pack::ThreadMeaning::help).unwrap_or_default(),
            ]
        })
        .collect();
    let head = [
        "thread",
        "tid",
        "CPU p50",
        "CPU max",
        "CPU time",
        "waited p95",
        "what it does",
        "what changes it",
    ];
    let (head, rows) = if is_any_known {
        (head.to_vec(), rows)
    } else {
        let short = rows.into_iter().map(|row| row.into_iter().take(6).collect()).collect();
        (head.iter().take(6).copied().collect(), short)
    };
    format!(
        "<h3>The hottest threads</h3><div class=\"meanings\">{}</div><p class=\"over\">{} threads \
         used CPU time. CPU is a share of one core, the most that a thread can use; waited: share \
         of the time in which it was runnable and had no CPU.</p>",
        table(&head, &rows),
        busy.len()
    )
}

//! The rooms of a chat in a price: one room with all viewers, whether it can be joined, and rooms
//! that can.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::demand::{ChatCost, ChatWork};
use throng_analysis::sizing::{Estimate, RoomForecast, RoomPart, RoomRequest, RoomVerdict};
use throng_observation::run::RunData;
use throng_observation::units::{bytes, duration_ms, grouped, number, percent};
use throng_observation::{VcardPolicy, untrusted};
use throng_scenario::prices::{ComputePrices, PriceTable};

use super::text::{digits, table};
use super::{HOUR_S, PriceRequest};
use crate::columns::said;
use crate::summary::Summary;

/// The chat of a crowd.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatSize {
    /// All viewers in one room.
    pub room: RoomForecast,
    /// The cheapest way to have rooms of at most `room.largest_room`, each with a thread of its
    /// own; `null` without prices of compute.
    pub rooms_cost: Option<RoomsCost>,
}

/// What rooms with a thread each cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoomsCost {
    /// The type of machine; `null` where compute is charged by the CPU.
    pub machine: Option<String>,
    /// How many machines, or CPUs.
    pub count: f64,
    /// For the event.
    pub amount: f64,
}

impl ChatSize {
    /// The chat that `request` asks for; `None` if the run does not tell what one costs.
    pub(super) fn of(
        run: &RunData,
        summary: &Summary,
        request: &PriceRequest,
        prices: Option<&PriceTable>,
    ) -> Option<Self> {
        let cost = summary.chat_cost.as_ref()?;
        let room = RoomForecast::of(
            cost,
            RoomRequest {
                participants: f64::from(request.viewers),
                vcards_per_pair: vcards_per_pair(run, cost),
                within_s: request.hours * HOUR_S,
                target_utilisation: request.target_utilisation,
            },
        );
        let rooms_cost =
            prices.and_then(|prices| rooms_cost(&prices.compute, room.rooms, request.hours));
        Some(Self { room, rooms_cost })
    }

    /// Whether all viewers can be in one room.
    pub(super) fn is_joinable(&self) -> bool {
        self.room.verdict != RoomVerdict::NotJoinable
    }

    /// Bytes that participants receive in an event of `hours`.
    pub(super) fn bytes(&self, hours: f64) -> f64 {
        self.room.joins_bytes
            + self.room.talk.map_or(0.0, |talk| talk.bytes_per_second) * hours * HOUR_S
    }

    /// Why no room of this size has a price; `None` if it can be joined.
    pub(super) fn problem(&self) -> Option<String> {
        let room = &self.room;
        let what = match room.verdict {
            RoomVerdict::Joinable => return None,
            RoomVerdict::Doubtful => "may be more than can be joined",
            RoomVerdict::NotJoinable => "cannot be joined",
        };
        let deliveries: Vec<String> = room
            .parts
            .iter()
            .filter(|part| part.is_quadratic)
            .map(|part| format!("{} {}", grouped(part.count, 0), part.work.name()))
            .collect();
        let in_time_at_full_use =
            room.verdict == RoomVerdict::NotJoinable && room.joins_s.low <= room.within_s;
        let target =
            if in_time_at_full_use { ", which may be used up to the target only" } else { "" };
        Some(format!(
            "One room of {} {what} within {}: {} are {} on one thread{target}",
            grouped(room.participants, 0),
            time(room.within_s),
            deliveries.join(" and "),
            cpu_seconds(room.joins_s.value, room.extrapolation.order_of_magnitude_only)
        ))
    }
}

/// vCards for each pair: by what was planned, else as many as there were for each presence.
fn vcards_per_pair(run: &RunData, cost: &ChatCost) -> f64 {
    let count = |work| cost.cost(work).map_or(0.0, |cost| cost.count as f64);
    let measured = (count(ChatWork::Vcard) / count(ChatWork::Presence).max(1.0)).min(1.0);
    let Some(plan) = &run.info.plan else { return measured };
    let (mut all, mut of_all, mut has_authors) = (0.0, 0.0, false);
    // Who only watches is in no room, and asks for no vCards.
    for cohort in plan.cohorts.iter().filter(|cohort| cohort.is_in_chat) {
        all += f64::from(cohort.size);
        of_all += if cohort.vcards == VcardPolicy::All { f64::from(cohort.size) } else { 0.0 };
        has_authors |= cohort.vcards == VcardPolicy::Authors;
    }
    match (of_all > 0.0, has_authors) {
        (true, _) => of_all / all,
        (false, true) => measured,
        (false, false) => 0.0,
    }
}

fn rooms_cost(compute: &ComputePrices, rooms: f64, hours: f64) -> Option<RoomsCost> {
    match compute {
        // A thread of each room, and no room's on two machines.
        ComputePrices::Machines(machines) => machines
            .iter()
            .map(|machine| {
                let count = (rooms / machine.vcpus.floor().max(1.0)).ceil();
                let amount = count * machine.per_hour * hours;
                RoomsCost { machine: Some(machine.name.clone()), count, amount }
            })
            .min_by(|a, b| a.amount.total_cmp(&b.amount)),
        ComputePrices::Amounts { vcpu_hour, .. } => {
            Some(RoomsCost { machine: None, count: rooms, amount: rooms * vcpu_hour * hours })
        }
    }
}

/// The section of the text.
pub(super) fn lines(out: &mut String, chat: &ChatSize, currency: Option<&str>) {
    let room = &chat.room;
    let rough = room.extrapolation.order_of_magnitude_only;
    let _ = writeln!(
        out,
        "\nChat: one room of {}, on thread {}",
        grouped(room.participants, 0),
        untrusted::name(&room.thread)
    );
    let mut rows = vec![
        ["until all are in", "how many", "each", "CPU", "received"].map(str::to_owned).to_vec(),
    ];
    rows.extend(room.parts.iter().map(|part| part_row(part, rough)));
    let sum = |name: &str, seconds: f64| {
        vec![name.to_owned(), String::new(), String::new(), cpu_seconds(seconds, rough)]
    };
    rows.push(sum("in proportion to the chatters", room.linear_s));
    rows.push(sum("in proportion to their square", room.quadratic_s));
    let mut total = sum("all", 0.0);
    total.pop();
    total.extend([with_interval(room.joins_s, rough), bytes(room.joins_bytes)]);
    rows.push(total);
    table(out, &rows);
    said(out, "  ", sentences(chat, currency));
}

fn part_row(part: &RoomPart, rough: bool) -> Vec<String> {
    let law = match part.work {
        ChatWork::Presence => " (N (N + 1))",
        ChatWork::Vcard if part.is_quadratic => " (N²)",
        _ => " (N)",
    };
    let each = if part.cpu_us > 0.0 {
        format!("{} µs", grouped(part.cpu_us, 0))
    } else {
        "part of the others".into()
    };
    vec![
        part.work.name().into(),
        format!("{}{law}", grouped(part.count, 0)),
        each,
        cpu_seconds(part.cpu_s.value, rough),
        bytes(part.bytes),
    ]
}

fn sentences(chat: &ChatSize, currency: Option<&str>) -> Vec<String> {
    let room = &chat.room;
    let rough = room.extrapolation.order_of_magnitude_only;
    let mut all: Vec<String> = chat.problem().into_iter().collect();
    all.push(format!("The last join costs {} of the thread", duration_ms(room.last_join_ms)));
    if let Some(full_from) = room.full_from {
        all.push(format!(
            "At {} joins a second, as in the run, the thread is full from {} in the room on",
            number(room.joins_per_second),
            grouped(full_from.floor(), 0)
        ));
    }
    if let Some(talk) = &room.talk {
        let share = if rough {
            format!("~{}", percent(digits(talk.thread.value, 2)))
        } else {
            percent(talk.thread.value)
        };
        all.push(format!(
            "While they talk as in the run ({} messages a second, {} deliveries) it is used to \
             {share}{}",
            number(talk.messages_per_second),
            grouped(talk.deliveries_per_second, 0),
            if talk.thread.value > 1.0 {
                ": more than it has, so that messages are ever later"
            } else {
                ""
            }
        ));
    }
    if room.rooms > 1.0 {
        let priced =
            chat.rooms_cost.as_ref().zip(currency).map_or_else(String::new, |(cost, currency)| {
                let what = cost
                    .machine
                    .as_ref()
                    .map_or_else(|| "vCPUs".to_owned(), |machine| format!("× {machine}"));
                format!(
                    "; {} {what} are {} {currency}",
                    grouped(cost.count, 0),
                    grouped(cost.amount, 2)
                )
            });
        all.push(format!(
            "{} rooms of at most {}, each with a server process of its own, can be joined as fast \
             and can talk{priced}",
            grouped(room.rooms, 0),
            grouped(room.largest_room, 0)
        ));
    }
    if room.extrapolation.is_one() {
        all.push(format!(
            "It is extrapolated ×{:.1} from the largest room of the run; each delivery is taken \
             to cost the same in a larger room",
            room.extrapolation.factor
        ));
    }
    all
}

fn cpu_seconds(seconds: f64, rough: bool) -> String {
    let figure = if rough { format!("~{}", number(digits(seconds, 2))) } else { number(seconds) };
    let long = if seconds >= 600.0 { format!(" ({})", time(seconds)) } else { String::new() };
    format!("{figure} CPU-seconds{long}")
}

fn with_interval(figure: Estimate, rough: bool) -> String {
    let end = |value: f64| number(if rough { digits(value, 2) } else { value });
    format!("{}, {}–{}", cpu_seconds(figure.value, rough), end(figure.low), end(figure.high))
}

/// `3.3 h`
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= HOUR_S => format!("{} h", trimmed(s / HOUR_S)),
        s if s >= 60.0 => format!("{} min", trimmed(s / 60.0)),
        s => format!("{} s", trimmed(s)),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;

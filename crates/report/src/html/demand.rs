//! The demand of a user on each resource, which is exhausted first, and which would be next.

use throng_analysis::demand::Demand;
use throng_observation::units::grouped;

use super::markup::{escape, known, table};
use crate::cause::{amount, join_cost};
use crate::summary::Summary;

/// Empty without a demand model.
pub(crate) fn render(summary: &Summary) -> String {
    if summary.demand.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = summary.demand.iter().map(row).collect();
    let mut out = String::from("<h2>What a user costs</h2>");
    out += &table(
        &[
            "Resource",
            "each user",
            "± (95 %)",
            "at the top load",
            "limit",
            "used up at users (95 %)",
            "note",
        ],
        &rows,
    );
    if let Some(cost) = join_cost(summary) {
        out += &format!("<p>A join costs {}, on top of the present users.</p>", escape(&cost));
    }
    out += &format!(
        "<p class=\"over\">{}</p>",
        escape(
            "From the loads that passed, one point a load; the top load is the largest of them. \
             The resource that is used up first comes first; the next one would limit the crowd \
             once the first is extended. An extrapolation assumes that the growth at the top load \
             goes on up to the limit, and is optimistic."
        )
    );
    out
}

fn row(demand: &Demand) -> Vec<String> {
    let range = demand.users_low.zip(demand.users_high);
    let range = range.map_or_else(String::new, |(low, high)| {
        format!(" ({}–{})", grouped(low, 0), grouped(high, 0))
    });
    let mut note = Vec::new();
    match demand.curve {
        Some(curve) if curve < 0.0 => {
            note.push("curved: the more users, the less each costs".to_owned());
        }
        Some(_) => note.push("curved: the more users, the more each costs".to_owned()),
        None => {}
    }
    if demand.extrapolated && demand.users.is_some() {
        note.push("extrapolated".to_owned());
    }
    note.extend(demand.setting.as_ref().map(|setting| format!("setting: {setting}")));
    vec![
        demand.name(),
        amount(demand, demand.per_user),
        amount(demand, demand.per_user_error),
        amount(demand, demand.used),
        known(demand.limit, |limit| amount(demand, limit)),
        known(demand.users, |users| format!("{}{range}", grouped(users, 0))),
        note.join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use throng_analysis::demand::Resource;

    use super::*;

    fn demand(curve: Option<f64>) -> Demand {
        Demand {
            resource: Resource::HostCpu,
            instance: String::new(),
            group: None,
            setting: None,
            unit: "ratio".into(),
            per_user: 0.02,
            per_user_error: 0.001,
            idle: 0.1,
            curve,
            used: 1.0,
            limit: None,
            users: None,
            users_low: None,
            users_high: None,
            extrapolated: false,
            loads: 8,
            fit: None,
        }
    }

    #[test]
    fn users_are_in_groups_as_all_large_numbers() {
        let range = (Some(142_350.0), Some(218_603.0));
        let demand = Demand {
            users: Some(180_476.0),
            users_low: range.0,
            users_high: range.1,
            ..demand(None)
        };
        assert_eq!(row(&demand)[5], "180,476 (142,350–218,603)");
    }

    #[test]
    fn the_direction_of_a_curve_is_said() {
        let note = |curve| row(&demand(curve)).pop();
        assert_eq!(
            note(Some(1e-4)).as_deref(),
            Some("curved: the more users, the more each costs")
        );
        assert_eq!(
            note(Some(-1e-4)).as_deref(),
            Some("curved: the more users, the less each costs")
        );
        assert_eq!(note(None).as_deref(), Some(""));
    }
}

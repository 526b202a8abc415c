//! A law of every answer: the crowd that a change would give uses no more of what the change leaves
//! than there is, by `throng price` of the same run folder.

use serde_json::Value;

/// A resource in `demand[]`, what `throng price` calls it, and the one finding whose change gives
/// more of it.
const KEPT: [(&str, &str, &str); 7] = [
    ("host_cpu", "cpu", "cpu_full"),
    ("process_cpu", "cpu", "cpu_full"),
    ("nic_sent", "nic_sent", "line_rate"),
    ("memory", "memory", "memory"),
    ("descriptors", "descriptors", "file_descriptors"),
    ("ports", "ports", "local_ports"),
    ("conntrack", "conntrack", "conntrack"),
];
/// A need of this much more than there is contradicts: `price` is asked for whole viewers.
const SLACK: f64 = 1.02;

/// The crowd that the change would give, by `summary.json`; `None` where nothing is predicted.
#[must_use]
pub fn predicted(summary: &Value) -> Option<f64> {
    summary["bottleneck"]["prediction"]["users"].as_f64()
}

/// The arguments by which `throng price RUN` says what `users` need, used to the full.
#[must_use]
pub fn price_of(users: f64) -> [String; 5] {
    let viewers = format!("{:.0}", users.floor().max(1.0));
    ["--viewers", &viewers, "--target-utilisation", "1", "--json"].map(str::to_owned)
}

/// The need of that crowd that is beyond a limit, in a sentence; `None` if the two agree. `price`
/// is what [`price_of`] the crowd prints.
#[must_use]
pub fn contradiction(summary: &Value, price: &Value) -> Option<String> {
    let users = predicted(summary)?;
    let finding = summary["bottleneck"]["finding"].as_str().unwrap_or_default();
    KEPT.into_iter().filter(|(.., relieved_by)| *relieved_by != finding).find_map(
        |(resource, sized, _)| {
            let (limit, need) = (limit(summary, resource)?, need(price, sized)?);
            let is_beyond = need > SLACK * limit;
            is_beyond.then(|| {
                format!(
                    "it would give {users:.0}, which need {need:.1} of {limit:.1} {sized} by its \
                     price"
                )
            })
        },
    )
}

/// The limit of a resource of which the run has one; the needs of several are added up, and their
/// limits are not.
fn limit(summary: &Value, resource: &str) -> Option<f64> {
    let mut of_it =
        summary["demand"].as_array()?.iter().filter(|demand| demand["resource"] == resource);
    let one = of_it.next()?;
    if of_it.next().is_none() { one["limit"].as_f64() } else { None }
}

fn need(price: &Value, resource: &str) -> Option<f64> {
    let needs = price["size"]["needs"].as_array()?;
    needs.iter().find(|need| need["resource"] == resource)?["used"]["value"].as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A thread is full, and more of them would give 144 users, of which all need `cores` of two.
    fn said(finding: &str, cores: f64) -> Option<String> {
        let summary = json!({
            "bottleneck": { "finding": finding, "prediction": { "users": 144.0 } },
            "demand": [
                { "resource": "host_cpu", "limit": 2.0 },
                { "resource": "memory", "limit": 1e9 },
                { "resource": "memory", "limit": 1e9 },
                { "resource": "nic_sent", "limit": null },
            ],
        });
        let need = |resource: &str, value: f64| json!({ "resource": resource, "used": { "value": value } });
        let needs = [need("cpu", cores), need("memory", 1.5e9), need("nic_sent", 1e12)];
        contradiction(&summary, &json!({ "size": { "needs": needs } }))
    }

    #[test]
    fn processes_that_need_more_cores_than_there_are_contradict() {
        let summary = |limit: f64| {
            json!({
                "bottleneck": { "finding": "gil", "prediction": { "users": 80.0 } },
                "demand": [{ "resource": "process_cpu", "limit": limit }],
            })
        };
        let price =
            json!({ "size": { "needs": [{ "resource": "cpu", "used": { "value": 3.0 } }] } });
        let expect = "it would give 80, which need 3.0 of 2.0 cpu by its price";
        assert_eq!(contradiction(&summary(2.0), &price).as_deref(), Some(expect));
        assert_eq!(contradiction(&summary(4.0), &price), None);
    }

    #[test]
    fn a_crowd_that_needs_more_cores_than_there_are_contradicts() {
        let expect = "it would give 144, which need 3.4 of 2.0 cpu by its price";
        assert_eq!(said("one_thread_full", 3.4).as_deref(), Some(expect));
        assert_eq!(said("one_thread_full", 1.9), None);
        assert_eq!(said("cpu_full", 3.4), None, "the change gives more of them");
        assert_eq!(contradiction(&json!({}), &json!({})), None, "nothing is predicted");
    }
}

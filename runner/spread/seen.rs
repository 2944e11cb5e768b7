//! What the API says of a Job's pods, as far as it matters to whoever follows them.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::GATE;
use super::state::Pod;

/// Returns the pod that works on each shard: one that has ended well, else one that has not ended, else the newest.
pub(super) fn newest(pods: &Json, shards: usize) -> Vec<Option<&Json>> {
    let mut newest: Vec<Option<&Json>> = vec![None; shards];
    let rank = |pod: &Json| {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        let age = pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
        (phase == "Succeeded", phase != "Failed", age)
    };
    for pod in pods["items"].as_array().into_iter().flatten() {
        let index = &pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"];
        let Some(index) = index.as_str().and_then(|index| index.parse::<usize>().ok()) else { continue };
        let Some(known) = newest.get_mut(index) else { continue };
        if known.is_none_or(|known| rank(pod) > rank(known)) {
            *known = Some(pod);
        }
    }
    newest
}

pub(super) fn reason(pod: &Pod) -> &str {
    if pod.reason.is_empty() { "no reason is known" } else { &pod.reason }
}

/// Reads `1,3-5`, as the Job controller writes indexes.
pub(super) fn indexes(text: &str) -> BTreeSet<usize> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

pub(super) fn encoded(time: &str) -> String {
    time.replace('+', "%2B").replace(':', "%3A")
}

/// Returns what of a pod matters here.
pub(super) fn pod_of(pod: &Json) -> Pod {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let (metadata, status) = (&pod["metadata"], &pod["status"]);
    let container = &status["containerStatuses"][0]["state"];
    let phase = text(&status["phase"]);
    let unscheduled = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False");
    let terminated = &container["terminated"];
    let reason = if let Some(code) = terminated["exitCode"].as_i64() {
        format!("exit status {code}, {}", text(&terminated["reason"]))
    } else if let Some(waiting) = container["waiting"].as_object().filter(|_| phase == "Pending") {
        let message = waiting.get("message").map(text).unwrap_or_default();
        format!("{} {message}", waiting.get("reason").map(text).unwrap_or_default()).trim().to_owned()
    } else {
        text(&unscheduled.unwrap_or(status)["message"])
    };
    Pod {
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        has_run: container["running"].is_object() || terminated.is_object(),
        succeeded: phase == "Succeeded",
        ended: matches!(&*phase, "Succeeded" | "Failed"),
        gate: metadata["annotations"][GATE].as_str().map(str::to_owned),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indexes_are_read_as_the_controller_writes_them() {
        assert_eq!(indexes("1,3-5,7"), BTreeSet::from([1, 3, 4, 5, 7]));
        assert_eq!(indexes(""), BTreeSet::new());
    }

    #[test]
    fn a_pod_that_can_not_start_says_why() {
        let pod = json!({
            "metadata": {"name": "p", "uid": "u"},
            "status": {"phase": "Pending", "containerStatuses": [
                {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
            ]},
        });
        let pod = pod_of(&pod);
        assert_eq!((pod.has_run, pod.reason.as_str()), (false, "ImagePullBackOff not found"));
    }
}

//! Memory, from `/proc/meminfo`.

use serde_json::{Value, json};

use super::map;
use crate::host::Map;

/// Returns facts in MiB. Source: `proc_meminfo(5)`, which counts KiB.
pub(super) fn facts(meminfo: &str) -> Map {
    let mib: Vec<(&str, i64)> = meminfo
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            Some((name, rest.split_whitespace().next()?.parse::<i64>().ok()? / 1024))
        })
        .collect();
    let at = |name: &str| mib.iter().find(|(other, _)| *other == name).map(|&(_, mib)| mib);
    let number = |value: Option<i64>| value.map_or(Value::Null, Value::from);
    let less = |all: Option<i64>, part: Option<i64>| Some(all? - part?);
    let (total, free) = (at("MemTotal"), at("MemFree"));
    let nocache = at("Cached").zip(at("Buffers")).zip(free).map(|((cached, buffers), free)| cached + buffers + free);
    let mut facts = map([(
        "memory_mb",
        json!({
            "real": {"total": number(total), "used": number(less(total, free)), "free": number(free)},
            "nocache": {"free": number(nocache), "used": number(less(total, nocache))},
            "swap": {
                "total": number(at("SwapTotal")),
                "free": number(at("SwapFree")),
                "used": number(less(at("SwapTotal"), at("SwapFree"))),
                "cached": number(at("SwapCached")),
            },
        }),
    )]);
    for name in ["MemTotal", "MemFree", "SwapTotal", "SwapFree"] {
        if let Some(value) = at(name) {
            facts.insert(format!("{}_mb", name.to_ascii_lowercase()), value.into());
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_mebibytes() {
        let facts = facts(
            "MemTotal:       16318704 kB\nMemFree:         1048576 kB\nBuffers:          204800 kB\n\
             Cached:          4194304 kB\nSwapCached:            0 kB\nSwapTotal:       2097148 kB\n\
             SwapFree:        2097148 kB\n",
        );
        assert_eq!(facts["memtotal_mb"], 15936);
        assert_eq!(facts["memory_mb"]["real"], json!({"total": 15936, "used": 14912, "free": 1024}));
        assert_eq!(facts["memory_mb"]["nocache"], json!({"free": 5320, "used": 10616}));
        assert_eq!(facts["swapfree_mb"], 2047);
    }
}

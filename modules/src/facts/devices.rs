//! Block devices, from `/sys/block`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Files, map};
use crate::host::Put as _;
use crate::host::{Host, Map, Probe};

/// Names under which a device is known, by kind of name and by device.
struct Links(Vec<(&'static str, BTreeMap<String, Vec<String>>)>);

impl Links {
    fn of(files: Files<'_>) -> Links {
        let by = |folder: &str| {
            let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for name in files.names(folder) {
                if let Some(device) = files.link_name(&format!("{folder}/{name}")) {
                    links.entry(device).or_default().push(name);
                }
            }
            links
        };
        let mut masters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for device in files.names("/sys/block") {
            for below in files.names(&format!("/sys/block/{device}/slaves")) {
                masters.entry(below).or_default().push(device.clone());
            }
        }
        Links(vec![
            ("ids", by("/dev/disk/by-id")),
            ("uuids", by("/dev/disk/by-uuid")),
            ("labels", by("/dev/disk/by-label")),
            ("masters", masters),
        ])
    }

    fn at(&self, device: &str) -> Value {
        let of = |links: &BTreeMap<String, Vec<String>>| json!(links.get(device).cloned().unwrap_or_default());
        self.0.iter().map(|(kind, links)| ((*kind).to_owned(), of(links))).collect::<Map>().into()
    }

    fn first(&self, kind: &str, device: &str) -> Option<&str> {
        let (_, links) = self.0.iter().find(|(name, _)| *name == kind)?;
        links.get(device)?.first().map(String::as_str)
    }

    fn wwn(&self, device: &str) -> Option<&str> {
        let (_, ids) = self.0.first()?;
        ids.get(device)?.iter().find_map(|name| name.strip_prefix("wwn-"))
    }
}

pub(super) fn facts(files: Files<'_>) -> Map {
    let links = Links::of(files);
    let blocks = files.names("/sys/block");
    if blocks.is_empty() {
        return map([("devices", json!({}))]);
    }
    let devices: Map = blocks.into_iter().map(|name| (name.clone(), device(files, &links, &name).into())).collect();
    let all: Map = links.0.iter().map(|(kind, links)| ((*kind).to_owned(), json!(links))).collect();
    map([("devices", devices.into()), ("device_links", all.into())])
}

fn device(files: Files<'_>, links: &Links, name: &str) -> Map {
    let folder = format!("/sys/block/{name}");
    let text = |file: &str| files.text(&format!("{folder}/{file}"));
    let value = |file: &str| text(file).map_or(Value::Null, Value::from);
    let discard = match text("queue/discard_max_hw_bytes").as_deref() {
        Some("0") => "0".into(),
        Some(_) | None => value("queue/discard_granularity"),
    };
    let mut facts = map([
        ("virtual", 1.into()),
        ("links", links.at(name)),
        ("vendor", value("device/vendor")),
        ("model", value("device/model")),
        ("sas_address", value("device/sas_address")),
        ("sas_device_handle", value("device/sas_device_handle")),
        ("removable", value("removable")),
        ("support_discard", discard),
        ("rotational", value("queue/rotational")),
        ("scheduler_mode", text("queue/scheduler").and_then(|text| chosen(&text)).unwrap_or_default().into()),
        ("host", "".into()),
        ("holders", holders(files, &folder)),
    ]);
    if let Some(serial) = text("device/serial") {
        facts.put("serial", serial);
    }
    if let Some(wwn) = links.wwn(name) {
        facts.put("wwn", wwn);
    }
    facts.extend(sizes(files, &folder, None));
    let partitions = files.names(&folder).into_iter().filter(|part| is_partition(name, part));
    let partitions: Map = partitions.map(|part| (part.clone(), partition(files, links, &folder, &part))).collect();
    facts.put("partitions", partitions);
    facts
}

fn partition(files: Files<'_>, links: &Links, disk: &str, name: &str) -> Value {
    let folder = format!("{disk}/{name}");
    let mut facts = map([
        ("links", links.at(name)),
        ("start", files.text(&format!("{folder}/start")).unwrap_or_else(|| "0".to_owned()).into()),
        ("uuid", links.first("uuids", name).map_or(Value::Null, Value::from)),
        ("holders", holders(files, &folder)),
    ]);
    facts.extend(sizes(files, &folder, Some(512.into())));
    facts.into()
}

/// Whether `part` is `sda1` of `sda` or `nvme0n1p1` of `nvme0n1`.
fn is_partition(disk: &str, part: &str) -> bool {
    let Some(rest) = part.strip_prefix(disk) else { return false };
    let digits = rest.strip_prefix('p').unwrap_or(rest);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the size of a sector and of the whole. The kernel counts 512 bytes whatever the sector's size; `unknown`
/// stands for a sector size that is not told, a number where Ansible has one.
fn sizes(files: Files<'_>, folder: &str, unknown: Option<Value>) -> Map {
    let text = |file: &str| files.text(&format!("{folder}/queue/{file}"));
    let told = text("logical_block_size").or_else(|| text("hw_sector_size"));
    let sector_bytes = told.as_deref().and_then(|told| told.parse().ok()).filter(|&bytes| bytes > 0).unwrap_or(512u64);
    let bytes = files.number(&format!("{folder}/size")).and_then(|count| u64::try_from(count).ok()).unwrap_or(0) * 512;
    let sectors = bytes / sector_bytes;
    map([
        ("sectorsize", told.map(Value::from).or(unknown).unwrap_or_else(|| 512.into())),
        ("sectors", sectors.into()),
        ("size", human(sectors * sector_bytes).into()),
    ])
}

/// Writes a size as Ansible does: `20.00 GB` for 20 GiB.
pub(super) fn human(bytes: u64) -> String {
    const UNITS: [(&str, u32); 6] = [("EB", 60), ("PB", 50), ("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10)];
    for (unit, bits) in UNITS {
        if bytes >> bits > 0 {
            return format!("{:.2} {unit}", bytes as f64 / (1u64 << bits) as f64);
        }
    }
    format!("{bytes}.00 Bytes")
}

/// Returns the word in brackets.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// Returns the device-mapper devices that stand on this one.
fn holders(files: Files<'_>, folder: &str) -> Value {
    let folder = format!("{folder}/holders");
    let names = files.names(&folder).into_iter().filter(|name| name.starts_with("dm-"));
    names.map(|name| files.text(&format!("{folder}/{name}/dm/name")).unwrap_or(name)).collect()
}

/// Returns volume groups, logical and physical volumes; asked of LVM only where the kernel has a volume of it.
pub(super) fn lvm(host: &dyn Host) -> Value {
    let files = Files(host);
    let volume = |name: &String| {
        name.starts_with("dm-")
            && files.text(&format!("/sys/block/{name}/dm/uuid")).is_some_and(|uuid| uuid.starts_with("LVM-"))
    };
    if host.uid() != 0 || !files.names("/sys/block").iter().any(volume) {
        return "N/A".into();
    }
    let report = |tool: &str, fields: &str| -> Vec<Vec<String>> {
        let argv = [tool, "--noheadings", "--nosuffix", "--units", "g", "--separator", ",", "-o", fields];
        let output = host.probe(&Probe::new(argv)).unwrap_or_default();
        let row = |line: &str| line.trim().split(',').map(str::to_owned).collect();
        output.stdout.lines().map(row).filter(|row: &Vec<String>| row.len() > 1).collect()
    };
    let keyed = |rows: Vec<Vec<String>>, names: &[&str]| -> Map {
        let entry = |row: Vec<String>| {
            let fields = names.iter().zip(&row[1..]).map(|(name, value)| ((*name).to_owned(), value.as_str().into()));
            (row[0].clone(), Value::from(fields.collect::<Map>()))
        };
        rows.into_iter().map(entry).collect()
    };
    json!({
        "vgs": keyed(
            report("vgs", "vg_name,vg_size,vg_free,lv_count,pv_count"),
            &["size_g", "free_g", "num_lvs", "num_pvs"],
        ),
        "lvs": keyed(report("lvs", "lv_name,lv_size,vg_name"), &["size_g", "vg"]),
        "pvs": keyed(report("pvs", "pv_name,pv_size,pv_free,vg_name"), &["size_g", "free_g", "vg"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        assert_eq!(human(0), "0.00 Bytes");
        assert_eq!(human(1536), "1.50 KB");
        assert_eq!(human(21_474_836_480), "20.00 GB");
    }

    #[test]
    fn partitions_are_told_from_other_folders() {
        assert!(is_partition("sda", "sda15") && is_partition("nvme0n1", "nvme0n1p1"));
        assert!(!is_partition("sda", "sda") && !is_partition("sda", "queue") && !is_partition("sd", "sda1"));
    }
}

//! What the firmware says of the machine, from `/sys/class/dmi`.

use serde_json::Value;

use super::Files;
use crate::host::Map;

const FOLDER: &str = "/sys/devices/virtual/dmi/id";

/// A fact and the file that holds it.
const FACTS: [(&str, &str); 18] = [
    ("bios_date", "bios_date"),
    ("bios_vendor", "bios_vendor"),
    ("bios_version", "bios_version"),
    ("board_asset_tag", "board_asset_tag"),
    ("board_name", "board_name"),
    ("board_serial", "board_serial"),
    ("board_vendor", "board_vendor"),
    ("board_version", "board_version"),
    ("chassis_asset_tag", "chassis_asset_tag"),
    ("chassis_serial", "chassis_serial"),
    ("chassis_vendor", "chassis_vendor"),
    ("chassis_version", "chassis_version"),
    ("form_factor", "chassis_type"),
    ("product_name", "product_name"),
    ("product_serial", "product_serial"),
    ("product_uuid", "product_uuid"),
    ("product_version", "product_version"),
    ("system_vendor", "sys_vendor"),
];

/// By number. Source: DMTF DSP0134, "System Enclosure or Chassis Types", as Ansible spells them.
const FORM_FACTORS: [&str; 37] = [
    "Unknown",
    "Other",
    "Unknown",
    "Desktop",
    "Low Profile Desktop",
    "Pizza Box",
    "Mini Tower",
    "Tower",
    "Portable",
    "Laptop",
    "Notebook",
    "Hand Held",
    "Docking Station",
    "All In One",
    "Sub Notebook",
    "Space-saving",
    "Lunch Box",
    "Main Server Chassis",
    "Expansion Chassis",
    "Sub Chassis",
    "Bus Expansion Chassis",
    "Peripheral Chassis",
    "RAID Chassis",
    "Rack Mount Chassis",
    "Sealed-case PC",
    "Multi-system",
    "CompactPCI",
    "AdvancedTCA",
    "Blade",
    "Blade Enclosure",
    "Tablet",
    "Convertible",
    "Detachable",
    "IoT Gateway",
    "Embedded PC",
    "Mini PC",
    "Stick PC",
];

/// `NA` stands for what the firmware does not say, or says to root alone.
pub(super) fn facts(files: Files<'_>) -> Map {
    FACTS
        .iter()
        .map(|&(fact, file)| {
            let text = files.text(&format!("{FOLDER}/{file}"));
            let value = match (fact, text) {
                (_, None) => "NA".to_owned(),
                ("form_factor", Some(text)) => text
                    .parse()
                    .ok()
                    .and_then(|number: usize| FORM_FACTORS.get(number))
                    .map_or_else(|| format!("unknown ({text})"), |&name| name.to_owned()),
                (_, Some(text)) => text,
            };
            (fact.to_owned(), Value::from(value))
        })
        .collect()
}

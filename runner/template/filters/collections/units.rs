//! The filters of `community.general` that turn times such as `1h 30min` into a number of one unit.

use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};

pub(super) const FILTERS: &[Filter] = &[
    callable("community.general.to_time_unit", &["unit", "**"], |call| {
        let unit = call.text_or(0, "ms")?;
        converted(call, &unit)
    }),
    callable("community.general.to_milliseconds", &["**"], |call| converted(call, "ms")),
    callable("community.general.to_seconds", &["**"], |call| converted(call, "s")),
    callable("community.general.to_minutes", &["**"], |call| converted(call, "m")),
    callable("community.general.to_hours", &["**"], |call| converted(call, "h")),
    callable("community.general.to_days", &["**"], |call| converted(call, "d")),
    callable("community.general.to_weeks", &["**"], |call| converted(call, "w")),
    callable("community.general.to_months", &["**"], |call| converted(call, "mo")),
    callable("community.general.to_years", &["**"], |call| converted(call, "y")),
];

const DAY_MS: f64 = 24.0 * 60.0 * 60.0 * 1000.0;

/// How many days a month and a year have.
struct Calendar {
    month: f64,
    year: f64,
}

impl Calendar {
    /// Returns a unit in milliseconds: by its letters, or by its name in singular or plural.
    fn milliseconds(&self, unit: &str) -> Option<f64> {
        let singular = if unit.len() > 2 { unit.strip_suffix('s').unwrap_or(unit) } else { unit };
        Some(match singular {
            "ms" | "millisecond" | "msec" | "msecond" => 1.0,
            "s" | "sec" | "second" => 1000.0,
            "m" | "min" | "minute" => 60.0 * 1000.0,
            "h" | "hour" => 60.0 * 60.0 * 1000.0,
            "d" | "day" => DAY_MS,
            "w" | "week" => 7.0 * DAY_MS,
            "mo" | "month" => self.month * DAY_MS,
            "y" | "year" => self.year * DAY_MS,
            _ => return None,
        })
    }
}

fn converted(call: &Call<'_>, unit: &str) -> Result<Live> {
    let mut calendar = Calendar { month: 30.0, year: 365.0 };
    for (name, value) in &call.named {
        let days: f64 = value.text()?.parse().map_err(|_| call.fault(format!("`{name}` must be a number of days")))?;
        match &**name {
            "month" => calendar.month = days,
            "year" => calendar.year = days,
            _ => return Err(call.fault(format!("no argument named `{name}`")).help("one of month, year")),
        }
    }
    let Some(unit_ms) = calendar.milliseconds(unit) else {
        return Err(call.fault(format!("no unit `{unit}`")).help("one of ms, s, m, h, d, w, mo, y, or their names"));
    };
    if !call.input.is_text() {
        return Err(call.fault(format!("takes a string such as `1h 30min`, not '{}'", call.input.type_name())));
    }
    let mut total_ms = 0.0;
    for word in call.text()?.split_whitespace() {
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(word.len());
        let number: Option<i64> = word[..digits].parse().ok();
        let (Some(number), Some(of)) = (number, calendar.milliseconds(&word[digits..])) else {
            let error = call.fault(format!("`{word}` is no whole number with a unit"));
            return Err(error.help("write it such as `2h`, without a space between"));
        };
        total_ms += number as f64 * of;
    }
    // As many digits as Ansible's own filter keeps.
    let rounded: f64 = format!("{:.12}", total_ms / unit_ms).parse().expect("a number that was just written");
    Ok(rounded.into())
}

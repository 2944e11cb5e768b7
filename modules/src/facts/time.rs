//! The host's clock and time zone.

use std::ffi::CStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::map;
use crate::host::Map;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A moment in the host's time zone or in UTC.
struct Moment {
    tm: libc::tm,
    zone: String,
}

impl Moment {
    fn local(seconds: i64) -> Moment {
        // The type's width is the platform's.
        let seconds = seconds as _;
        // SAFETY: tm is plain data for which zeros are a value; localtime_r(3) fills it, and its zone's name is a
        // text that lives as long as the program.
        unsafe {
            let mut tm: libc::tm = std::mem::zeroed();
            libc::localtime_r(&raw const seconds, &raw mut tm);
            let zone = if tm.tm_zone.is_null() { "UTC".into() } else { CStr::from_ptr(tm.tm_zone).to_string_lossy() };
            Moment { tm, zone: zone.into_owned() }
        }
    }

    fn utc(seconds: i64) -> Moment {
        let seconds = seconds as _;
        // SAFETY: as in `local`.
        unsafe {
            let mut tm: libc::tm = std::mem::zeroed();
            libc::gmtime_r(&raw const seconds, &raw mut tm);
            Moment { tm, zone: "UTC".to_owned() }
        }
    }

    fn year(&self) -> String {
        format!("{:04}", self.tm.tm_year + 1900)
    }

    fn date(&self, separator: &str) -> String {
        format!("{}{separator}{:02}{separator}{:02}", self.year(), self.tm.tm_mon + 1, self.tm.tm_mday)
    }

    fn time(&self, separator: &str) -> String {
        format!("{:02}{separator}{:02}{separator}{:02}", self.tm.tm_hour, self.tm.tm_min, self.tm.tm_sec)
    }

    fn offset(&self) -> String {
        let minutes = self.tm.tm_gmtoff / 60;
        format!("{}{:02}{:02}", if minutes < 0 { '-' } else { '+' }, minutes.abs() / 60, minutes.abs() % 60)
    }
}

/// Returns the zone's name while daylight saving time is on, or its only name.
fn daylight_zone(now_s: i64) -> String {
    const QUARTER_S: i64 = 91 * 24 * 3600;
    let seasons = (0..4).map(|quarter| Moment::local(now_s + quarter * QUARTER_S));
    let summer = seasons.filter(|moment| moment.tm.tm_isdst > 0).map(|moment| moment.zone).next();
    summer.unwrap_or_else(|| Moment::local(now_s).zone)
}

pub(super) fn date_time(now: Duration) -> Map {
    let seconds = now.as_secs() as i64;
    let (local, utc) = (Moment::local(seconds), Moment::utc(seconds));
    let micro = format!("{:06}", now.subsec_micros());
    let monday_based = (local.tm.tm_wday + 6) % 7;
    map([
        ("year", local.year().into()),
        ("month", format!("{:02}", local.tm.tm_mon + 1).into()),
        ("weekday", WEEKDAYS[local.tm.tm_wday.rem_euclid(7) as usize].into()),
        ("weekday_number", local.tm.tm_wday.to_string().into()),
        ("weeknumber", format!("{:02}", (local.tm.tm_yday + 7 - monday_based) / 7).into()),
        ("day", format!("{:02}", local.tm.tm_mday).into()),
        ("hour", format!("{:02}", local.tm.tm_hour).into()),
        ("minute", format!("{:02}", local.tm.tm_min).into()),
        ("second", format!("{:02}", local.tm.tm_sec).into()),
        ("epoch", seconds.to_string().into()),
        ("epoch_int", seconds.to_string().into()),
        ("date", local.date("-").into()),
        ("time", local.time(":").into()),
        ("iso8601_micro", format!("{}T{}.{micro}Z", utc.date("-"), utc.time(":")).into()),
        ("iso8601", format!("{}T{}Z", utc.date("-"), utc.time(":")).into()),
        ("iso8601_basic", format!("{}T{}{micro}", local.date(""), local.time("")).into()),
        ("iso8601_basic_short", format!("{}T{}", local.date(""), local.time("")).into()),
        ("tz", local.zone.as_str().into()),
        ("tz_dst", daylight_zone(seconds).into()),
        ("tz_offset", local.offset().into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_texts_are_of_the_moment() {
        let facts = date_time(Duration::new(1_700_000_000, 123_456_000));
        assert_eq!(facts["iso8601_micro"], "2023-11-14T22:13:20.123456Z");
        assert_eq!(facts["iso8601"], "2023-11-14T22:13:20Z");
        assert_eq!(facts["epoch"], "1700000000");
    }
}

//! Local time, as the host's own clock and zone have it.

use std::ffi::CString;

/// Returns `YYYY-MM-DD HH:MM:SS.ffffff` in the host's zone, for seconds since 1970.
pub(crate) fn local(seconds: f64) -> String {
    let whole = seconds.floor();
    let (micros, whole) = match ((seconds - whole) * 1e6).round() as u32 {
        1_000_000.. => (0, (whole + 1.0) as _),
        micros => (micros, whole as _),
    };
    // SAFETY: all-zero bytes are a valid `tm`; both pointers are to live values.
    let tm = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        libc::localtime_r(&whole, &mut tm);
        tm
    };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{micros:06}",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec
    )
}

/// Returns a duration as Python writes a `timedelta`: `0:00:01.234567`.
pub(crate) fn duration(seconds: f64) -> String {
    let micros = (seconds.max(0.0) * 1e6).round() as u64;
    let whole = micros / 1_000_000;
    let days = match whole / 86_400 {
        0 => String::new(),
        1 => "1 day, ".to_owned(),
        days => format!("{days} days, "),
    };
    let rest = whole % 86_400;
    format!("{days}{}:{:02}:{:02}.{:06}", rest / 3600, rest / 60 % 60, rest % 60, micros % 1_000_000)
}

/// Reads a time in the host's zone by a `strptime(3)` format and returns seconds since 1970; `None` when the text does
/// not follow it.
pub(crate) fn parse(text: &str, format: &str) -> Option<f64> {
    let (text, format) = (CString::new(text).ok()?, CString::new(format).ok()?);
    // SAFETY: all-zero bytes are a valid `tm`; the strings are NUL-terminated and live; the pointer that strptime
    // returns is into `text` or null.
    unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        tm.tm_mday = 1;
        let rest = libc::strptime(text.as_ptr(), format.as_ptr(), &mut tm);
        if rest.is_null() || *rest != 0 {
            return None;
        }
        tm.tm_isdst = -1;
        match libc::mktime(&mut tm) {
            -1 => None,
            seconds => Some(seconds as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_python() {
        assert_eq!(duration(0.001_234), "0:00:00.001234");
        assert_eq!(duration(3_723.5), "1:02:03.500000");
        assert_eq!(duration(90_000.0), "1 day, 1:00:00.000000");
    }

    #[test]
    fn a_time_is_read_as_it_is_written() {
        let seconds = parse("202401021530.05", "%Y%m%d%H%M.%S").expect("a time");
        assert_eq!(local(seconds), "2024-01-02 15:30:05.000000");
        assert_eq!(parse("yesterday", "%Y%m%d%H%M.%S"), None);
    }
}

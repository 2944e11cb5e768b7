//! Dates, times, and the time between them.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

use crate::template::call::{Call, Filter, callable};
use crate::template::error::TemplateError;
use crate::template::live::{Live, Moment, Result};
use crate::template::python::Given;
use crate::value::Value;

pub(super) const FILTERS: &[Filter] = &[
    callable("to_datetime", &["format"], |call| {
        let (text, format) = (call.text()?, call.text_or(0, "%Y-%m-%d %H:%M:%S")?);
        parsed(&text, &format).map(Live::Moment).map_err(|message| call.fault(message))
    }),
    callable("strftime", &["second", "utc"], strftime),
];

fn fault(message: impl Into<String>) -> TemplateError {
    TemplateError::new(Default::default(), message)
}

/// Reads a moment; a format without a date means the first of January 1900, as in Python.
fn parsed(text: &str, format: &str) -> std::result::Result<Moment, String> {
    let broken =
        jiff::fmt::strtime::parse(format, text).map_err(|error| format!("`{text}` is not `{format}`: {error}"))?;
    let date = match (broken.year(), broken.month(), broken.day()) {
        (None, None, None) => jiff::civil::date(1900, 1, 1),
        _ => broken
            .to_date()
            .or_else(|_| {
                jiff::civil::Date::new(
                    broken.year().unwrap_or(1900),
                    broken.month().unwrap_or(1),
                    broken.day().unwrap_or(1),
                )
            })
            .map_err(|error| error.to_string())?,
    };
    let time = broken.to_time().unwrap_or(jiff::civil::Time::midnight());
    Ok(Moment { civil: date.to_datetime(time), zone: broken.offset().map(TimeZone::fixed) })
}

impl Moment {
    fn zoned(&self) -> Result<ZonedDateTime> {
        let zone = self.zone.clone().unwrap_or_else(TimeZone::system);
        self.civil.to_zoned_datetime(zone).map_err(|error| fault(error.to_string()))
    }

    /// Returns the time from another moment to this one.
    pub fn since(&self, other: &Moment) -> Result<SignedDuration> {
        match (&self.zone, &other.zone) {
            (None, None) => Ok(self.civil.duration_since(other.civil)),
            (Some(_), Some(_)) => Ok(self.zoned()?.timestamp().duration_since(other.zoned()?.timestamp())),
            _ => Err(fault("one of these dates has a time zone and the other has none")),
        }
    }

    /// Returns the moment that is so much later.
    pub fn moved(&self, by: SignedDuration) -> Result<Moment> {
        let civil = self.civil.checked_add(by).map_err(|error| fault(error.to_string()))?;
        Ok(Moment { civil, zone: self.zone.clone() })
    }

    fn formatted(&self, format: &str) -> Result<String> {
        let text = match &self.zone {
            Some(_) => jiff::fmt::strtime::format(format, &self.zoned()?),
            // The seconds since 1970 are those of this machine's zone, as Python has it.
            None if format.contains("%s") => jiff::fmt::strtime::format(format, &self.zoned()?),
            None => jiff::fmt::strtime::format(format, self.civil),
        };
        text.map_err(|error| fault(format!("format `{format}`: {error}")))
    }
}

/// As Python prints a `datetime`.
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.civil.strftime("%Y-%m-%d %H:%M:%S"))?;
        let micros = self.civil.subsec_nanosecond() / 1000;
        if micros != 0 {
            write!(f, ".{micros:06}")?;
        }
        match self.zone.as_ref().and_then(|_| self.zoned().ok()) {
            Some(zoned) => write!(f, "{}", zoned.strftime("%:z")),
            None => Ok(()),
        }
    }
}

pub(in crate::template) fn field(moment: &Moment, name: &str) -> Option<Live> {
    let civil = moment.civil;
    let number = match name {
        "year" => i64::from(civil.year()),
        "month" => i64::from(civil.month()),
        "day" => i64::from(civil.day()),
        "hour" => i64::from(civil.hour()),
        "minute" => i64::from(civil.minute()),
        "second" => i64::from(civil.second()),
        "microsecond" => i64::from(civil.subsec_nanosecond() / 1000),
        _ => return None,
    };
    Some(number.into())
}

pub(in crate::template) fn method(moment: &Moment, name: &str, given: &Given<'_>) -> Result<Live> {
    match name {
        "strftime" => {
            let format = given.text(0, "format")?.ok_or_else(|| given.fault("argument `format` is missing"))?;
            Ok(moment.formatted(&format)?.into())
        }
        "isoformat" => {
            let separator = given.text(0, "sep")?.unwrap_or_else(|| "T".to_owned());
            Ok(moment.to_string().replacen(' ', &separator, 1).into())
        }
        "timestamp" => Ok((moment.zoned()?.timestamp().as_nanosecond() as f64 / 1e9).into()),
        "date" => Ok(moment.formatted("%Y-%m-%d")?.into()),
        "time" => Ok(moment.formatted("%H:%M:%S")?.into()),
        "weekday" => Ok(i64::from(moment.civil.weekday().to_monday_zero_offset()).into()),
        "isoweekday" => Ok(i64::from(moment.civil.weekday().to_monday_one_offset()).into()),
        _ => {
            let zoned = moment.zoned()?.with_time_zone(TimeZone::system());
            Ok(Live::Moment(Moment { civil: zoned.datetime(), zone: Some(zoned.time_zone().clone()) }))
        }
    }
}

pub(in crate::template) fn duration_field(duration: SignedDuration, name: &str) -> Option<Live> {
    let micros = duration.as_micros();
    let day = 86_400_000_000;
    let within = micros.rem_euclid(day);
    let number = match name {
        "days" => micros.div_euclid(day),
        "seconds" => within / 1_000_000,
        "microseconds" => within % 1_000_000,
        _ => return None,
    };
    i64::try_from(number).ok().map(Live::from)
}

/// As Python prints a `timedelta`.
pub(in crate::template) fn duration_text(duration: SignedDuration) -> String {
    let micros = duration.as_micros();
    let day = 86_400_000_000;
    let (days, within) = (micros.div_euclid(day), micros.rem_euclid(day));
    let seconds = within / 1_000_000;
    let clock = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = match within % 1_000_000 {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    };
    match days {
        0 => clock + &fraction,
        days => format!("{days} day{}, {clock}{fraction}", if days.abs() == 1 { "" } else { "s" }),
    }
}

/// `now(utc=False, fmt=None)`.
pub(in crate::template) fn now(call: &mut Call<'_>) -> Result<Live> {
    let zoned = match call.bool_or(0, false)? {
        true => Timestamp::now().to_zoned_datetime(TimeZone::UTC),
        false => ZonedDateTime::now(),
    };
    let moment = Moment { civil: zoned.datetime(), zone: None };
    match call.text_at(1)? {
        Some(format) => Ok(moment.formatted(&format)?.into()),
        None => Ok(Live::Moment(moment)),
    }
}

fn strftime(call: &mut Call<'_>) -> Result<Live> {
    let format = call.text()?;
    let zone = if call.bool_or(1, false)? { TimeZone::UTC } else { TimeZone::system() };
    let at = match call.value_at(0)? {
        None | Some(Value::Null) => Timestamp::now(),
        Some(value) => {
            let seconds = match &value {
                Value::Int(seconds) => Some(*seconds as f64),
                Value::Float(seconds) => Some(*seconds),
                Value::Str(text) => text.as_str().trim().parse().ok(),
                _ => None,
            };
            let seconds = seconds
                .ok_or_else(|| call.fault("Invalid value for epoch value (`second`): it is no number of seconds"))?;
            let duration = SignedDuration::try_from_secs_f64(seconds).map_err(|error| call.fault(error))?;
            Timestamp::from_duration(duration).map_err(|error| call.fault(error))?
        }
    };
    let text = jiff::fmt::strtime::format(&format, &at.to_zoned_datetime(zone));
    Ok(text.map_err(|error| call.fault(format!("format `{format}`: {error}")))?.into())
}

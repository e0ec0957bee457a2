//! Parses typed dates: a day in UTC, or an instant in RFC 3339 with its offset. Never local time, and never a guess.

use farebox_ledger::{Timestamp, clock};

use super::Unfit;

const FORMS: &str = "write a day in UTC as 2027-01-31, or an instant with its offset as 2027-01-31T12:00:00Z or 2027-01-31T12:00:00+01:00";

/// A day's first instant, or an instant: the start or end of a range.
pub fn instant(text: &str) -> Result<Timestamp, String> {
    match day(text) {
        Some(day) => midnight(day),
        None => exact(text),
    }
}

/// When something expires: at the end of that day, or at that instant.
pub fn expiry(text: &str) -> Result<Timestamp, String> {
    match day(text) {
        Some(day) => day
            .tomorrow()
            .map_err(|_| FORMS.to_owned())
            .and_then(midnight),
        None => exact(text),
    }
}

/// An instant for people, as `1 December`: with its year if that is not this one, and its time unless a day begins then.
pub fn in_words(at: Timestamp, now: Timestamp) -> String {
    let utc = |at: Timestamp| {
        let at = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
        at.to_zoned(jiff::tz::TimeZone::UTC)
    };
    let (at, now) = (utc(at), utc(now));
    let is_midnight = at.time() == jiff::civil::Time::midnight();
    let pattern = match (at.year() == now.year(), is_midnight) {
        (true, true) => "%-d %B",
        (true, false) => "%-d %B, %H:%M UTC",
        (false, true) => "%-d %B %Y",
        (false, false) => "%-d %B %Y, %H:%M UTC",
    };
    at.strftime(pattern).to_string()
}

/// Refuses an expiry in the past.
///
/// # Errors
/// What would have expired, and that nothing came of it.
pub(crate) fn check_expiry(
    what: &str,
    expires: Option<Timestamp>,
    nothing: &str,
) -> Result<(), Unfit> {
    match expires.filter(|instant| *instant <= clock::now()) {
        Some(past) => Err(Unfit::Wrong(format!(
            "{what} would have expired at {past}, which is in the past; {nothing}"
        ))),
        None => Ok(()),
    }
}

/// Exactly a day: the parser of days would also take an instant, and drop what follows the day.
fn day(text: &str) -> Option<jiff::civil::Date> {
    if text.len() == "2027-01-31".len() {
        text.parse().ok()
    } else {
        None
    }
}

fn midnight(day: jiff::civil::Date) -> Result<Timestamp, String> {
    let start = day
        .to_zoned(jiff::tz::TimeZone::UTC)
        .map_err(|_| FORMS.to_owned())?;
    Ok(Timestamp::from_millis(start.timestamp().as_millisecond()))
}

fn exact(text: &str) -> Result<Timestamp, String> {
    let instant = text
        .parse::<jiff::Timestamp>()
        .map_err(|_| FORMS.to_owned())?;
    Ok(Timestamp::from_millis(instant.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_days() {
        let words =
            |text: &str| in_words(exact(text).unwrap(), exact("2026-11-29T00:00:00Z").unwrap());
        for (at, said) in [
            ("2026-12-01T00:00:00Z", "1 December"),
            ("2026-12-01T09:30:00Z", "1 December, 09:30 UTC"),
            ("2027-02-01T00:00:00Z", "1 February 2027"),
            ("2027-02-11T23:59:00Z", "11 February 2027, 23:59 UTC"),
        ] {
            assert_eq!(words(at), said);
        }
    }

    #[test]
    fn offsets_count_and_days_are_in_utc() {
        let shown = |read: Result<Timestamp, String>| read.map(|instant| instant.to_string());
        let noon = Ok("2027-01-31T12:00:00.000Z".to_owned());
        for text in [
            "2027-01-31T12:00:00Z",
            "2027-01-31T14:00:00+02:00",
            "2027-01-31T06:30:00-05:30",
            "2027-01-31T12:00:00.000Z",
        ] {
            assert_eq!(
                (shown(instant(text)), shown(expiry(text))),
                (noon.clone(), noon.clone()),
                "{text}"
            );
        }
        assert_eq!(
            shown(instant("2027-01-31")),
            Ok("2027-01-31T00:00:00.000Z".to_owned())
        );
        assert_eq!(
            shown(expiry("2027-01-31")),
            Ok("2027-02-01T00:00:00.000Z".to_owned()),
            "that day still counts"
        );
        for wrong in [
            "",
            "2027-02-30",
            "31.01.2027",
            "2027-01-31T12:00:00",
            "2027-01-31T12:00",
            "20270131",
            "tomorrow",
        ] {
            assert!(instant(wrong).is_err() && expiry(wrong).is_err(), "{wrong}");
        }
    }
}

//! What is wrong with the certificate that a listener shows, in words of a person: it has ended, ends soon, or is for another name. Pure;
//! the clock is passed in.

use std::fmt;

use farebox_ledger::Timestamp;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

/// A certificate that ends within this time is told: most are renewed a month before.
const SOON_DAYS: i64 = 14;
const DAY_MS: i64 = 86_400_000;

/// Something wrong with a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateTrouble {
    /// It ended then.
    Expired(Timestamp),
    /// It begins then.
    NotYet(Timestamp),
    /// It is for other names than this one.
    OtherName(String),
    /// It ends then, in so many days.
    EndsSoon(Timestamp, i64),
    /// New files were not taken: they are damaged, or have the key of another certificate. The old one is shown.
    Rejected(String),
}

impl fmt::Display for CertificateTrouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired(at) => write!(out, "it has expired on {at}"),
            Self::NotYet(at) => write!(out, "it is valid only from {at} on"),
            Self::OtherName(name) => {
                write!(out, "it is not for `{name}`, which programs connect to")
            }
            Self::EndsSoon(at, 0) => write!(out, "it ends within a day, on {at}"),
            Self::EndsSoon(at, 1) => write!(out, "it ends in a day, on {at}"),
            Self::EndsSoon(at, days) => write!(out, "it ends in {days} days, on {at}"),
            Self::Rejected(why) => {
                write!(
                    out,
                    "the new files cannot be used, so the old one is shown: {why}"
                )
            }
        }
    }
}

impl CertificateTrouble {
    /// What ends it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Expired(_) | Self::EndsSoon(..) => {
                "renew it, put the new certificate and its key in the place of both files, and reload: `systemctl reload farebox`, or SIGHUP"
            }
            Self::NotYet(_) => {
                "set this machine's clock if it is wrong (`timedatectl`), or use the certificate from then on"
            }
            Self::OtherName(_) => {
                "get a certificate for this name, or give the name that it is for: `--public-url` for customers, `--admin-host` for yourself"
            }
            Self::Rejected(_) => {
                "put the certificate and its own key in the place of both files, and reload: `systemctl reload farebox`, or SIGHUP"
            }
        }
    }
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    from: Timestamp,
    until: Timestamp,
}

impl Validity {
    /// Of a certificate; `None` if it cannot be read.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        // Certificate, and in it what is signed: version (which may be left out), serial number, algorithm, issuer, validity.
        let (_, certificate, _) = element(certificate)?;
        let (_, mut rest, _) = element(certificate)?;
        if *rest.first()? == VERSION {
            rest = element(rest)?.2;
        }
        for _ in 0..3 {
            rest = element(rest)?.2;
        }
        let (_, validity, _) = element(rest)?;
        let (kind, from, rest) = element(validity)?;
        let (last, until, _) = element(rest)?;
        Some(Self {
            from: instant(kind, from)?,
            until: instant(last, until)?,
        })
    }

    /// What is wrong with it now.
    pub(super) fn trouble(self, now: Timestamp) -> Option<CertificateTrouble> {
        let left = self.until.millis().saturating_sub(now.millis());
        if left < 0 {
            Some(CertificateTrouble::Expired(self.until))
        } else if now < self.from {
            Some(CertificateTrouble::NotYet(self.from))
        } else if left < SOON_DAYS * DAY_MS {
            Some(CertificateTrouble::EndsSoon(self.until, left / DAY_MS))
        } else {
            None
        }
    }
}

/// The first of these names that a certificate is not for.
pub(super) fn other_name(certificate: &CertificateDer<'_>, names: &[String]) -> Option<String> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let is_for = |name: &&String| {
        let name = ServerName::try_from(name.as_str());
        name.is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
    };
    names.iter().find(|name| !is_for(name)).cloned()
}

const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The first element of DER: its tag, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            let length = bytes
                .iter()
                .fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ`, or the same with four digits of the year.
fn instant(kind: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = i64::from(year.parse::<u8>().ok()?);
            (
                // RFC 5280: two digits from 50 on are of the last century.
                if year < 50 {
                    2_000 + year
                } else {
                    1_900 + year
                },
                rest,
            )
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (i64::from(year.parse::<u16>().ok()?), rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<u8>().ok().map(i64::from);
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(Timestamp::from_millis(seconds * 1_000))
}

/// Days from 1970 to a day of the Gregorian calendar. Years are counted from March, so that the leap day is their last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_years = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From the first of March of the year 0.
    of_years + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;

    fn first() -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(include_bytes!("../../tests/tls/first.crt")).unwrap()
    }

    #[test]
    fn the_end_of_a_certificate_is_known_to_the_second() {
        let validity = Validity::of(&first()).unwrap();
        assert_eq!(
            (validity.from.to_string(), validity.until.to_string()),
            (
                "2026-11-21T04:01:37.000Z".to_owned(),
                "2126-10-28T04:01:37.000Z".to_owned()
            )
        );
        let until = validity.until.millis();
        let said = |before: i64| {
            let trouble = validity.trouble(Timestamp::from_millis(until - before));
            trouble.map(|trouble| trouble.to_string())
        };
        assert_eq!(said(SOON_DAYS * DAY_MS), None);
        let end = "2126-10-28T04:01:37.000Z";
        for (before, words) in [
            (
                SOON_DAYS * DAY_MS - 1,
                format!("it ends in 13 days, on {end}"),
            ),
            (DAY_MS, format!("it ends in a day, on {end}")),
            (0, format!("it ends within a day, on {end}")),
            (-1, format!("it has expired on {end}")),
        ] {
            assert_eq!(said(before), Some(words));
        }
        let early = Timestamp::from_millis(validity.from.millis() - 1);
        assert_eq!(
            validity.trouble(early),
            Some(CertificateTrouble::NotYet(validity.from))
        );
    }

    #[test]
    fn a_certificate_is_for_its_names_and_no_other() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let certificate = first();
        assert_eq!(
            other_name(&certificate, &names(&["localhost", "127.0.0.1"])),
            None
        );
        for other in ["example.com", "127.0.0.2", "not a name"] {
            assert_eq!(
                other_name(&certificate, &names(&["localhost", other])),
                Some(other.to_owned())
            );
        }
    }

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (date, since) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((2026, 11, 28), 20_785),
            ((2100, 3, 1), 47_541),
        ] {
            assert_eq!(days(date.0, date.1, date.2), since, "{date:?}");
        }
    }

    #[test]
    fn times_of_both_forms_are_read_and_others_are_not() {
        let read = |kind, text: &str| instant(kind, text.as_bytes()).map(|at| at.to_string());
        assert_eq!(
            read(UTC_TIME, "991231235959Z").as_deref(),
            Some("1999-12-31T23:59:59.000Z")
        );
        assert_eq!(
            read(UTC_TIME, "491231235959Z").as_deref(),
            Some("2049-12-31T23:59:59.000Z")
        );
        assert_eq!(
            read(GENERALIZED_TIME, "20500101000000Z").as_deref(),
            Some("2050-01-01T00:00:00.000Z")
        );
        for (kind, text) in [
            (UTC_TIME, ""),
            (UTC_TIME, "991231235959"),
            (UTC_TIME, "9912312359Z"),
            (GENERALIZED_TIME, "20501301000000Z"),
            (0x13, "20500101000000Z"),
        ] {
            assert_eq!(read(kind, text), None, "{text}");
        }
        for cut in 0..200 {
            let _ = Validity::of(&first()[..cut]);
        }
    }
}

//! The fields of a bill that came after its format was frozen. They are stored and hashed as named facts beside all others, and left
//! out where they say nothing: what has none costs nothing.

use std::borrow::Cow;

use crate::value::service::{ServedRegion, ServedTier};
use crate::{Amount, Bill, BillFacts, CostSource, Served};

/// Separates the classes of a bill's lines. A line without a class has nothing there.
const BETWEEN_CLASSES: char = ';';

impl Bill {
    /// Facts with a field of their own.
    pub(crate) const FIELDS: [&str; 11] = [
        "exposure",
        "cost",
        "provider_cost",
        "cost_source",
        "tier",
        "place",
        "context_band",
        "account",
        "cache_write_12h",
        "calls",
        "classes",
    ];
    const MOST_OF_CLASS: usize = 64;

    /// All facts as they are stored and hashed: sorted pairs.
    pub(crate) fn pairs(&self) -> Cow<'_, BillFacts> {
        let classes = self.lines.iter().any(|line| line.class.is_some());
        let (usage, served) = (&self.usage, &self.served);
        let amounts = (self.exposure, self.cost, self.provider_cost);
        let rare = (usage.cache_write_12h, usage.calls);
        if amounts == (Amount::ZERO, None, None)
            && self.cost_source == CostSource::Listed
            && rare == (0, 0)
            && served.is_ordinary()
            && !classes
        {
            return Cow::Borrowed(&self.facts);
        }
        let mut pairs = self.facts.clone();
        let mut put = |name: &str, value: String| drop(pairs.insert(name.to_owned(), value));
        if self.exposure != Amount::ZERO {
            put("exposure", self.exposure.picos().to_string());
        }
        for (name, amount) in [("cost", self.cost), ("provider_cost", self.provider_cost)] {
            if let Some(amount) = amount {
                put(name, amount.picos().to_string());
            }
        }
        if self.cost_source != CostSource::Listed {
            put("cost_source", self.cost_source.as_str().to_owned());
        }
        if served.tier != ServedTier::Standard {
            put("tier", served.tier.as_str().to_owned());
        }
        if served.place != ServedRegion::Global {
            put("place", served.place.as_str().to_owned());
        }
        if !served.account.is_empty() {
            put("account", served.account.clone());
        }
        for (name, count) in [
            ("context_band", u64::from(served.context_band)),
            ("cache_write_12h", usage.cache_write_12h),
            ("calls", usage.calls),
        ] {
            if count > 0 {
                put(name, count.to_string());
            }
        }
        if classes {
            put("classes", self.classes());
        }
        Cow::Owned(pairs)
    }

    /// Parses stored pairs; `None` if one that has a field is not as this program would write it.
    pub(crate) fn with_pairs(mut self, mut pairs: BillFacts) -> Option<Self> {
        for field in Self::FIELDS {
            let Some(text) = pairs.remove(field) else {
                continue;
            };
            match field {
                "exposure" => {
                    self.exposure = amount(&text).filter(|exposure| *exposure != Amount::ZERO)?;
                }
                "cost" => self.cost = Some(amount(&text)?),
                "provider_cost" => self.provider_cost = Some(amount(&text)?),
                "cost_source" => {
                    let source = CostSource::of(&text);
                    self.cost_source = source.filter(|source| *source != CostSource::Listed)?;
                }
                "tier" => {
                    self.served.tier =
                        ServedTier::of(&text).filter(|tier| *tier != ServedTier::default())?;
                }
                "place" => {
                    let place =
                        ServedRegion::of(&text).filter(|place| *place != ServedRegion::default());
                    self.served.place = place?;
                }
                "context_band" => self.served.context_band = count(&text)?.try_into().ok()?,
                "account" => self.served.account = Some(text).filter(|name| !name.is_empty())?,
                "cache_write_12h" => self.usage.cache_write_12h = count(&text)?,
                "calls" => self.usage.calls = count(&text)?,
                _ => self.set_classes(&text)?,
            }
        }
        self.facts = pairs;
        Some(self)
    }

    fn classes(&self) -> String {
        let mut classes = String::new();
        for (line, place) in self.lines.iter().zip(0_u32..) {
            if place > 0 {
                classes.push(BETWEEN_CLASSES);
            }
            classes.push_str(line.class.as_deref().unwrap_or_default());
        }
        classes
    }

    fn set_classes(&mut self, text: &str) -> Option<()> {
        let mut classes = text.split(BETWEEN_CLASSES);
        for line in &mut self.lines {
            let class = classes.next()?;
            line.class = (!class.is_empty()).then(|| Cow::Owned(class.to_owned()));
        }
        let some = self.lines.iter().any(|line| line.class.is_some());
        (some && classes.next().is_none()).then_some(())
    }

    /// Whether each of these fields is read back as it was.
    pub(crate) fn pairs_are_sound(&self) -> bool {
        let class = |class: &str| {
            !class.is_empty()
                && class.len() <= Self::MOST_OF_CLASS
                && !class.contains(BETWEEN_CLASSES)
        };
        self.lines
            .iter()
            .filter_map(|line| line.class.as_deref())
            .all(class)
            && self.served.account.len() <= Served::MOST_OF_ACCOUNT
    }
}

/// A number in this program's own form.
fn amount(text: &str) -> Option<Amount> {
    let picos: i64 = text.parse().ok()?;
    (picos.to_string() == text).then(|| Amount::from_picos(picos))
}

/// A count that is not 0.
fn count(text: &str) -> Option<u64> {
    let count: u64 = text.parse().ok()?;
    (count > 0 && count.to_string() == text).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BillLine, Usage};

    fn line(class: Option<&'static str>) -> BillLine {
        BillLine {
            what: Cow::Borrowed("output"),
            count: 1,
            rate: Amount::from_picos(1),
            class: class.map(Cow::Borrowed),
        }
    }

    /// A bill as it is stored, without what has a column of its own.
    fn read(pairs: &[(&str, &str)], lines: usize) -> Option<Bill> {
        let bill = Bill {
            lines: vec![line(None); lines],
            ..Bill::default()
        };
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        bill.with_pairs(pairs.iter().map(pair).collect())
    }

    #[test]
    fn every_field_is_read_back() {
        let mut bill = Bill {
            exposure: Amount::from_picos(1),
            cost: Some(Amount::ZERO),
            provider_cost: Some(Amount::from_picos(3)),
            cost_source: CostSource::Told,
            usage: Usage {
                cache_write_12h: 4,
                calls: 5,
                ..Usage::default()
            },
            served: Served {
                tier: ServedTier::Flex,
                place: ServedRegion::Us,
                context_band: 6,
                account: "eu".to_owned(),
            },
            lines: vec![line(Some("flex,us")), line(None), line(Some("us"))],
            ..Bill::default()
        };
        bill.facts.insert("node".to_owned(), "a".to_owned());
        let pairs = bill.pairs().into_owned();
        assert_eq!(pairs.len(), Bill::FIELDS.len() + 1, "{pairs:?}");
        assert_eq!(pairs["classes"], "flex,us;;us");
        let mut bare = bill.clone();
        bare.lines.iter_mut().for_each(|line| line.class = None);
        (bare.served, bare.usage) = (Served::default(), Usage::default());
        (bare.exposure, bare.cost, bare.provider_cost) = (Amount::ZERO, None, None);
        bare.cost_source = CostSource::Listed;
        bare.facts.clear();
        assert_eq!(bare.with_pairs(pairs), Some(bill));
    }

    #[test]
    fn what_says_nothing_is_not_stored() {
        let bill = Bill {
            lines: vec![line(None)],
            ..Bill::default()
        };
        assert!(matches!(bill.pairs(), Cow::Borrowed(facts) if facts.is_empty()));
    }

    #[test]
    fn nothing_is_read_that_would_be_written_in_another_way() {
        for (name, value) in [
            ("exposure", "0"),
            ("exposure", "+1"),
            ("cost", "01"),
            ("provider_cost", ""),
            ("cost_source", "listed"),
            ("cost_source", "guessed"),
            ("tier", "standard"),
            ("tier", "Fast"),
            ("place", "global"),
            ("context_band", "0"),
            ("context_band", "4294967296"),
            ("account", ""),
            ("cache_write_12h", "-1"),
            ("calls", "01"),
            ("classes", ";"),
            ("classes", "fast"),
            ("classes", "fast;fast;fast"),
        ] {
            assert_eq!(read(&[(name, value)], 2), None, "{name} {value}");
        }
        assert!(read(&[("classes", "fast;"), ("other", "0")], 2).is_some());
    }
}

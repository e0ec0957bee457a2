//! The seller as customers see it: whom to ask, and where to pay. `[shop]` in `catalog.toml`.

use std::fmt;

use farebox_ledger::with_query;

/// What customers are told about the seller. A catalog without `[shop]` has one that says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shop {
    /// The seller's name.
    pub name: Option<String>,
    /// Whom to ask.
    pub contact: Option<String>,
    /// Where to pay.
    pub pay_url: Option<String>,
    /// A sentence of the seller's.
    pub note: Option<String>,
    /// Where the seller is, for paper.
    pub address: Option<String>,
    /// The seller's tax number, for paper.
    pub tax_id: Option<String>,
    /// Its terms.
    pub terms_url: Option<String>,
    /// How it treats personal data.
    pub privacy_url: Option<String>,
    /// The status of a refusal for lack of money, or by a cap without room.
    pub out_of_balance_status: OutOfBalanceStatus,
}

/// The status of a refusal for lack of money. The interface says 429; the others are the operator's choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutOfBalanceStatus {
    /// 429 for every program.
    #[default]
    Quota,
    /// 402 for every program.
    Payment,
    /// 402 for the programs that were measured to repeat less at it, 429 for the others.
    ByProgram,
}

impl OutOfBalanceStatus {
    /// The status; by program, that of the others.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Quota | Self::ByProgram => 429,
            Self::Payment => 402,
        }
    }

    /// The same for a program that repeats less at 402.
    #[must_use]
    pub const fn where_402_ends_it(self) -> Self {
        match self {
            Self::Quota => Self::Quota,
            Self::Payment | Self::ByProgram => Self::Payment,
        }
    }

    /// As it is written in the catalog.
    #[must_use]
    pub fn written(self) -> serde_json::Value {
        match self {
            Self::Quota => 429.into(),
            Self::Payment => 402.into(),
            Self::ByProgram => "by_program".into(),
        }
    }
}

/// As customers read it.
impl fmt::Display for OutOfBalanceStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Quota => "429",
            Self::Payment => "402",
            Self::ByProgram => "429 or 402",
        })
    }
}

impl Shop {
    /// The name above customers' pages: the seller's, or the program's own where the seller gives none.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or("Farebox")
    }

    /// Where to pay for one customer: the same page, with the customer's id in its query.
    pub fn pay_url_for(&self, customer: impl std::fmt::Display) -> Option<String> {
        let url = self.pay_url.as_ref()?;
        Some(with_query(url, &format!("customer={customer}")))
    }

    /// How to pay, as a sentence; empty if the seller says nothing.
    pub fn ways_to_pay(&self) -> String {
        let pay = (self.pay_url.as_ref()).map(|url| format!("top up at {url}"));
        let ask = self.contact.as_ref().map(|contact| {
            let seller = self.name.as_deref().unwrap_or("the seller");
            format!("ask {seller}: {contact}")
        });
        let ways: Vec<String> = pay.into_iter().chain(ask).collect();
        ways.join(", or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_customer_joins_whatever_the_address_has() {
        for (url, wanted) in [
            ("https://a.example", "https://a.example?customer=c_1"),
            (
                "https://a.example/?from=b",
                "https://a.example/?from=b&customer=c_1",
            ),
            (
                "https://a.example/#buy",
                "https://a.example/?customer=c_1#buy",
            ),
        ] {
            let shop = Shop {
                pay_url: Some(url.to_owned()),
                ..Shop::default()
            };
            assert_eq!(shop.pay_url_for("c_1").as_deref(), Some(wanted));
        }
        assert_eq!(Shop::default().pay_url_for("c_1"), None);
    }
}

//! Vouchers: lots of codes to make, and to void; and their document.

use farebox_ledger::{GrantKind, Lot, LotId, NewLot, Timestamp, VoidLot, VoucherCode, clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::sold_terms;
use super::value::{Count, Expiry, Instant, OneLine, Usd, Word};
use super::{Deed, Doer, NewSecret, SellerAct, Unfit, dates};

/// Make a lot of vouchers; the codes are in this answer only. If it was lost, void the lot and make another
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CreateLot {
    /// How many codes, at most 10000
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = few))]
    pub count: Count,
    /// What each is worth
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "USD",
            allow_negative_numbers = true,
            required_unless_present = "plan"
        )
    )]
    pub amount: Option<Usd>,
    /// Or a period of this plan, as it is sold now
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", conflicts_with_all = ["amount", "kind"])
    )]
    pub plan: Option<OneLine>,
    /// promotional: a grant without an end; paid: as a payment; promotional unless you say
    #[cfg_attr(feature = "clap", arg(long))]
    pub kind: Option<Word<GrantKind>>,
    /// When they are worth nothing any more: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31
    #[cfg_attr(feature = "clap", arg(long = "expires", value_name = "DATE"))]
    pub expires_at: Option<Expiry>,
    /// A customer can redeem only one of them
    #[cfg_attr(feature = "clap", arg(long, action = clap::ArgAction::SetTrue))]
    pub once_per_customer: Option<bool>,
}

impl SellerAct for CreateLot {
    type Of = ();
    const EXAMPLE: &'static str =
        r#"{"count":3,"amount":"5","expires_at":"2099-01-31","once_per_customer":true}"#;

    async fn deed(self, (): (), doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let count = check_count(self.count).map_err(Unfit::Wrong)?;
        let expires_at = self.expires_at.map(Into::into);
        dates::check_expiry("the vouchers", expires_at, "nothing was made")?;
        let (amount, kind, plan) = match (self.amount, self.kind, &self.plan) {
            (Some(Usd(amount)), kind, None) => {
                let kind = kind.map_or(GrantKind::Promotional, |Word(kind)| kind);
                (amount, kind, None)
            }
            (None, None, Some(plan)) => {
                let terms = sold_terms(doer, plan)?;
                (terms.allowance, GrantKind::Plan, Some(Box::new(terms)))
            }
            (None, _, _) | (Some(_), _, Some(_)) => {
                let why = "write either `amount`, what each is worth, or `plan`, of which each gives a period";
                return Err(Unfit::Incomplete(Some("amount"), why));
            }
        };
        let new = |_| VoucherCode::generate(clock::random());
        let codes: Vec<VoucherCode> = (0..count.0).map(new).collect();
        let lot = NewLot {
            id: LotId::from_random(u64::from_be_bytes(clock::random())),
            codes: codes.iter().map(VoucherCode::hash).collect(),
            amount,
            expires_at,
            kind,
            plan,
            once_per_customer: self.once_per_customer.unwrap_or_default(),
            act: doer.act(),
        };
        Ok(Deed::showing(lot, NewSecret::Codes(codes)))
    }
}

/// What is left of a lot is worth nothing from now on; what was redeemed stays
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "VoidLot")]
pub struct VoidVouchers {}

impl SellerAct for VoidVouchers {
    type Of = LotId;

    async fn deed(self, lot: LotId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let act = doer.act();
        Ok(VoidLot { lot, act }.into())
    }
}

/// Refuses a number of vouchers that no lot has.
fn check_count(count: Count) -> Result<Count, String> {
    let most = NewLot::MOST;
    if (1..=most).contains(&(count.0 as usize)) {
        return Ok(count);
    }
    Err(format!("write a whole number between 1 and {most}"))
}

#[cfg(feature = "clap")]
fn few(text: &str) -> Result<Count, String> {
    check_count(Count(text.parse().unwrap_or_default()))
}

/// A lot of vouchers, and right after they were made their codes
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Lot")]
pub struct LotDocument {
    /// Its id
    pub id: String,
    /// What those that are left are worth
    #[schemars(extend("enum" = ["good", "expired", "void"]))]
    pub status: &'static str,
    /// How many vouchers it has
    pub count: Count,
    /// How many were redeemed
    pub redeemed: u32,
    /// What each is worth
    pub amount: Usd,
    /// What they give: promotional, a grant; paid, as a payment; plan, a period
    #[schemars(extend("enum" = ["promotional", "paid", "plan"]))]
    pub kind: &'static str,
    /// The plan of which each gives a period
    pub plan: Option<String>,
    /// When they are worth nothing any more
    pub expires_at: Option<Instant>,
    /// A customer can redeem only one of them
    pub once_per_customer: bool,
    /// When it was made
    pub created_at: Instant,
    /// Who made it
    pub created_by: String,
    /// What customers type, in the order of their numbers; only right after they were made
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codes: Option<Vec<String>>,
}

impl LotDocument {
    /// A lot, now.
    pub fn of(lot: &Lot, now: Timestamp) -> Self {
        Self {
            id: lot.id.to_string(),
            status: status(lot, now),
            count: Count(lot.count),
            redeemed: lot.redeemed,
            amount: Usd(lot.amount),
            kind: lot.kind.as_str(),
            plan: lot.plan.as_ref().map(|terms| terms.name.clone()),
            expires_at: lot.expires_at.map(Instant),
            once_per_customer: lot.once_per_customer,
            created_at: Instant(lot.created_at),
            created_by: lot.created_by.clone(),
            codes: None,
        }
    }
}

/// The word for what a lot's vouchers are worth.
pub fn status(lot: &Lot, now: Timestamp) -> &'static str {
    match (lot.is_void, lot.is_good(now)) {
        (true, _) => "void",
        (false, true) => "good",
        (false, false) => "expired",
    }
}

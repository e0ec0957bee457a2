//! What was typed, as an act: amounts go through the ledger's own parser, and every problem is told at its field.

use farebox_ledger::text::SECRET_PREFIX;
use farebox_ledger::{
    Account, Amount, CreditKind, CustomerEdit, CustomerId, CustomerSettings, KeyEdit, KeySettings,
    Said, Scope, Timestamp,
};

use super::{FinishedForm, Form, FormPurpose, Input, TYPE_TWICE_ABOVE};
use crate::app::party::Party;
use crate::bulk_plan::BulkPlan;
use crate::clock;
use crate::plan::{ActPlan, Planned, PlannedOverlap};

/// A field, and what is wrong with it.
type Problem = (Input, String);

impl Form {
    pub(super) fn check(&self) -> Result<FinishedForm, Problem> {
        let plan = match &self.purpose {
            FormPurpose::TopUp => self.credit(CreditKind::TopUp, self.amount()?)?,
            FormPurpose::Adjust => {
                let reason = self.needed(Input::Reason, "a reason")?;
                self.credit(CreditKind::Adjust { reason }, self.correction()?)?
            }
            FormPurpose::Refund {
                request, charge, ..
            } => {
                let amount = self.amount()?;
                if amount > *charge {
                    return Err((Input::Amount, format!("the request was charged {charge}")));
                }
                let reason = self.needed(Input::Reason, "a reason")?;
                let request = *request;
                self.credit(CreditKind::Refund { request, reason }, amount)?
            }
            FormPurpose::BulkTopUp(_)
            | FormPurpose::BulkAdjust(_)
            | FormPurpose::BulkRevoke(_)
            | FormPurpose::BulkEdit(_) => return self.bulk().map(FinishedForm::Bulk),
            FormPurpose::NewKey => ActPlan::Create {
                settings: self.key_edit()?.over(KeySettings::default()),
                first: self.first_credit()?,
                customer: self.about.as_ref().map(|about| about.customer().id),
            },
            FormPurpose::Edit => self.planned_edit()?,
            FormPurpose::NewCustomer => {
                let settings = self.customer_edit()?.over(CustomerSettings::default());
                ActPlan::CreateCustomer(settings)
            }
            FormPurpose::EditCustomer => self.planned_edit_of_customer()?,
            FormPurpose::Move => self.movement()?,
            FormPurpose::Rotate => ActPlan::Rotate {
                overlap: PlannedOverlap::parse(self.value(Input::Overlap))
                    .ok_or((Input::Overlap, "choose 0, 1h or 24h".to_owned()))?,
            },
            FormPurpose::Revoke => self.confirmed(ActPlan::Revoke)?,
            FormPurpose::Close => self.confirmed(ActPlan::Close)?,
            FormPurpose::Export(what) => {
                return Ok(FinishedForm::Export {
                    what: what.clone(),
                    json: self.value(Input::Format) == "json",
                    path: self.needed(Input::Path, "a file name")?,
                });
            }
            FormPurpose::SaveSecret => {
                return Ok(FinishedForm::SaveSecret {
                    path: self.needed(Input::Path, "a file name")?,
                });
            }
        };
        Ok(FinishedForm::Review(plan))
    }

    /// An act that is only done after the end of the id was typed.
    fn confirmed(&self, plan: ActPlan) -> Result<ActPlan, Problem> {
        let symbols = self.symbols();
        let end = symbols.get(6..).unwrap_or(&symbols);
        if self.value(Input::LastFour).eq_ignore_ascii_case(end) {
            return Ok(plan);
        }
        let text = "these are not the last four characters of the id";
        Err((Input::LastFour, text.to_owned()))
    }

    fn credit(&self, kind: CreditKind, amount: Amount) -> Result<ActPlan, Problem> {
        self.affordable(ActPlan::Credit {
            kind,
            amount,
            reference: self.needed(Input::Reference, "a reference")?,
        })
    }

    fn movement(&self) -> Result<ActPlan, Problem> {
        let into: CustomerId = self.value(Input::Into).parse().map_err(at(Input::Into))?;
        if Scope::Customer(into) == self.of {
            return Err((Input::Into, "it is the one that gives".to_owned()));
        }
        self.affordable(ActPlan::Move {
            into,
            amount: self.amount()?,
            reference: self.needed(Input::Reference, "a reference")?,
        })
    }

    /// Refuses what the account's rules would refuse.
    fn affordable(&self, plan: ActPlan) -> Result<ActPlan, Problem> {
        match plan.after(self.account()) {
            Some(Err(refusal)) => Err((Input::Amount, refusal)),
            _ => Ok(plan),
        }
    }

    /// The act on all marked keys. What each of their accounts allows is checked in the review.
    fn bulk(&self) -> Result<BulkPlan, Problem> {
        let reference = |form: &Self| form.needed(Input::Reference, "a reference");
        match self.purpose {
            FormPurpose::BulkRevoke(keys) if self.value(Input::HowMany) == keys.to_string() => {
                Ok(BulkPlan::Revoke)
            }
            FormPurpose::BulkRevoke(_) => Err((
                Input::HowMany,
                "this is not how many keys are marked".to_owned(),
            )),
            FormPurpose::BulkAdjust(_) => {
                let reason = self.needed(Input::Reason, "a reason")?;
                Ok(BulkPlan::Credit {
                    kind: CreditKind::Adjust { reason },
                    amount: self.correction()?,
                    reference: reference(self)?,
                })
            }
            FormPurpose::BulkTopUp(keys) => Ok(BulkPlan::Credit {
                kind: CreditKind::TopUp,
                amount: self.amount_for(keys)?,
                reference: reference(self)?,
            }),
            FormPurpose::BulkEdit(_) => self.edit_of_each().map(BulkPlan::Edit),
            _ => Err((Input::Amount, "nothing is marked".to_owned())),
        }
    }

    /// What is changed on each key; at least something.
    fn edit_of_each(&self) -> Result<KeyEdit, Problem> {
        let edit = self.key_edit()?;
        if edit == KeyEdit::default() {
            let text = "type what to change on each key";
            return Err((Input::Models, text.to_owned()));
        }
        Ok(edit)
    }

    fn correction(&self) -> Result<Amount, Problem> {
        Amount::parse_adjustment(self.value(Input::Amount)).map_err(at(Input::Amount))
    }

    fn amount(&self) -> Result<Amount, Problem> {
        self.amount_for(1)
    }

    /// An amount that so many keys get.
    fn amount_for(&self, keys: usize) -> Result<Amount, Problem> {
        let amount = Amount::parse_payment(self.value(Input::Amount)).map_err(at(Input::Amount))?;
        if !amount.is_positive() {
            return Err((Input::Amount, "type an amount above zero".to_owned()));
        }
        let all = Amount::times(amount, u64::try_from(keys).unwrap_or(u64::MAX));
        if all.is_none_or(|all| all > TYPE_TWICE_ABOVE)
            && Amount::parse_payment(self.value(Input::Again)) != Ok(amount)
        {
            return Err((
                Input::Again,
                "above $1,000 the amount is typed twice".to_owned(),
            ));
        }
        Ok(amount)
    }

    fn first_credit(&self) -> Result<Option<(Amount, String)>, Problem> {
        if self.value(Input::Amount).is_empty() {
            let reference = self.value(Input::Reference).is_empty();
            return if reference {
                Ok(None)
            } else {
                Err((
                    Input::Amount,
                    "there is a reference but no amount".to_owned(),
                ))
            };
        }
        let amount = self.amount()?;
        let account: Account = self.account();
        account.top_up(amount).map_err(at(Input::Amount))?;
        Ok(Some((
            amount,
            self.needed(Input::Reference, "a reference")?,
        )))
    }

    fn key_edit(&self) -> Result<KeyEdit, Problem> {
        let models = self.said(Input::Models, |text| Ok(slugs_of(text)))?;
        Ok(KeyEdit {
            label: self.label()?,
            models: match models {
                Said::Set(slugs) if slugs.is_empty() => Said::Clear,
                said => said,
            },
            expires_at: self.said(Input::LastDay, last_day)?,
            rate: self.number(Input::Rate)?,
            concurrency: self.number(Input::Concurrency)?,
        })
    }

    fn planned_edit(&self) -> Result<ActPlan, Problem> {
        let key = self.about.as_ref().and_then(Party::key);
        let known = key.map(|key| key.settings.clone()).unwrap_or_default();
        let edit = self.key_edit()?;
        let settings = edit.clone().over(known);
        Ok(ActPlan::Edit(Planned { edit, settings }))
    }

    fn customer_edit(&self) -> Result<CustomerEdit, Problem> {
        let external_id = |_: &str| self.needed(Input::ExternalId, "an external id");
        let amount = |text: &str| Amount::parse_payment(text).map_err(at(Input::LowBalance));
        Ok(CustomerEdit {
            label: self.label()?,
            external_id: self.said(Input::ExternalId, external_id)?,
            price_list: Said::Keep,
            low_balance: self.said(Input::LowBalance, amount)?,
            rate: self.number(Input::Rate)?,
            concurrency: self.number(Input::Concurrency)?,
        })
    }

    fn planned_edit_of_customer(&self) -> Result<ActPlan, Problem> {
        let about = self.about.as_ref();
        let known = about.map(|about| about.customer().settings.clone());
        let edit = self.customer_edit()?;
        let settings = edit.clone().over(known.unwrap_or_default());
        Ok(ActPlan::EditCustomer(Planned { edit, settings }))
    }

    fn label(&self) -> Result<Option<String>, Problem> {
        let is_new = !self.is_untouched(Input::Label);
        is_new
            .then(|| self.needed(Input::Label, "a label"))
            .transpose()
    }

    fn number(&self, input: Input) -> Result<Said<u32>, Problem> {
        let advice = || (input, "write a whole number above 0, or nothing".to_owned());
        let whole = |text: &str| text.parse().ok().filter(|number| *number > 0);
        self.said(input, |text| whole(text).ok_or_else(advice))
    }

    /// What is typed, unless the form showed it when it opened.
    fn said<T>(
        &self,
        input: Input,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Result<Said<T>, Problem> {
        let of_many = matches!(self.purpose, FormPurpose::BulkEdit(_));
        match self.value(input) {
            _ if self.is_untouched(input) => Ok(Said::Keep),
            "" => Ok(Said::Clear),
            "none" if of_many => Ok(Said::Clear),
            "all" if input == Input::Models => Ok(Said::Clear),
            text => read(text).map(Said::Set),
        }
    }

    fn is_untouched(&self, input: Input) -> bool {
        let known = self.known(input);
        known.is_some_and(|known| known.trim() == self.value(input))
    }

    fn needed(&self, input: Input, what: &str) -> Result<String, Problem> {
        match self.value(input) {
            "" => Err((input, format!("{what} is required"))),
            text if text.contains(SECRET_PREFIX) && input != Input::Path => Err((
                input,
                "this looks like a secret: do not store it".to_owned(),
            )),
            text => Ok(text.to_owned()),
        }
    }
}

/// Slugs with commas or blanks between them.
fn slugs_of(text: &str) -> Vec<String> {
    let slugs = text.split([',', ' ']).filter(|slug| !slug.is_empty());
    slugs.map(str::to_owned).collect()
}

/// The end of a day.
fn last_day(text: &str) -> Result<Timestamp, Problem> {
    let unread = || (Input::LastDay, "write the day as YYYY-MM-DD".to_owned());
    clock::end_of_day(text).ok_or_else(unread)
}

fn at<E: ToString>(input: Input) -> impl Fn(E) -> Problem {
    move |error| (input, error.to_string())
}

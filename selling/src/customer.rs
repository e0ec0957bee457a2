//! Customers: create them, change what was set, stop and close them; and their documents.

use std::collections::{BTreeMap, HashMap};

use farebox_ledger::text::visible;
use farebox_ledger::{
    Amount, CreditKind, Customer, CustomerAct, CustomerEdit, CustomerId, CustomerQuery,
    CustomerSettings, CustomerStatus, Key, KeyId, Ledger, LedgerError, ListedCustomer, NewCustomer,
    Perform as _, PersonalData, Said, Timestamp, VoidGrant, clock,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auto_top_up::AutoTopUpDocument;
use super::cap::{CapDocument, DefaultsDocument};
#[cfg(feature = "clap")]
use super::command_line::{KEPT, limit, or_none, pair};
use super::key::{self, FirstKey, KeyDocument};
use super::subscription::CustomerPlanDocument;
#[cfg(feature = "clap")]
use super::value::label;
use super::value::{Count, CustomerName, Instant, OneLine, Usd, Word, pairs};
use super::{Deed, Doer, SellerAct, Unfit, changes, reads};

/// What is said of a person, if anything is.
pub(crate) fn personal(
    name: Option<OneLine>,
    address: Option<String>,
    metadata: Vec<(String, String)>,
) -> Option<PersonalData> {
    let data = PersonalData {
        name: name.map(Into::into),
        address,
        metadata: metadata.into_iter().collect(),
        salt: clock::random(),
    };
    data.is_said().then_some(data)
}

/// Refuses a price list that the catalog does not have: its customers would be refused themselves.
fn check_price_list(said: &Said<OneLine>, doer: &Doer<'_>) -> Result<(), Unfit> {
    let (Said::Set(OneLine(name)), Some(sold)) = (said, doer.sold) else {
        return Ok(());
    };
    let wrong = |why: String| Unfit::Wrong(format!("price_list: {}", visible(&why)));
    sold.has_list(name).map_err(wrong)
}

/// Create a customer, with its first key or without
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CreateCustomer {
    /// A name for people
    #[cfg_attr(feature = "clap", arg(long, value_parser = label))]
    pub label: OneLine,
    /// Its name in your own system; unique
    #[serde(default)]
    #[schemars(with = "Option<OneLine>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "ID", default_value = KEPT, hide_default_value = true, value_parser = or_none::<OneLine>)
    )]
    pub external_id: Said<OneLine>,
    /// The price list that it pays by; the catalog's prices unless you say
    #[serde(default)]
    #[schemars(with = "Option<OneLine>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", default_value = KEPT, hide_default_value = true, value_parser = or_none::<OneLine>)
    )]
    pub price_list: Said<OneLine>,
    /// The balance below which it is low; a tenth of the last top-up unless you say
    #[serde(default)]
    #[schemars(with = "Option<Usd>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "USD", default_value = KEPT, hide_default_value = true, value_parser = or_none::<Usd>, allow_negative_numbers = true)
    )]
    pub low_balance: Said<Usd>,
    /// Requests each second; null is the usual limit
    #[serde(default)]
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub rate: Said<Count>,
    /// Requests at once; null is the gateway's default
    #[serde(default)]
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub concurrency: Said<Count>,
    /// Name on receipts; kept beside the books
    #[cfg_attr(feature = "clap", arg(long))]
    pub name: Option<OneLine>,
    /// Address on receipts; kept beside the books
    #[cfg_attr(feature = "clap", arg(long))]
    pub address: Option<String>,
    /// At most 16 pairs of 64 and 256 characters, kept beside the books
    #[serde(default, deserialize_with = "pairs")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=VALUE", value_parser = pair))]
    pub metadata: Vec<(String, String)>,
    /// Its first key, made in the same step; its secret is in this answer only
    #[cfg_attr(feature = "clap", arg(skip))]
    pub key: Option<FirstKey>,
}

impl SellerAct for CreateCustomer {
    type Of = ();
    const EXAMPLE: &'static str = r#"{"label":"Ada","external_id":"crm-7","name":"Ada L.","metadata":{"plan":"starter"},"key":{"label":"laptop","owner":true}}"#;

    async fn deed(self, (): (), doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let key = self.key.map(|key| key.named(&self.label)).transpose()?;
        let edit = EditCustomer {
            label: Some(self.label),
            external_id: self.external_id,
            price_list: self.price_list,
            low_balance: self.low_balance,
            rate: self.rate,
            concurrency: self.concurrency,
            name: self.name,
            address: self.address,
            metadata: self.metadata,
        };
        check_price_list(&edit.price_list, doer)?;
        let (edit, personal) = edit.parts();
        let customer = NewCustomer {
            id: clock::customer_id(),
            settings: edit.over(CustomerSettings::default()),
            personal,
            act: doer.act(),
        };
        Ok(match key {
            None => customer.into(),
            Some((settings, is_owner)) => key::enrol(customer, settings, is_owner, doer.act()),
        })
    }
}

/// Change a customer's label, ids, limits or personal data
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct EditCustomer {
    /// A name for people
    #[cfg_attr(feature = "clap", arg(long, value_parser = label))]
    pub label: Option<OneLine>,
    /// Its name in your own system; null removes it
    #[schemars(with = "Option<OneLine>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "ID", default_value = KEPT, hide_default_value = true, value_parser = or_none::<OneLine>)
    )]
    pub external_id: Said<OneLine>,
    /// The price list that it pays by; null is the catalog's prices
    #[schemars(with = "Option<OneLine>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", default_value = KEPT, hide_default_value = true, value_parser = or_none::<OneLine>)
    )]
    pub price_list: Said<OneLine>,
    /// The balance below which it is low; null is a tenth of the last top-up
    #[schemars(with = "Option<Usd>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "USD", default_value = KEPT, hide_default_value = true, value_parser = or_none::<Usd>, allow_negative_numbers = true)
    )]
    pub low_balance: Said<Usd>,
    /// Requests each second; null is the usual limit
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub rate: Said<Count>,
    /// Requests at once; null is the gateway's default
    #[schemars(with = "Option<Count>")]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NUMBER", default_value = KEPT, hide_default_value = true, value_parser = limit, allow_negative_numbers = true)
    )]
    pub concurrency: Said<Count>,
    /// Name on receipts
    #[cfg_attr(feature = "clap", arg(long))]
    pub name: Option<OneLine>,
    /// Address on receipts
    #[cfg_attr(feature = "clap", arg(long))]
    pub address: Option<String>,
    /// Pairs that are added, or get another value
    #[serde(deserialize_with = "pairs")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=VALUE", value_parser = pair))]
    pub metadata: Vec<(String, String)>,
}

impl EditCustomer {
    /// What it says of settings, and of the person: each is an act of its own.
    fn parts(self) -> (CustomerEdit, Option<PersonalData>) {
        let edit = CustomerEdit {
            label: self.label.map(Into::into),
            external_id: self.external_id.map(Into::into),
            price_list: self.price_list.map(Into::into),
            low_balance: self.low_balance.map(Into::into),
            rate: self.rate.map(Into::into),
            concurrency: self.concurrency.map(Into::into),
        };
        (edit, personal(self.name, self.address, self.metadata))
    }
}

impl SellerAct for EditCustomer {
    type Of = CustomerId;
    const EXAMPLE: &'static str = r#"{"label":"Ada L.","rate":20}"#;

    async fn before(&self, of: &CustomerId, doer: &Doer<'_>) -> Result<Vec<Deed>, Unfit> {
        check_price_list(&self.price_list, doer)?;
        let (edit, personal) = self.clone().parts();
        let is_first = personal.is_some() && edit != CustomerEdit::default();
        let deed = || Deed::on_customer(*of, CustomerAct::Edit(edit), doer.act());
        Ok(is_first.then(deed).into_iter().collect())
    }

    async fn deed(self, of: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        let change = match self.parts() {
            (edit, None) => CustomerAct::Edit(edit),
            (_, Some(data)) => CustomerAct::Describe(data),
        };
        Ok(Deed::on_customer(of, change, doer.act()))
    }
}

changes! {
    CustomerId, Deed::on_customer;
    /// Refuse all keys of a customer until it is resumed
    Suspend: CustomerAct::Suspend;
    /// Serve the keys of a suspended customer again
    Resume: CustomerAct::Resume;
    /// Remove name, address and metadata; the books keep no copy
    Erase: CustomerAct::Erase;
}

/// Close a customer that has no money and no running requests, permanently
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Close {
    /// Takes what is left, under this reference; without it, money that is left is an error
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "REFERENCE", requires = "reason")
    )]
    pub write_off: Option<OneLine>,
    /// Why it is written off, for the journal
    #[cfg_attr(feature = "clap", arg(long, requires = "write_off"))]
    pub reason: Option<OneLine>,
}

impl SellerAct for Close {
    type Of = CustomerId;
    const EXAMPLE: &'static str = r#"{"write_off":"off-1001","reason":"moved away"}"#;

    /// Grants are taken back, and what is left is written off under a reference: repeated, it finds nothing left.
    async fn before(&self, of: &CustomerId, doer: &Doer<'_>) -> Result<Vec<Deed>, Unfit> {
        let (reference, reason) = match (&self.write_off, &self.reason) {
            (Some(reference), Some(reason)) => (reference.0.clone(), reason.0.clone()),
            (None, None) => return Ok(Vec::new()),
            (Some(_), None) | (None, Some(_)) => {
                let why = "`write_off` and `reason` go together: a reference, and why";
                return Err(Unfit::Incomplete(Some("reason"), why));
            }
        };
        let customer = reads::customer(doer.ledger, *of).await?;
        let mut plans = customer.grants.plans.iter();
        if plans.any(|plan| plan.paid_ahead() > 0) {
            // Voiding the running period would only begin the next: closing it says what to do.
            return Ok(Vec::new());
        }
        let grants = customer.grants.iter().map(|grant| VoidGrant {
            grant: grant.id,
            customer: *of,
            act: doer.act(),
        });
        let mut deeds: Vec<Deed> = grants.map(Into::into).collect();
        let left = customer.grants.pool(customer.account);
        let taken = left.checked_neg().filter(|_| left.is_positive());
        let off = taken.map(|taken| {
            let kind = CreditKind::WriteOff { reason };
            Deed::of_credit((*of).into(), kind, taken, reference, doer.act())
        });
        deeds.extend(off);
        Ok(deeds)
    }

    async fn deed(self, customer: CustomerId, doer: &Doer<'_>) -> Result<Deed, Unfit> {
        Ok(Deed::on_customer(customer, CustomerAct::Close, doer.act()))
    }
}

// --- reads ---

/// Which customers
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct WhichCustomers {
    /// Only customers in this state
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "STATE",
            help = "Only customers in this state: active, suspended or closed"
        )
    )]
    pub status: Option<Word<CustomerStatus>>,
    /// Only the customer with exactly this name in your own system
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "ID", conflicts_with = "label")
    )]
    pub external_id: Option<OneLine>,
    /// Only customers whose label or external id contains this text
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub label: Option<OneLine>,
}

impl WhichCustomers {
    /// The only one that it can be, or none; `None` if it asks for a list.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn only(&self, ledger: &dyn Ledger) -> Result<Option<Vec<Customer>>, LedgerError> {
        let Some(OneLine(id)) = &self.external_id else {
            return Ok(None);
        };
        let mut found = ledger.find_external(id).await?;
        if let Some(Word(status)) = self.status {
            found = found.filter(|customer| customer.status == status);
        }
        Ok(Some(found.into_iter().collect()))
    }

    /// What of them the ledger lists, oldest first.
    pub fn query(&self) -> CustomerQuery {
        CustomerQuery {
            text: self.label.clone().map(Into::into),
            status: self.status.map(|Word(status)| status),
            ..CustomerQuery::default()
        }
    }

    /// Why there are none, if anything was said.
    pub fn why_none(&self) -> Option<&'static str> {
        match (&self.external_id, &self.label, &self.status) {
            (Some(_), _, _) => Some("No customer has this external id."),
            (None, Some(_), _) => Some("No label or external id contains this text."),
            (None, None, Some(_)) => Some("No customer is in this state."),
            (None, None, None) => None,
        }
    }
}

/// What a customer pays by, where that is not the catalog's prices, in words.
pub fn paying_by(customer: &Customer) -> Option<String> {
    let name = customer.settings.price_list.as_ref()?;
    Some(format!("price list {}", visible(name)))
}

/// What it has by default, in words.
pub fn by_default(customer: &Customer) -> Vec<String> {
    let (own, default) = (&customer.settings, customer.defaults);
    let rate = default.rate.filter(|_| own.rate.is_none());
    let most = default.concurrency.filter(|_| own.concurrency.is_none());
    let low = default.low_balance.filter(|_| own.low_balance.is_none());
    let caps = customer.caps.iter().filter(|counted| counted.is_default());
    let said = [
        rate.map(|rate| format!("{rate} requests/s")),
        most.map(|most| format!("{most} at once")),
        low.map(|low| format!("low below {low} USD")),
    ];
    let said = said.into_iter().flatten();
    let all = said.chain(caps.map(|counted| format!("at most {}", counted.cap)));
    all.map(|said| format!("{said} (default)")).collect()
}

/// How many customers that are not closed have each price list.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn on_price_lists(ledger: &dyn Ledger) -> Result<BTreeMap<String, usize>, LedgerError> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for listed in ledger.all::<ListedCustomer>().await? {
        let count = counts.entry(listed.price_list).or_default();
        *count = count.saturating_add(1);
    }
    Ok(counts)
}

// --- documents ---

/// A customer
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Customer")]
pub struct CustomerDocument {
    /// Its id
    pub id: CustomerName,
    /// A name for people
    pub label: String,
    /// Its name in your own system
    pub external_id: Option<String>,
    /// What it may do now
    pub status: Word<CustomerStatus>,
    /// Paid and not spent
    pub balance: Usd,
    /// Kept for running requests
    pub held: Usd,
    /// Balance less held
    pub available: Usd,
    /// Owed for payments that went back; paid before anything can be spent
    pub claim: Usd,
    /// Everything ever paid in
    pub credit: Usd,
    /// Everything ever spent
    pub spent: Usd,
    /// The price list that it pays by; null is the catalog's prices
    pub price_list: Option<String>,
    /// The balance below which it is low; null is a tenth of the last top-up
    pub low_balance: Option<Usd>,
    /// Requests each second; null is the usual limit
    pub rate: Option<Count>,
    /// Requests at once; null is the gateway's default
    pub concurrency: Option<Count>,
    /// What holds where nothing was set; absent where nothing does
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<DefaultsDocument>,
    /// Bounds of all its keys together
    pub caps: Vec<CapDocument>,
    /// When it asks for money, and what it is doing now
    pub auto_top_up: Option<AutoTopUpDocument>,
    /// Its subscriptions to plans of which something can still come
    pub plans: Vec<CustomerPlanDocument>,
    /// When it was created
    pub created_at: Instant,
    /// What is known of the person; only where one customer is read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personal: Option<Option<PersonalDocument>>,
    /// Its keys, oldest first; only where one customer is read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<KeyDocument>>,
    /// Its first key, with the secret, right after both were made
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyDocument>,
}

impl From<&Customer> for CustomerDocument {
    fn from(customer: &Customer) -> Self {
        let (settings, account, now) = (&customer.settings, customer.account, clock::now());
        Self {
            id: CustomerName(customer.id),
            label: visible(&settings.label),
            external_id: settings.external_id.clone(),
            status: Word(customer.status),
            balance: Usd(account.balance()),
            held: Usd(account.held),
            available: Usd(account.available()),
            claim: Usd(customer.claim),
            credit: Usd(account.credit),
            spent: Usd(account.spent),
            price_list: settings.price_list.clone(),
            low_balance: settings.low_balance.map(Usd),
            rate: settings.rate.map(Count),
            concurrency: settings.concurrency.map(Count),
            defaults: DefaultsDocument::beside(
                (settings.rate, settings.concurrency, settings.low_balance),
                customer.defaults,
            ),
            caps: CapDocument::all(customer.id.into(), &customer.caps, now),
            auto_top_up: AutoTopUpDocument::of(customer, now),
            plans: customer.grants.plans.iter().map(Into::into).collect(),
            created_at: Instant(customer.created_at),
            personal: None,
            keys: None,
            key: None,
        }
    }
}

/// What is known of a person
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Personal")]
pub struct PersonalDocument {
    /// Name on receipts
    pub name: Option<String>,
    /// Address on receipts
    pub address: Option<String>,
    /// Whatever else you keep
    pub metadata: BTreeMap<String, String>,
}

impl From<&PersonalData> for PersonalDocument {
    fn from(data: &PersonalData) -> Self {
        Self {
            name: data.name.clone(),
            address: data.address.clone(),
            metadata: data.metadata.clone(),
        }
    }
}

/// A customer with everything that belongs to it.
pub struct CustomerPage {
    /// Settings, state and money.
    pub customer: Customer,
    /// What is known of the person.
    pub personal: Option<PersonalData>,
    /// Its keys, with what each spent and holds.
    pub keys: Vec<(Key, Amount, Amount)>,
}

impl CustomerPage {
    /// Reads it.
    ///
    /// # Errors
    /// When the ledger cannot be read, or has no such customer.
    pub async fn read(ledger: &dyn Ledger, id: CustomerId) -> Result<Self, LedgerError> {
        let customer = reads::customer(ledger, id).await?;
        let keys = reads::keys_of(ledger, id).await?;
        let personal = ledger.personal_data(id).await?;
        let ids: Vec<_> = keys.iter().map(|key| key.id).collect();
        let spent = ledger.spent_since(&ids, Timestamp::from_millis(0)).await?;
        let open = ledger.open_holds(Some(id.into()), usize::MAX).await?;
        let mut held: HashMap<KeyId, Vec<Amount>> = HashMap::new();
        for hold in open {
            held.entry(hold.key).or_default().push(hold.amount);
        }
        let held_by = |key: &Key| {
            let own = held.get(&key.id).into_iter().flatten().copied();
            Amount::checked_sum(own).unwrap_or_default()
        };
        let keys = keys.into_iter().zip(spent).map(|(key, spent)| {
            let held = held_by(&key);
            (key, spent, held)
        });
        Ok(Self {
            customer,
            personal,
            keys: keys.collect(),
        })
    }

    /// The whole page as a document.
    pub fn document(&self) -> CustomerDocument {
        let now = clock::now();
        let key = |(key, spent, held): &(Key, Amount, Amount)| KeyDocument {
            key_spent: Some(Usd(*spent)),
            key_held: Some(Usd(*held)),
            ..KeyDocument::of(key, now)
        };
        CustomerDocument {
            personal: Some(self.personal.as_ref().map(Into::into)),
            keys: Some(self.keys.iter().map(key).collect()),
            ..(&self.customer).into()
        }
    }
}

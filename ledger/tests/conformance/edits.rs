//! Edits: what each says is done to what is there, and what it does not say stays.

use farebox_ledger::*;

use super::common::*;
use super::refused;

async fn edit(
    ledger: &SharedLedger,
    operation: u64,
    edit: CustomerEdit,
) -> Result<Customer, LedgerError> {
    of_customer(ledger, operation, CustomerAct::Edit(edit)).await
}

async fn of_customer(
    ledger: &SharedLedger,
    operation: u64,
    change: CustomerAct,
) -> Result<Customer, LedgerError> {
    let change = CustomerChange {
        customer: CustomerId::from_random(1),
        change,
        act: act(operation, 300),
    };
    ledger.perform(change).await
}

fn said() -> CustomerEdit {
    CustomerEdit::default()
}

/// Both were decided on by what was there first.
pub(crate) async fn edits_of_different_settings_both_stay(ledger: SharedLedger) {
    let made = ledger.perform(new_customer(1, 10)).await.unwrap();
    let rate = CustomerEdit {
        rate: Said::Set(3),
        low_balance: Said::Set(usd("2")),
        ..said()
    };
    let at_once = CustomerEdit {
        concurrency: Said::Set(4),
        ..said()
    };
    let rated = edit(&ledger, 11, rate.clone()).await.unwrap();
    edit(&ledger, 12, at_once).await.unwrap();
    let nothing = edit(&ledger, 13, said()).await.unwrap();
    let expected = CustomerSettings {
        rate: Some(3),
        low_balance: Some(usd("2")),
        concurrency: Some(4),
        ..made.settings.clone()
    };
    assert_eq!(rated.settings.concurrency, None);
    assert_eq!(nothing.settings, expected);
    let cleared = CustomerEdit {
        low_balance: Said::Clear,
        label: Some("Ada L.".to_owned()),
        ..said()
    };
    let cleared = edit(&ledger, 14, cleared).await.unwrap();
    let (label, low_balance) = ("Ada L.".to_owned(), None);
    let expected = CustomerSettings {
        label,
        low_balance,
        ..expected
    };
    assert_eq!(cleared.settings, expected);
    // A repetition changes nothing, whatever was changed meanwhile; one that says something else is another act.
    assert_eq!(edit(&ledger, 11, rate.clone()).await.unwrap(), cleared);
    let other = CustomerEdit {
        rate: Said::Set(5),
        ..rate
    };
    let refusal = refused(edit(&ledger, 11, other).await);
    assert_eq!(refusal, Refusal::OperationUsed(op(11)));
    // The books say how each left the customer.
    let acts = ledger.acts_of(made.id).await.unwrap();
    let details: Vec<&str> = acts.iter().map(|act| &*act.details).collect();
    let head = format!(
        r#"{{"label":"{}","external_id":null,"price_list":null"#,
        made.settings.label
    );
    assert_eq!(
        details[1..4],
        [
            format!(r#"{head},"low_balance":"2.00","rate":3,"concurrency":null}}"#),
            format!(r#"{head},"low_balance":"2.00","rate":3,"concurrency":4}}"#),
            format!(r#"{head},"low_balance":"2.00","rate":3,"concurrency":4}}"#),
        ]
    );
    sound(&*ledger).await;
}

pub(crate) async fn edits_of_a_key_say_what_they_change(ledger: SharedLedger) {
    let made = ledger.perform(new_key(1, 10, None)).await.unwrap();
    let models = KeyEdit {
        models: Said::Set(vec!["small".to_owned()]),
        expires_at: Said::Set(at(900)),
        ..KeyEdit::default()
    };
    let label = KeyEdit {
        label: Some("notebook".to_owned()),
        ..KeyEdit::default()
    };
    let first = change(1, 11, Change::Edit(models));
    ledger.perform(first.clone()).await.unwrap();
    let both = (ledger.perform(change(1, 12, Change::Edit(label))))
        .await
        .unwrap();
    let expected = KeySettings {
        label: "notebook".to_owned(),
        models: Some(vec!["small".to_owned()]),
        expires_at: Some(at(900)),
        ..made.own.settings
    };
    assert_eq!(both.own.settings, expected);
    let clear = KeyEdit {
        models: Said::Clear,
        expires_at: Said::Clear,
        ..KeyEdit::default()
    };
    let cleared = (ledger.perform(change(1, 13, Change::Edit(clear.clone()))))
        .await
        .unwrap();
    let settings = &cleared.own.settings;
    assert_eq!((&settings.models, settings.expires_at), (&None, None));
    assert_eq!(settings.label, "notebook");
    assert_eq!(ledger.perform(first).await.unwrap(), cleared);
    let refusal = refused(ledger.perform(change(1, 11, Change::Edit(clear))).await);
    assert_eq!(refusal, Refusal::OperationUsed(op(11)));
    sound(&*ledger).await;
}

/// Of those without a list nothing is read, and of those who are closed.
pub(crate) async fn who_has_a_price_list_is_listed(ledger: SharedLedger) {
    for number in 1..5 {
        let mut made = new_customer(number, 10 + number);
        made.settings.price_list = (number != 2).then(|| "partners".to_owned());
        ledger.perform(made).await.unwrap();
    }
    let on = |name: &str| CustomerEdit {
        price_list: Said::Set(name.to_owned()),
        ..said()
    };
    edit(&ledger, 20, on("Staff")).await.unwrap();
    for (number, change) in [(3, CustomerAct::Suspend), (4, CustomerAct::Close)] {
        let change = CustomerChange {
            customer: CustomerId::from_random(number),
            change,
            act: act(20 + number, 300),
        };
        ledger.perform(change).await.unwrap();
    }
    let listed = async || {
        let rows = ledger.all::<ListedCustomer>().await.unwrap();
        rows.into_iter()
            .map(|row| (row.customer, row.price_list))
            .collect::<Vec<_>>()
    };
    let row = |number, name: &str| (CustomerId::from_random(number), name.to_owned());
    assert_eq!(listed().await, [row(1, "Staff"), row(3, "partners")]);
    let none = CustomerEdit {
        price_list: Said::Clear,
        ..said()
    };
    edit(&ledger, 30, none).await.unwrap();
    assert_eq!(listed().await, [row(3, "partners")]);
    sound(&*ledger).await;
}

/// An external id is looked for when it is given, and free when it was cleared.
pub(crate) async fn an_edit_gives_no_external_id_that_another_has(ledger: SharedLedger) {
    ledger.perform(new_customer(1, 10)).await.unwrap();
    let mut other = new_customer(2, 11);
    other.settings.external_id = Some("crm-2".to_owned());
    let other = ledger.perform(other).await.unwrap();
    let named = |id: &str| CustomerEdit {
        external_id: Said::Set(id.to_owned()),
        ..said()
    };
    let refusal = refused(edit(&ledger, 12, named("crm-2")).await);
    let external_id = "crm-2".to_owned();
    let customer = other.id;
    assert_eq!(
        refusal,
        Refusal::ExternalIdUsed {
            external_id,
            customer
        }
    );
    edit(&ledger, 13, named("crm-1")).await.unwrap();
    // What is not said is not judged by whose it is.
    let rate = CustomerEdit {
        rate: Said::Set(2),
        ..said()
    };
    edit(&ledger, 14, rate).await.unwrap();
    let found = ledger.find_external("crm-1").await.unwrap();
    assert_eq!(found.map(|found| found.settings.rate), Some(Some(2)));
    let none = CustomerEdit {
        external_id: Said::Clear,
        ..said()
    };
    edit(&ledger, 15, none).await.unwrap();
    assert_eq!(ledger.find_external("crm-1").await.unwrap(), None);
    let mut third = new_customer(3, 16);
    third.settings.external_id = Some("crm-1".to_owned());
    ledger.perform(third).await.unwrap();
    sound(&*ledger).await;
}

pub(crate) async fn what_is_said_of_a_person_is_added(ledger: SharedLedger) {
    let made = ledger.perform(new_customer(1, 10)).await.unwrap();
    let name = PersonalData {
        name: Some("Ada L.".to_owned()),
        metadata: [("plan".to_owned(), "gold".to_owned())].into(),
        salt: [1; 32],
        ..PersonalData::default()
    };
    let address = PersonalData {
        address: Some("Main St 1".to_owned()),
        metadata: [
            ("plan".to_owned(), "free".to_owned()),
            ("vat".to_owned(), "7".to_owned()),
        ]
        .into(),
        salt: [2; 32],
        ..PersonalData::default()
    };
    let describe = async |operation, data: &PersonalData| {
        let change = CustomerAct::Describe(data.clone());
        of_customer(&ledger, operation, change).await
    };
    describe(11, &name).await.unwrap();
    let described = describe(12, &address).await.unwrap();
    let both = PersonalData {
        name: name.name.clone(),
        ..address.clone()
    };
    let known = async || ledger.personal_data(made.id).await.unwrap();
    assert_eq!(known().await, Some(both.clone()));
    assert_eq!(described.personal, Some(both.hash()));
    sound(&*ledger).await;
    for (operation, again) in [(12, &address), (11, &name)] {
        assert_eq!(describe(operation, again).await.unwrap(), described);
    }
    assert_eq!(known().await, Some(both));
    // Of all that is known then, there is not too much.
    let pair = |number: usize| (format!("n{number}"), "x".to_owned());
    let many = PersonalData {
        metadata: (0..15).map(pair).collect(),
        ..PersonalData::default()
    };
    assert!(matches!(
        refused(describe(13, &many).await),
        Refusal::Limit(_)
    ));
    of_customer(&ledger, 14, CustomerAct::Erase).await.unwrap();
    describe(15, &name).await.unwrap();
    assert_eq!(known().await, Some(name));
    sound(&*ledger).await;
}

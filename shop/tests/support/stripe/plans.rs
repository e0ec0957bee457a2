//! Subscriptions of the processor: begun by a checkout, paid by invoices, and read back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Account, FakeStripe, event, now};

/// Subscriptions, and what paid their invoices.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    pub(super) known: BTreeMap<String, Value>,
    /// The payments of invoices, as they are listed.
    pub(super) payments: Vec<Value>,
    /// Whose portal was opened, and where it leads back.
    pub(super) portals: Vec<BTreeMap<String, String>>,
    /// What was to end with its period, under which key and with which form.
    pub(super) ends: Vec<(String, BTreeMap<String, String>)>,
}

impl FakeStripe {
    /// Pays the checkout of a plan: its id, the subscription, and the events about the checkout and about the invoice.
    pub(crate) fn subscribe(&self, page: &str) -> (String, String, [Value; 2]) {
        let (id, completed) = self.pay(page);
        let subscription = self.session(&id)["subscription"]
            .as_str()
            .unwrap()
            .to_owned();
        let first = self.session(&id)["invoice"].as_str().unwrap().to_owned();
        let paid = self.invoice(&subscription, &first, "subscription_create");
        (id, subscription, [completed, paid_event(&paid)])
    }

    /// A paid invoice of a subscription.
    pub(crate) fn invoice(&self, subscription: &str, id: &str, reason: &str) -> Value {
        self.account
            .lock()
            .unwrap()
            .invoice(subscription, id, reason)
    }

    /// What an invoice was paid with.
    pub(crate) fn intent(&self, invoice: &str) -> String {
        format!("pi_{invoice}")
    }

    pub(crate) fn subscription(&self, id: &str) -> Value {
        self.account.lock().unwrap().plans.known[id].clone()
    }

    /// Changes a subscription, as its owner's portal or the seller does; returns the event.
    pub(crate) fn change(&self, id: &str, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut account = self.account.lock().unwrap();
        let known = account.plans.known.get_mut(id).unwrap();
        let before = known.clone();
        change(known);
        let mut told = event(name, "customer.subscription.updated", known);
        if before["metadata"] != known["metadata"] {
            told["data"]["previous_attributes"] = json!({ "metadata": before["metadata"] });
        } else {
            told["data"]["previous_attributes"] = json!({ "cancel_at_period_end": false });
        }
        told
    }

    /// Cancels a subscription; returns the event.
    pub(crate) fn cancel(&self, id: &str) -> Value {
        self.change(id, "", |known| known["status"] = json!("canceled"));
        let known = self.subscription(id);
        event(
            &format!("evt_end_{id}"),
            "customer.subscription.deleted",
            &known,
        )
    }

    /// What was to end with its period: the idempotency keys, and the forms.
    pub(crate) fn ends(&self) -> Vec<(String, BTreeMap<String, String>)> {
        self.account.lock().unwrap().plans.ends.clone()
    }

    pub(crate) fn portals(&self) -> Vec<BTreeMap<String, String>> {
        self.account.lock().unwrap().plans.portals.clone()
    }
}

/// The event about a paid invoice.
pub(crate) fn paid_event(invoice: &Value) -> Value {
    let id = invoice["id"].as_str().unwrap();
    event(&format!("evt_{id}"), "invoice.paid", invoice)
}

impl Account {
    /// What the checkout of a plan began.
    pub(super) fn begin_subscription(&mut self, session: &Value, n: &str) -> [(String, Value); 3] {
        let names = ["subscription", "invoice", "customer"];
        let ids = [format!("sub_{n}"), format!("in_{n}"), format!("cus_{n}")];
        let known = json!({ "id": ids[0], "object": "subscription", "status": "active", "customer": ids[2],
            "metadata": session["metadata"], "currency": session["currency"], "cancel_at_period_end": false });
        self.plans.known.entry(ids[0].clone()).or_insert(known);
        self.sums
            .insert(ids[0].clone(), session["amount_total"].clone());
        let mut ids = ids.map(Value::from).into_iter();
        names.map(|name| (name.to_owned(), ids.next().unwrap()))
    }

    pub(super) fn invoice(&mut self, subscription: &str, id: &str, reason: &str) -> Value {
        let of = self.plans.known[subscription].clone();
        let (amount, currency) = (self.sums[subscription].clone(), of["currency"].clone());
        let intent = format!("pi_{id}");
        // Its charge has no metadata.
        let charged = json!({ "amount_total": amount, "currency": currency, "payment_intent": intent, "metadata": {} });
        self.sessions.insert(intent.clone(), charged);
        let line = json!({ "id": "il_1", "object": "line_item", "amount": amount, "currency": currency, "quantity": 1,
            "parent": { "type": "subscription_item_details",
                "subscription_item_details": { "proration": false, "subscription": subscription } } });
        let invoice = json!({ "id": id, "object": "invoice", "created": now(), "billing_reason": reason, "status": "paid",
            "amount_paid": amount, "amount_due": amount, "currency": currency, "customer": of["customer"],
            "parent": { "type": "subscription_details",
                "subscription_details": { "subscription": subscription, "metadata": of["metadata"] } },
            "lines": { "object": "list", "data": [line], "has_more": false } });
        self.plans
            .payments
            .retain(|known| known["invoice"]["id"] != id);
        self.plans.payments.push(
            json!({ "id": format!("inpay_{id}"), "object": "invoice_payment", "invoice": invoice,
            "status": "paid", "payment": { "type": "payment_intent", "payment_intent": intent } }),
        );
        invoice
    }

    /// The payments that a query names.
    pub(super) fn invoice_payments(&self, query: &BTreeMap<String, String>) -> Value {
        let is_wanted = |of: &Value| {
            let is = |name: &str, value: &Value| query.get(name).is_none_or(|asked| value == asked);
            is("invoice", &of["invoice"]["id"])
                && is("payment[payment_intent]", &of["payment"]["payment_intent"])
        };
        let expands = query
            .get("expand[]")
            .is_some_and(|what| what == "data.invoice");
        let found = self.plans.payments.iter().filter(|of| is_wanted(of));
        let found = found.cloned().map(|mut of| {
            if !expands {
                of["invoice"] = of["invoice"]["id"].clone();
            }
            of
        });
        json!({ "object": "list", "data": found.collect::<Vec<_>>(), "has_more": false })
    }

    pub(super) fn end_with_period(
        &mut self,
        id: &str,
        key: &str,
        form: BTreeMap<String, String>,
    ) -> Option<Value> {
        let known = self.plans.known.get_mut(id)?;
        for (name, value) in &form {
            match name.strip_prefix("metadata[") {
                Some(name) => known["metadata"][name.trim_end_matches(']')] = json!(value),
                None => known[name] = json!(value.parse::<bool>().unwrap()),
            }
        }
        let known = known.clone();
        self.plans.ends.push((key.to_owned(), form));
        Some(known)
    }

    pub(super) fn open_portal(&mut self, form: BTreeMap<String, String>) -> Value {
        assert!(
            form.keys()
                .all(|name| ["customer", "return_url"].contains(&name.as_str()))
        );
        self.plans.portals.push(form);
        json!({ "id": "bps_1", "object": "billing_portal.session", "url": "https://billing.example/pay/bps_1" })
    }
}

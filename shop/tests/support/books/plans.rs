//! Plans of the gateway in memory: what is sold, whose it is, and what became of it.

use std::collections::BTreeMap;

use farebox_ledger::{PlanPurchase, Timestamp, clock};
use serde_json::{Value, json};

use super::{BookedTopUp, Books, BooksState, Told, refused};

/// What the catalog sells, and who has it.
#[derive(Debug)]
pub(crate) struct PlanBooks {
    pub(crate) sold: Vec<Value>,
    pub(crate) subscriptions: BTreeMap<String, Value>,
    /// What owners want ended, as its processor calls it if one renews it.
    ends: Vec<Option<String>>,
}

/// A plan of the catalog, as the API tells of it.
pub(crate) fn plan(name: &str, title: &str) -> Value {
    let terms = json!({ "price": "20.00", "allowance": "25.00", "period": "month",
        "windows": [{ "per": "5h", "usd": "4.00" }], "models": null, "after": "balance", "carry": "0.00", "grace": "6h" });
    json!({ "name": name, "title": title, "terms": terms })
}

impl Default for PlanBooks {
    fn default() -> Self {
        Self {
            sold: vec![plan("coder", "Coder, monthly"), plan("team", "Team")],
            subscriptions: BTreeMap::new(),
            ends: Vec::new(),
        }
    }
}

impl Books {
    /// The subscription that a processor calls so.
    pub(crate) fn subscription(&self, processor: &str) -> Value {
        let id = PlanPurchase::of_processor(processor).to_string();
        self.state.lock().unwrap().plans.subscriptions[&id].clone()
    }
}

impl Books {
    /// An owner asks on the dashboard for the end of a subscription.
    pub(crate) fn want_end(&self, processor: Option<&str>) {
        let mut state = self.state.lock().unwrap();
        state.plans.ends.push(processor.map(str::to_owned));
    }
}

impl BooksState {
    pub(super) fn ends_after(&self, after: Option<&str>) -> Told {
        let from = after.map_or(0, |id| id["evt_end".len()..].parse::<usize>().unwrap());
        let ends = self.plans.ends.iter().enumerate().skip(from);
        let told = ends.map(|(at, processor)| {
            json!({ "id": format!("evt_end{}", at + 1), "type": "plan.end_wanted",
                "data": { "subscription": "s_1", "plan": "coder", "processor": processor } })
        });
        let told: Vec<_> = told.collect();
        (
            200,
            json!({ "data": told, "has_more": false, "next_cursor": null }),
        )
    }

    /// Whether a processor renews that plan of a customer.
    pub(super) fn renews(&self, customer: &str, plan: &Value) -> bool {
        let all = self.plans.subscriptions.values();
        let mut own = all.filter(|of| of["customer"] == customer && of["plan"] == *plan);
        own.any(|of| of["processor"].is_string() && of["status"] != "ended")
    }

    pub(super) fn sell_plan(&mut self, customer: &str, body: &Value) -> Told {
        if !self.customers.contains_key(customer) {
            return refused(404, "customer_not_found");
        }
        let reference = body["reference"].as_str().unwrap();
        let answer = |state: &Self, status| {
            let payment = state.shown(reference);
            (
                status,
                json!({ "payment": payment, "entry": null, "customer": null, "subscription": null }),
            )
        };
        if let Some(known) = self.payments.get(reference) {
            return match known.customer == customer && known.body == *body {
                true => answer(self, 200),
                false => refused(409, "reference_used"),
            };
        }
        let (plan, processor) = (
            body["plan"].as_str().unwrap(),
            body["processor"].as_str().unwrap(),
        );
        let invoiced_at: Timestamp = serde_json::from_value(body["invoiced_at"].clone()).unwrap();
        let id = PlanPurchase::of_processor(processor).to_string();
        let sold = self
            .plans
            .sold
            .iter()
            .find(|of| of["name"] == plan)
            .cloned();
        let ended = self
            .plans
            .subscriptions
            .get(&id)
            .map(|of| of["ended_at"].clone());
        let ended: Option<Timestamp> = ended.and_then(|at| serde_json::from_value(at).ok());
        let is_booked = sold
            .as_ref()
            .is_some_and(|of| of["terms"]["allowance"] == body["allowance"])
            && body["gross"] == body["expected_gross"]
            && body["currency"] == body["expected_currency"]
            && ended.is_none_or(|ended| invoiced_at < ended)
            && !self.closed.contains(&customer.to_owned());
        let booked = BookedTopUp {
            customer: customer.to_owned(),
            status: if is_booked { "booked" } else { "unapplied" },
            body: body.clone(),
            registers: BTreeMap::new(),
        };
        self.payments.insert(reference.to_owned(), booked);
        if let Some(kept) = body["reservation"].as_str() {
            self.reserved.remove(kept);
        }
        let Some(sold) = sold.filter(|_| is_booked) else {
            return answer(self, 202);
        };
        let of = self.plans.subscriptions.entry(id.clone()).or_insert_with(|| {
            json!({ "id": id, "customer": customer, "status": "active", "paid": 0, "processor": processor, "ended_at": null,
                "period": { "allowance": "25.00", "remaining": "12.50" }, "paid_until": "2026-12-30T10:00:00Z" })
        });
        (of["plan"], of["title"]) = (sold["name"].clone(), sold["title"].clone());
        of["paid"] = json!(of["paid"].as_u64().unwrap() + 1);
        answer(self, 201)
    }

    pub(super) fn change_plan(&mut self, id: &str, act: &str, body: &Value) -> Told {
        let Some(of) = self.plans.subscriptions.get_mut(id) else {
            return refused(404, "subscription_not_found");
        };
        if of["status"] == "ended" {
            return refused(409, "not_applicable");
        }
        match act {
            "end" => {
                of["status"] = json!("ended");
                of["ended_at"] = json!(clock::now());
            }
            "change" => {
                let known = self
                    .plans
                    .sold
                    .iter()
                    .find(|plan| plan["name"] == body["plan"]);
                let Some(plan) = known else {
                    return refused(400, "invalid_field");
                };
                (of["plan"], of["title"]) = (plan["name"].clone(), plan["title"].clone());
            }
            _ => return refused(404, "not_found"),
        }
        (200, of.clone())
    }

    pub(super) fn plans_of(&self, customer: &str) -> Told {
        match self.customers.get(customer) {
            None => return refused(404, "customer_not_found"),
            Some(of) if of["external_id"].is_null() => return refused(403, "not_yours"),
            Some(_) => {}
        }
        let all = self.plans.subscriptions.values();
        let own: Vec<_> = all.filter(|of| of["customer"] == customer).collect();
        (
            200,
            json!({ "data": own, "has_more": false, "next_cursor": null }),
        )
    }
}

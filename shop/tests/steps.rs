//! A purchase from the price page to the receipt, with `kill -9` at each of its steps: whenever the shop calls the gateway or the
//! processor, one of shop and gateway, or both, end before the call arrives or before its answer is back. The buyer presses reload, the
//! processor tells again, and in the end every payment stands once in a real ledger. Everyday runs make half of the
//! kills at the calls that change something.

use std::time::Duration;

use serde_json::Value;

use crate::support::gateway::RealGateway;
use crate::support::toll::{KillMoment, KillPlace, Toll};
use crate::support::{Answer, Street, Visitor, hidden, is_full, option, pay_page, read};

/// How often somebody tries a step again.
const TRIES: u32 = 100;

/// Who is killed.
#[derive(Debug, Clone, Copy)]
struct Victims {
    shop: bool,
    gateway: bool,
}

const EVERYBODY: [(Victims, KillMoment); 6] = {
    let shop = Victims {
        shop: true,
        gateway: false,
    };
    let gateway = Victims {
        shop: false,
        gateway: true,
    };
    let both = Victims {
        shop: true,
        gateway: true,
    };
    [
        (shop, KillMoment::Before),
        (gateway, KillMoment::After),
        (both, KillMoment::Before),
        (shop, KillMoment::After),
        (gateway, KillMoment::Before),
        (both, KillMoment::After),
    ]
};

/// Shop, gateway and processor, and the toll between them.
struct Town {
    gateway: RealGateway,
    street: Street,
    toll: Toll,
    cookie: Option<String>,
    /// Who will be killed next.
    victims: Victims,
    /// What was killed during which call.
    kills: Vec<String>,
}

/// One step as a browser, or the processor, does it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Get(&'a str),
    Post(&'a str, &'a [(&'a str, &'a str)]),
    Tell(&'a Value),
}

impl Town {
    async fn build() -> Self {
        let (gateway, toll) = (RealGateway::start().await, Toll::default());
        let (api, token) = (format!("http://{}", gateway.admin), gateway.token("100000"));
        let street = Street::behind(&toll, &api, &token).await;
        Self {
            gateway,
            street,
            toll,
            cookie: None,
            victims: EVERYBODY[0].0,
            kills: Vec::new(),
        }
    }

    /// Does a step until it is done; whoever was killed meanwhile is started again.
    async fn until(&mut self, step: Step<'_>, done: impl Fn(&Answer) -> bool) -> Answer {
        let mut last = None;
        for _ in 0..TRIES {
            let mut visitor = Visitor {
                street: &self.street,
                cookie: self.cookie.clone(),
            };
            let answer = match step {
                Step::Get(path) => visitor.try_get(path).await,
                Step::Post(path, fields) => visitor.try_post(path, fields).await,
                Step::Tell(event) => self.street.try_deliver(event).await,
            };
            self.cookie = visitor.cookie;
            self.restart().await;
            match answer {
                Some(answer) if done(&answer) => return answer,
                other => last = other,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{:?}: {last:?}", self.kills.last());
    }

    async fn restart(&mut self) {
        let Some(call) = self.toll.take_hit() else {
            return;
        };
        self.kills.push(call);
        if self.victims.shop {
            self.street.kill_and_restart().await;
        }
        if self.victims.gateway {
            self.gateway.kill();
            self.gateway.resume().await;
        }
    }

    /// Buys a first key, with a kill on the way; `false` if that call was never made.
    async fn buy(&mut self, place: KillPlace, (victims, moment): (Victims, KillMoment)) -> bool {
        let pids = [
            (victims.shop, self.street.shop.pid()),
            (victims.gateway, self.gateway.pid()),
        ];
        let pids = pids
            .into_iter()
            .filter_map(|(is_one, pid)| is_one.then_some(pid));
        self.toll.kill_at(place, moment, pids.collect());
        self.victims = victims;
        self.cookie = None;
        let served = |answer: &Answer| answer.status == 200;
        let prices = self.until(Step::Get("/"), served).await;
        let (proof, once) = (hidden(&prices.text, "proof"), hidden(&prices.text, "once"));
        let offer = option(&prices.text, 0);
        let form = [
            ("proof", proof.as_str()),
            ("once", &once),
            ("offer", &offer),
        ];
        // A browser sends the same form again.
        let onward = self.until(Step::Post("/checkout", &form), served).await;
        let (id, event) = self.street.stripe.pay(&pay_page(&onward));
        self.until(Step::Tell(&event), served).await;
        let back = self.street.stripe.session(&id)["success_url"].clone();
        let back = back.as_str().unwrap().replace("{CHECKOUT_SESSION_ID}", &id);
        let shows = |part: &'static str| move |page: &Answer| page.text.contains(part);
        let thanks = self.until(Step::Get(&back), shows("Show my key")).await;
        let proof = hidden(&thanks.text, "proof");
        let form = [("proof", proof.as_str()), ("checkout", &id)];
        let page = self.until(Step::Post("/key", &form), shows("sk-fb-")).await;
        let receipt = format!("/receipt?checkout={id}");
        self.until(Step::Get(&receipt), shows("-1-1")).await;

        let secret = page.text.split("id=\"secret\">").nth(1).unwrap();
        let secret = secret.split('<').next().unwrap();
        let url = format!("http://{}/v1/key", self.gateway.listen);
        let key = self.street.client.get(url).bearer_auth(secret);
        let key: Value = serde_json::from_str(&read(key).await.text).unwrap();
        assert_eq!(key["data"]["balance"], "10.00", "{key}");
        !self.toll.is_waiting()
    }
}

/// The calls that change something, and the last one that a buyer waits for.
const CHANGES: [KillPlace; 5] = [
    KillPlace::Like("POST", "/checkout/sessions"),
    KillPlace::Like("POST", "/customers"),
    KillPlace::Like("POST", "/top-ups"),
    KillPlace::Like("POST", "/keys"),
    KillPlace::Like("GET", "/receipt"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purchase_that_is_killed_at_each_step_ends_in_one_payment_and_one_key() {
    let mut town = Town::build().await;
    let mut purchases = 0;
    for (at, place) in CHANGES.into_iter().enumerate() {
        for (of, one) in EVERYBODY.into_iter().enumerate() {
            if is_full() || (at + of) % 2 == 0 {
                assert!(town.buy(place, one).await, "{place:?} {one:?}");
                purchases += 1;
            }
        }
    }
    // Every call, until there are no more.
    for n in 0.. {
        let mut was_hit = false;
        for one in EVERYBODY.into_iter().filter(|_| is_full()) {
            was_hit |= town.buy(KillPlace::Nth(n), one).await;
            purchases += 1;
        }
        if !was_hit {
            break;
        }
    }
    println!("{} kills: {:#?}", town.kills.len(), town.kills);
    let mut wanted: Vec<String> = (1..=purchases).map(|n| format!("pi_{n}")).collect();
    wanted.sort();
    assert_eq!(town.gateway.references(), wanted);
    let customers = town.gateway.json(&["customers", "list"]);
    let customers = customers["customers"].as_array().unwrap();
    assert_eq!(customers.len(), purchases);
    assert!(
        customers
            .iter()
            .all(|customer| customer["balance"] == "10.00")
    );
    let keys = town.gateway.json(&["keys", "list"]);
    assert_eq!(keys["keys"].as_array().unwrap().len(), purchases);
    town.gateway.assert_sound();
}

//! Price lists of customers through the API and the commands: given, shown and taken away, and by whom.

use farebox_ledger::TokenRole;
use serde_json::{Value, json};

use super::{Program, code};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, routes, talking};

const LISTS: &str = r#"
[[price_list]]
name = "partners"
only = true
price.test-model = { input = "2.00", output = "10.00" }
"#;

async fn selling() -> (ScriptedUpstream, Gateway) {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let catalog = format!("{CATALOG}{LISTS}");
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    (upstream, gateway)
}

async fn edit(program: &Program, path: &str, body: &Value) -> Answer {
    let request = program.request("PATCH", path).json(body);
    Answer::read(request.send().await.unwrap()).await
}

fn slugs(answer: &Answer) -> Vec<String> {
    let list = answer.json();
    let rows = list["data"].as_array().unwrap().iter();
    rows.map(|row| format!("{} {}", row["customer_slug"], row["service_price"]))
        .collect()
}

#[tokio::test]
async fn a_customer_is_given_a_list_that_there_is() {
    let (_upstream, gateway) = selling().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let customer = format!("/customers/{}", program.customer("Ada").await);
    assert_eq!(
        program.get(&customer).await.json()["price_list"],
        Value::Null
    );
    let unknown = edit(&program, &customer, &json!({ "price_list": "Partners" })).await;
    assert_eq!(unknown.status, 400, "{}", unknown.text);
    assert!(
        unknown.text.contains(
            "price_list: the catalog has no price list `Partners`; did you mean `partners`?"
        ),
        "{}",
        unknown.text
    );
    let given = edit(&program, &customer, &json!({ "price_list": "partners" })).await;
    assert_eq!(
        (given.status, &given.json()["price_list"]),
        (200, &json!("partners"))
    );
    // Everything else stays.
    let rated = edit(&program, &customer, &json!({ "rate": 9 }))
        .await
        .json();
    assert_eq!(rated["price_list"], "partners");
    let id = given.json()["id"].as_str().unwrap().to_owned();
    let own = program.get(&format!("/models?customer={id}")).await;
    let listed = [r#""test-model" "in $2.00 · out $10.00 per 1M tokens""#];
    assert_eq!(slugs(&own), listed);
    assert_eq!(
        slugs(&program.get("/models?price_list=partners").await),
        listed
    );
    assert_eq!(slugs(&program.get("/models").await).len(), 2);
    let none = program.get("/models?price_list=gold").await;
    assert_eq!(
        (none.status, code(&none).as_str()),
        (404, "price_list_unknown")
    );
    let cleared = edit(&program, &customer, &json!({ "price_list": null })).await;
    assert_eq!(cleared.json()["price_list"], Value::Null);
    let made = json!({ "label": "Bob", "price_list": "partners", "key": { "owner": true } });
    let made = program.post("/customers", "bob-1", &made).await;
    assert_eq!(
        (made.status, &made.json()["price_list"]),
        (201, &json!("partners"))
    );
}

#[tokio::test]
async fn a_token_that_sells_gives_nobody_a_list() {
    let (_upstream, gateway) = selling().await;
    let seller = Program::new(&gateway, TokenRole::Sell).await;
    for body in [
        json!({ "label": "Ada", "price_list": "partners" }),
        json!({ "label": "Ada", "price_list": "partners", "key": { "owner": true } }),
    ] {
        let refused = seller
            .post("/customers", &body.to_string()[..20], &body)
            .await;
        assert_eq!(refused.status, 403, "{}", refused.text);
        assert!(
            refused.text.contains("gives nobody a price list"),
            "{}",
            refused.text
        );
    }
    assert_eq!(seller.get("/models?price_list=partners").await.status, 403);
    let manager = Program::new(&gateway, TokenRole::Manage).await;
    let other = manager.customer("Bob").await;
    assert_eq!(
        seller
            .get(&format!("/models?customer={other}"))
            .await
            .status,
        403
    );
    let own = seller.customer("Cem").await;
    let refused = edit(
        &seller,
        &format!("/customers/{own}"),
        &json!({ "price_list": "partners" }),
    )
    .await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    edit(
        &manager,
        &format!("/customers/{own}"),
        &json!({ "price_list": "partners" }),
    )
    .await;
    assert_eq!(
        slugs(&seller.get(&format!("/models?customer={own}")).await).len(),
        1
    );
}

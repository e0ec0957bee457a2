//! The shop's pages as HTML. The templates escape everything; they work without scripts, and the style is the dashboard's.

mod paper;
mod plans;

use std::sync::{Arc, LazyLock};

use farebox_ledger::CustomerId;
use maud::{DOCTYPE, Markup, html};
use sha2::{Digest, Sha256};

use crate::checkout::{ADDRESS, MOST_AGAIN, NAME};
use crate::currency;
use crate::gateway::plans::OwnPlan;
use crate::gateway::{GatewaySeller, ModelRow};
use crate::plan_row::PlanRow;
use crate::settings::Storefront;

/// One look for both programs.
pub(crate) const STYLE: &str = concat!(
    include_str!("../../src/customer/assets/page.css"),
    include_str!("assets/shop.css")
);
pub(crate) const SCRIPT: &str = include_str!("assets/page.js");

static STYLE_URL: LazyLock<String> = LazyLock::new(|| versioned("/page.css", STYLE));
static SCRIPT_URL: LazyLock<String> = LazyLock::new(|| versioned("/page.js", SCRIPT));

fn versioned(path: &str, text: &str) -> String {
    let version = hex::encode(Sha256::digest(text.as_bytes()));
    format!("{path}?v={}", version.get(..8).unwrap_or_default())
}

/// A purse with a coin, as a URL.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%230b6e4f' d='M1 4h14v3a1.5 1.5 0 0 0 0 3v3H1v-3a1.5 1.5 0 0 0 0-3z'/%3E%3C/svg%3E";

/// What a page of the shop needs to know of its seller.
pub(crate) struct Seller<'a> {
    pub(crate) front: Arc<Storefront>,
    /// Where customers reach the gateway.
    pub(crate) gateway: &'a str,
    /// What the gateway's catalog says of the seller.
    pub(crate) known: Arc<GatewaySeller>,
}

/// The price page: what is for sale, and the forms that buy it.
#[derive(Debug)]
pub(crate) struct PricePage<'a> {
    /// What forms of this browser carry.
    pub(crate) proof: &'a str,
    pub(crate) once: &'a str,
    /// Whom to top up.
    pub(crate) customer: Option<CustomerId>,
    /// Whether the dashboard brought this browser as its owner.
    pub(crate) is_owner: bool,
    /// What is for sale to it, and the plans that are.
    pub(crate) sold: &'a Storefront,
    pub(crate) plans: &'a [PlanRow],
    /// What the customer has of plans, for its owner.
    pub(crate) has: &'a [OwnPlan],
    /// What the gateway sells; `None` while it does not answer.
    pub(crate) models: Option<&'a [ModelRow]>,
    /// Why a form was refused.
    pub(crate) told: Option<&'a str>,
}

/// The page of a purchase.
#[derive(Debug)]
pub(crate) struct PurchasePage<'a> {
    pub(crate) reference: &'a str,
    pub(crate) checkout: &'a str,
    pub(crate) proof: &'a str,
    pub(crate) customer: CustomerId,
    /// Whether this purchase comes with a first key.
    pub(crate) has_key: bool,
    /// Whether its card may be charged again.
    pub(crate) again: bool,
    pub(crate) paid: String,
    /// What was bought, and whether it is one: `10 USD of credit were`.
    pub(crate) what: String,
    /// What the customer has of plans, for its owner.
    pub(crate) has: &'a [OwnPlan],
}

impl Seller<'_> {
    pub(crate) fn prices(&self, page: &PricePage<'_>) -> Markup {
        let content = html! {
            h1 { @if page.customer.is_some() { "Top up" } @else { "Buy a key" } }
            @if let Some(told) = page.told { p.problem role="alert" { (told) } }
            @if let Some(customer) = page.customer { (plans::left(page.has, customer, page.proof)) }
            section.card aria-labelledby="offers" {
                h2 #offers { "Credit" }
                @if let Some(customer) = page.customer {
                    p { "It is credited to customer " code { (customer) } "." }
                } @else {
                    p { "You get a key that works with any OpenAI-style client or native coding client, and pays for exactly what you use. Credit does not expire." }
                }
                form method="post" action="/checkout" {
                    input type="hidden" name="proof" value=(page.proof);
                    input type="hidden" name="once" value=(page.once);
                    @if let Some(customer) = page.customer { input type="hidden" name="customer" value=(customer); }
                    (offers(page.sold, page.plans))
                    label for="name" { "Name on the receipt (optional)" }
                    input #name name="name" maxlength=(NAME) autocomplete="name";
                    label for="address" { "Address and tax number on the receipt (optional)" }
                    input #address name="address" maxlength=(ADDRESS) autocomplete="street-address";
                    @if page.customer.is_none() || page.is_owner { (agreement()) }
                    @if let Some(terms) = &self.known.terms_url {
                        p.hint { "With the payment you accept the " a href=(terms) rel="noreferrer" { "terms" } "." }
                    }
                    button.primary { "Continue to payment" }
                }
                @if let Some(customer) = page.customer.filter(|_| page.is_owner) {
                    (stop(page.proof, "customer", &customer.to_string()))
                }
            }
            section.card aria-labelledby="models" {
                h2 #models { "What it buys" }
                @match page.models {
                    Some(models) if !models.is_empty() => (table(models)),
                    _ => p.empty { "The list of models is not available at the moment." },
                }
                p.hint { "Every price, class and limit: " a href=(format!("{}/prices", self.gateway)) { "all prices" } "." }
            }
        };
        self.document("Prices", &content, None)
    }

    /// Sends the browser on to the processor. A redirect of the form itself would have to be allowed by the page's policy.
    pub(crate) fn onward(&self, to: &str) -> Markup {
        let content = html! {
            h1 { "On to payment" }
            p { a.button href=(to) rel="noreferrer" { "Continue to the payment page" } }
            p.hint { "The page opens by itself." }
        };
        self.document("On to payment", &content, Some(&format!("0;url={to}")))
    }

    /// A page with only a message.
    pub(crate) fn notice(&self, title: &str, text: &str) -> Markup {
        let content = html! {
            h1 { (title) }
            p.problem role="alert" { (text) }
            (self.contact())
            p { a href="/" { "To the prices" } }
        };
        self.document(title, &content, None)
    }

    /// A page that says what was done.
    pub(crate) fn told(&self, title: &str, text: &str) -> Markup {
        let content = html! {
            h1 { (title) }
            p.success role="status" { (text) }
            p { a href="/" { "To the prices" } }
        };
        self.document(title, &content, None)
    }

    /// Until the payment stands in the books.
    pub(crate) fn waiting(&self, reference: Option<&str>) -> Markup {
        let content = html! {
            h1 { "Your payment is on its way" }
            p { "This page looks again by itself. You can also come back later: keep its address." }
            @if let Some(reference) = reference { p { "Reference: " code { (reference) } } }
            (self.contact())
        };
        self.document("Your payment is on its way", &content, Some("2"))
    }

    /// What somebody without the buyer's cookie is shown.
    pub(crate) fn stranger(&self, reference: &str) -> Markup {
        let content = html! {
            h1 { "A purchase of another browser" }
            p { "Only the browser that began this purchase is shown its key and receipt." }
            p { "Reference: " code { (reference) } }
            (self.contact())
        };
        self.document("A purchase", &content, None)
    }

    pub(crate) fn purchase(&self, page: &PurchasePage<'_>) -> Markup {
        let content = html! {
            h1 { "Thank you" }
            p.success role="status" { (page.what) " booked for " (page.paid) "." }
            (plans::left(page.has, page.customer, page.proof))
            @if page.has_key {
                section.card aria-labelledby="key" {
                    h2 #key { "Your key" }
                    p { "The key is made now, and shown to this browser only. Until it is first used you can ask for it again; that replaces it." }
                    form method="post" action="/key" {
                        input type="hidden" name="proof" value=(page.proof);
                        input type="hidden" name="checkout" value=(page.checkout);
                        button.primary { "Show my key" }
                    }
                }
            }
            @if page.again {
                section.card aria-labelledby="again" {
                    h2 #again { "Automatic top-up" }
                    p { "You agreed to it when you paid. The dashboard shows it, and it ends at once when you switch it off." }
                    (stop(page.proof, "checkout", page.checkout))
                }
            }
            section.card aria-labelledby="paper" {
                h2 #paper { "Paper" }
                p { a href=(format!("/receipt?checkout={}", page.checkout)) { "Receipt" } }
                p { "Reference: " code { (page.reference) } }
                p.hint {
                    "The payment processor may send a receipt by e-mail. If it never comes, nothing is lost: the key and the receipt are here, "
                    "in this browser, for 30 days. Later, or from elsewhere, ask the seller and name the reference."
                }
                (self.contact())
            }
            section.card aria-labelledby="next" {
                h2 #next { "What next" }
                ul {
                    li { a href=(format!("{}/dashboard/setup", self.gateway)) { "Set up your client" } }
                    li { a href=(format!("{}/dashboard", self.gateway)) { "See balance and requests" } }
                    li { a href=(format!("/?customer={}", page.customer)) { "Top up again" } }
                }
            }
        };
        self.document("Thank you", &content, None)
    }

    /// The key, once, with a first request for this model.
    pub(crate) fn key(
        &self,
        secret: &str,
        customer: CustomerId,
        back: &str,
        model: Option<&str>,
        (has, proof): (&[OwnPlan], &str),
    ) -> Markup {
        let base = self.gateway;
        let content = html! {
            h1 { "Your key" }
            section.card aria-label="Key" {
                p { "Copy it now, and keep it like money. It is stored nowhere." }
                pre.secret tabindex="0" role="region" aria-label="Your key" { code #secret { (secret) } }
                p { (copy("secret", "Copy the key")) }
                h2 { "Try it" }
                pre tabindex="0" role="region" aria-label="A first request" { code #try { (first_request(base, secret, model)) } }
                p { (copy("try", "Copy the request")) }
                // The fragment is not sent: the dashboard's page takes the key from it and out of the address bar.
                p { a.button href=(format!("{base}/dashboard#key={secret}")) rel="noreferrer" { "Open the dashboard with this key" } }
                p.hint { "There are balance, requests, and settings that are ready to paste for every client." }
            }
            (plans::left(has, customer, proof))
            p { a href=(back) { "Back to your purchase" } }
            p { a href=(format!("/?customer={customer}")) { "Top up again" } }
        };
        self.document("Your key", &content, None)
    }

    fn contact(&self) -> Markup {
        html! { @if let Some(contact) = &self.front.contact { p { "Questions: " (self.front.name) ", " (contact) } } }
    }

    pub(super) fn document(&self, title: &str, content: &Markup, refresh: Option<&str>) -> Markup {
        let name = &self.front.name;
        let body = html! {
            header.top { div.wide {
                a.brand href="/" { (name) }
                p.who { a href=(format!("{}/dashboard", self.gateway)) { "Sign in with a key" } }
            } }
            main.wide #content { (content) }
            footer.wide {
                p.seller {
                    (name)
                    @for said in [&self.front.contact, &self.known.address, &self.known.tax_id].into_iter().flatten() { " · " (said) }
                    @for (url, title) in [(&self.known.terms_url, "Terms"), (&self.known.privacy_url, "Privacy")] {
                        @if let Some(url) = url { " · " a href=(url) rel="noreferrer" { (title) } }
                    }
                }
                p.screen { "Cards are charged by the payment processor; their numbers never come here. Credit is US dollars." }
            }
        };
        whole(&format!("{title} · {name}"), refresh, &body)
    }
}

/// What is for sale, each as a card to choose.
fn offers(shop: &Storefront, plans: &[PlanRow]) -> Markup {
    html! {
        fieldset.offers {
            legend { "How much" }
            div {
                @for (at, offer) in shop.offers.iter().enumerate() {
                    @let plan = offer.plan.as_ref().and_then(|name| plans.iter().find(|plan| plan.name == *name));
                    label {
                        span {
                            input type="radio" name="offer" value=(shop.form_name(offer)) required checked[at == 0];
                            @match plan {
                                Some(plan) => strong { (plan.title) },
                                None => { strong { (offer.credit) " USD" } " of credit" },
                            }
                        }
                        span { (currency::shown(&shop.currency, offer.price)) @if let Some(plan) = plan { " each " (plan.terms.period) } }
                        @if let Some(plan) = plan { (plans::terms(plan)) }
                        @if offer.tax.is_positive() {
                            span.hint { "tax of " (currency::shown(&shop.currency, offer.tax)) " included" }
                        }
                    }
                }
            }
        }
    }
}

/// What a buyer agrees to who stores a card: off until it is ticked.
fn agreement() -> Markup {
    html! {
        fieldset {
            legend { "Automatic top-up (optional)" }
            label.tick { input type="checkbox" name="again" value="on"; "Keep my card for it" }
            p.hint {
                "Whenever less than a fifth of the credit that you buy now is left, the same credit is bought again for the same price. "
                "The payment processor keeps the card. You can switch it off at any time, here and on the dashboard."
            }
            label for="per_month" { "At most so many times a month" }
            input #per_month name="per_month" type="number" min="1" max=(MOST_AGAIN) value="2";
        }
    }
}

/// A button that copies; shown where scripts run.
fn copy(of: &str, title: &str) -> Markup {
    html! { button type="button" hidden data-copy=(of) { (title) } }
}

/// The form that ends an automatic top-up.
fn stop(proof: &str, field: &str, of: &str) -> Markup {
    html! {
        form method="post" action="/stop" {
            input type="hidden" name="proof" value=(proof);
            input type="hidden" name=(field) value=(of);
            button { "Switch automatic top-up off" }
        }
    }
}

/// A command for a shell: a small request, or the list of models where none is known.
fn first_request(base: &str, secret: &str, model: Option<&str>) -> String {
    let Some(model) = model else {
        return format!("curl -sS \"{base}/v1/models\" -H \"Authorization: Bearer {secret}\"");
    };
    let question = "\"messages\": [{\"role\": \"user\", \"content\": \"Say hello\"}]";
    format!(
        "curl -sS \"{base}/v1/chat/completions\" \\\n  -H \"Authorization: Bearer {secret}\" \\\n  \
         -H \"Content-Type: application/json\" \\\n  \
         -d '{{\"model\": \"{model}\", \"max_completion_tokens\": 100, {question}}}'"
    )
}

fn table(models: &[ModelRow]) -> Markup {
    html! {
        table.stacked role="table" {
            caption.hidden { "Models and prices" }
            thead role="rowgroup" { tr role="row" {
                @for title in ["Model", "Customer slug", "Provider", "Best path", "Service price"] {
                    th scope="col" role="columnheader" { (title) }
                }
            } }
            tbody role="rowgroup" { @for row in models { tr role="row" {
                th.name scope="row" role="rowheader" { (row.model) }
                td.slug role="cell" data-label="Customer slug" { code { (row.customer_slug) } }
                td role="cell" data-label="Provider" { (row.provider) }
                td role="cell" data-label="Best path" { (row.best_path) }
                td role="cell" data-label="Service price" { (row.service_price) }
            } } }
        }
    }
}

/// A page of a processor's own, in one narrow column.
pub(crate) fn narrow(title: &str, content: &Markup) -> Markup {
    whole(title, None, &html! { main.narrow #content { (content) } })
}

/// A page with one sentence.
pub(crate) fn bare(title: &str, text: &str) -> Markup {
    narrow(
        title,
        &html! { h1 { (title) } p { (text) } p { a href="/" { "To the shop" } } },
    )
}

fn whole(title: &str, refresh: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(refresh) = refresh { meta http-equiv="refresh" content=(refresh); }
                title { (title) }
                link rel="icon" href=(ICON);
                link rel="stylesheet" href=(*STYLE_URL);
                script defer src=(*SCRIPT_URL) {}
            }
            body {
                a.skip href="#content" { "Skip to content" }
                (body)
            }
        }
    }
}

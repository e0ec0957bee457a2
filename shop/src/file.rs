//! Reads `shop.toml` as the gateway reads its files: every mistake at once, each with its code, its place and what to write instead.

use std::net::SocketAddr;
use std::path::Path;

use farebox_door::network;
use farebox_ledger::{Amount, Gross, parse_public_url};
use farebox_toml::{
    Code, ConfigFile, Diagnostics, Entry, Fields, HiddenText, KEYS, Placed, Report, SecretReader,
    Secrets, Source, Span, syntax,
};
use ipnet::IpNet;
use reqwest::Url;
use toml::de::{DeTable, DeValue};

use crate::currency;
use crate::settings::{CreditOffer, ProcessorSettings, ShopSettings, Storefront};

const STRIPE: &str = "https://api.stripe.com";
/// Longest name, contact and id.
const LONGEST: usize = 100;
/// Longest URL.
const LONGEST_URL: usize = 500;
const SEVERAL: &str = "secrets, each { env = \"…\" } or { file = \"…\" }";

/// Reads and checks a file. There are settings exactly when there is no error.
pub fn load(path: &Path, secrets: &dyn Secrets) -> (Option<ShopSettings>, Diagnostics) {
    let read = Source::read(path);
    let source = match &read {
        Ok(source) => source.clone(),
        Err(unreadable) => Source::new(unreadable.name.as_str(), ""),
    };
    let mut report = Report::of_shop(&source);
    let top = Span::top(ConfigFile::Shop);
    if let Err(unreadable) = &read {
        let (name, problem) = (&unreadable.name, &unreadable.problem);
        let message = format!("`{name}` cannot be read: {problem}");
        let finding = report.add(Code::Unreadable, top, message);
        if unreadable.absent {
            finding.help("deploy/shop.toml is one to begin with; `--config` names it elsewhere");
        }
    } else if source.alone {
        let name = &source.name;
        let message = format!(
            "`{name}` is mounted by itself: an editor that replaces it changes another file than this"
        );
        let finding = report.add(Code::MountedAlone, top, message);
        finding.help("mount the folder that it is in, and not the file");
    }
    let text = syntax::readable(&mut report, ConfigFile::Shop, &source.text);
    let settings = read_settings(&mut report, &syntax::parse(&text), secrets);
    let diagnostics = report.finish();
    (settings.filter(|_| !diagnostics.has_errors()), diagnostics)
}

fn read_settings(
    report: &mut Report<'_>,
    root: &DeTable<'_>,
    secrets: &dyn Secrets,
) -> Option<ShopSettings> {
    let top = Span::top(ConfigFile::Shop);
    let fields = Fields::open(report, root, top, "the shop's file", &KEYS.shop_file);
    let mut secrets = SecretReader::new(secrets, ConfigFile::Shop, None);
    let id = fields.given(report, "id", line);
    let listen = fields.given(report, "listen", read_listen);
    let public_url = fields.given(report, "public_url", read_public_url);
    let trusted = fields.given(report, "trusted_proxy", |value, report| {
        value.each(report, "strings", read_network)
    });
    let storefront = read_storefront(&fields, report);
    let gateway = fields.required(
        report,
        "gateway",
        "[gateway] with api, url and token",
        |value, report| read_gateway(value, report, &mut secrets),
    );
    let processor = fields.required(
        report,
        "processor",
        "[processor.stripe] with key and webhook_secrets",
        |value, report| read_processor(value, report, &mut secrets),
    );
    let (api, gateway_url, token) = gateway?;
    Some(ShopSettings {
        storefront: storefront?,
        id: id?,
        listen: listen?.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8090))),
        public_url: public_url?,
        trusted_proxies: trusted?.unwrap_or_default(),
        api,
        gateway_url,
        token,
        processor: processor?,
    })
}

/// Records a mistake; nothing is read.
fn refuse<T>(
    report: &mut Report<'_>,
    (code, span): (Code, Span),
    message: impl Into<String>,
    help: impl Into<String>,
) -> Option<T> {
    report.add(code, span, message).help(help);
    None
}

fn line(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<String> {
    let text = value.printable(report, LONGEST)?;
    Some(text.value.trim().to_owned())
}

fn read_listen(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<SocketAddr> {
    let text = value.text(report)?;
    text.value.parse().ok().or_else(|| {
        let at = (Code::BadListener, text.span);
        let help = "write both: listen = \"127.0.0.1:8090\"";
        refuse(report, at, "`listen` is no address with a port", help)
    })
}

fn read_network(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<IpNet> {
    let text = value.text(report)?;
    network(text.value).map_or_else(
        |help| {
            let at = (Code::BadListener, text.span);
            refuse(report, at, "`trusted_proxy` has what is no network", help)
        },
        Some,
    )
}

/// An address without what clients append to it.
fn read_url(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Placed<String>> {
    let Placed { value: text, span } = value.printable(report, LONGEST_URL)?;
    let root = parse_public_url(text.trim()).ok();
    let parsed = root.as_deref().and_then(|root| Url::parse(root).ok());
    let is_bare = |url: &Url| {
        url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    let (problem, help) = match &parsed {
        None => (
            "is no address",
            "write it whole, as in \"https://llm.example\"",
        ),
        Some(url) if !is_bare(url) => (
            "has a user name, a query or a fragment in it",
            "write the address alone, without `@`, `?` and `#`",
        ),
        Some(_) => return root.map(|value| Placed { value, span }),
    };
    let message = format!("`{}` {problem}", value.name);
    refuse(report, (Code::BadShopUrl, span), message, help)
}

/// Buyers' cookies need TLS, except on this machine.
fn read_public_url(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<String> {
    let Placed { value: url, span } = read_url(value, report)?;
    let parsed = Url::parse(&url).ok()?;
    if parsed.scheme() == "https" || parsed.host_str() == Some("localhost") {
        return Some(url);
    }
    let message = "`public_url` is not encrypted: browsers keep a buyer's cookie only over TLS";
    let help = "write https://…; http://localhost is for trials";
    refuse(report, (Code::BadShopUrl, span), message, help)
}

type GatewayPlace = (String, String, HiddenText);

fn read_gateway(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> Option<GatewayPlace> {
    let fields = value.fields(report, "the gateway", &KEYS.shop_gateway)?;
    let api = fields.required(report, "api", "api = \"http://127.0.0.1:9090\"", read_url);
    let url = fields.required(report, "url", "url = \"https://llm.example\"", read_url);
    let token = fields.required(
        report,
        "token",
        "token = { file = \"/run/secrets/token\" }",
        |value, report| read_secret(value, report, secrets, ("the gateway", TOKEN)),
    );
    Some((api?.value, url?.value, token?))
}

/// How a kind of secret begins, and what it is called.
type SecretKind = (&'static [&'static str], &'static str);

const TOKEN: SecretKind = (&["fb-token-"], "a token, from `farebox tokens create`");
const STRIPE_KEY: SecretKind = (&["sk_", "rk_"], "a secret or restricted key");
const STRIPE_WEBHOOK: SecretKind = (&["whsec_"], "the signing secret of an endpoint");

/// A secret of one kind: the slip of all is to put one in the place of another.
fn read_secret(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
    (what, (begins, kind)): (&str, SecretKind),
) -> Option<HiddenText> {
    let secret = secrets.read(value, report, what)?;
    if begins
        .iter()
        .any(|begin| secret.reveal().starts_with(begin))
    {
        return Some(secret);
    }
    let message = format!("`{}` of {what} is not {kind}", value.name);
    let help = format!("it begins with {}", begins.join(" or "));
    refuse(report, (Code::BadSecret, value.span()), message, help)
}

fn read_processor(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> Option<ProcessorSettings> {
    let fields = value.fields(report, "the processor", &KEYS.processor)?;
    fields.exclude(report, "simulated", "stripe");
    if let Some(value) = fields.get("simulated") {
        let is_empty = match value.node() {
            DeValue::Table(table) => table.is_empty(),
            _ => false,
        };
        if !is_empty {
            value.expected(report, "an empty table");
        }
        return is_empty.then_some(ProcessorSettings::Simulated);
    }
    fields.required(
        report,
        "stripe",
        "[processor.stripe] with key and webhook_secrets",
        |value, report| read_stripe(value, report, secrets),
    )
}

fn read_stripe(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> Option<ProcessorSettings> {
    let fields = value.fields(report, "the processor", &KEYS.stripe)?;
    let api = fields.given(report, "api", read_url);
    let key = fields.required(
        report,
        "key",
        "key = { file = \"/run/secrets/stripe-key\" }",
        |value, report| read_secret(value, report, secrets, ("the processor", STRIPE_KEY)),
    );
    let webhook = fields.required(
        report,
        "webhook_secrets",
        "webhook_secrets = [{ file = \"/run/secrets/stripe-webhook\" }]",
        |value, report| {
            let listed = value.each(report, SEVERAL, |member, report| {
                read_secret(member, report, secrets, ("the processor", STRIPE_WEBHOOK))
            })?;
            if listed.is_empty() {
                let message = "`webhook_secrets` is empty: no callback could be believed";
                report.add(Code::BadText, value.span(), message);
                return None;
            }
            Some(listed)
        },
    );
    Some(ProcessorSettings::Stripe {
        api: api?.map_or_else(|| STRIPE.to_owned(), |url| url.value),
        key: key?,
        webhook: webhook?,
    })
}

fn read_storefront(fields: &Fields<'_, '_>, report: &mut Report<'_>) -> Option<Storefront> {
    let name = fields.required(report, "name", "name = \"Key Corner\"", line);
    let contact = fields.given(report, "contact", line);
    let currency = fields.required(report, "currency", "currency = \"EUR\"", read_currency);
    let rate = read_rate(fields, report, currency.as_deref());
    let offers = match fields.get("offer") {
        Some(value) => read_offers(value, report, currency.as_deref(), rate.flatten()),
        None if fields.misspells("offer") => None,
        None => Some(Vec::new()),
    };
    if offers.as_ref().is_some_and(Vec::is_empty) {
        report
            .add(Code::NothingForSale, fields.span, "there is nothing to buy")
            .help("add [[offer]] with credit or plan, and price");
    }
    Some(Storefront {
        name: name?,
        contact: contact?,
        currency: currency?,
        offers: rate.and(offers)?,
    })
}

fn read_currency(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<String> {
    let text = value.text(report)?;
    if text.value.len() == 3 && text.value.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Some(text.value.to_owned());
    }
    let help = "write three capital letters: currency = \"EUR\"";
    refuse(
        report,
        (Code::BadCurrency, text.span),
        "`currency` is no currency",
        help,
    )
}

/// What a unit is worth: `Some(None)` while the currency is not known, and `None` if it has to be said.
fn read_rate(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    currency: Option<&str>,
) -> Option<Option<Amount>> {
    let written = fields.given(report, "usd_per_unit", |value, report| {
        read_sum(value, report, Amount::from_usd_str, "0.0065").filter(|rate| {
            let is_more = rate.is_positive();
            if !is_more {
                let message = "`usd_per_unit` must be more than nothing";
                report.add(Code::BadSum, value.span(), message);
            }
            is_more
        })
    })?;
    match (written, currency) {
        (Some(rate), _) => Some(Some(rate)),
        (None, None) => Some(None),
        (None, Some(currency)) if currency::has_cents(currency) => {
            Some(Some(Amount::from_picos(1_000_000_000_000)))
        }
        (None, Some(currency)) => {
            if !fields.misspells("usd_per_unit") {
                let message = format!("nobody says what one {currency} is worth");
                report
                    .add(Code::NoRate, fields.span, message)
                    .help("add what it is worth in US dollars, roughly: usd_per_unit = \"0.0065\"");
            }
            None
        }
    }
}

/// A sum in quotes, read by `parse`.
fn read_sum<T, E>(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    parse: impl FnOnce(&str) -> Result<T, E>,
    example: &str,
) -> Option<T> {
    let name = value.name;
    let help = format!("write it in quotes: {name} = \"{example}\"");
    let DeValue::String(text) = value.node() else {
        value.expected(report, "a sum in quotes").help(help);
        return None;
    };
    let sum = parse(text).ok();
    if sum.is_none() {
        let message = format!("`{name}` is no sum of money");
        report.add(Code::BadSum, value.span(), message).help(help);
    }
    sum
}

fn read_offers(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    currency: Option<&str>,
    rate: Option<Amount>,
) -> Option<Vec<CreditOffer>> {
    let tables = value.list(report, "tables, each with a header [[offer]]")?;
    let mut offers: Vec<(CreditOffer, Span)> = Vec::new();
    let mut is_good = true;
    for (at, table) in tables.into_iter().enumerate() {
        let what = format!("offer {}", at + 1);
        let Some(offer) = read_offer((table, &what), report, currency, rate) else {
            is_good = false;
            continue;
        };
        let is_same = |other: &CreditOffer| match &offer.plan {
            Some(_) => other.plan == offer.plan,
            None => *other == offer,
        };
        let same = offers.iter().find(|(other, _)| is_same(other));
        if let Some((_, first)) = same {
            let message = format!("{what} is there twice");
            let finding = report.add(Code::DuplicateOffer, table.span(), message);
            finding.also(*first, "the same");
        }
        offers.push((offer, table.span()));
    }
    is_good.then(|| offers.into_iter().map(|(offer, _)| offer).collect())
}

fn read_offer(
    (value, what): (Entry<'_, '_>, &str),
    report: &mut Report<'_>,
    currency: Option<&str>,
    rate: Option<Amount>,
) -> Option<CreditOffer> {
    let fields = value.fields(report, what, &KEYS.offer)?;
    fields.exclude(report, "plan", "credit");
    fields.exclude(report, "plan", "gift");
    let plan = fields.given(report, "plan", line);
    let credit = match fields.get("plan") {
        Some(_) => Some(Amount::ZERO),
        None => fields.required(report, "credit", "credit = \"10\"", |value, report| {
            let credit = read_sum(value, report, Amount::from_usd_str, "10")?;
            more_than_nothing(credit, credit.is_positive(), value, report)
        }),
    };
    let price = fields.required(report, "price", "price = \"11.90\"", |value, report| {
        let price = read_charge(value, report, currency)?;
        more_than_nothing(price, price.is_positive(), value, report)
    });
    let tax = fields.given(report, "tax", |value, report| {
        read_charge(value, report, currency)
    });
    let gift = fields.given(report, "gift", Entry::boolean);
    let offer = CreditOffer {
        plan: plan?,
        credit: credit?,
        price: price?,
        tax: tax?.unwrap_or(Gross::ZERO),
    };
    if offer.tax >= offer.price {
        let span = fields.get("tax").map_or(fields.span, |tax| tax.span());
        let message = format!("the tax of {what} is not less than its price");
        let help = "`price` is what is charged, and `tax` a part of it";
        return refuse(report, (Code::TaxAbovePrice, span), message, help);
    }
    if !gift?.unwrap_or(false) && rate.is_some_and(|rate| is_gift(&offer, rate)) {
        let span = fields.get("credit").map_or(fields.span, |of| of.span());
        let message =
            format!("the credit of {what} is worth more than twice its price without tax");
        report
            .add(Code::TooMuchCredit, span, message)
            .help("if that is meant, add gift = true; `usd_per_unit` is what one of the currency is worth");
        return None;
    }
    Some(offer)
}

fn more_than_nothing<T>(
    sum: T,
    is_more: bool,
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
) -> Option<T> {
    if !is_more {
        let message = format!("`{}` must be more than nothing", value.name);
        report.add(Code::BadSum, value.span(), message);
    }
    is_more.then_some(sum)
}

/// A sum that a card can be charged.
fn read_charge(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    currency: Option<&str>,
) -> Option<Gross> {
    let sum = read_sum(value, report, Gross::parse, "11.90")?;
    let Some(currency) = currency.filter(|of| currency::minor(of, sum).is_none()) else {
        return Some(sum);
    };
    let message = format!("no card is charged {sum} {currency}: `{}`", value.name);
    let places = currency::places(currency);
    let help = format!(
        "cards are charged at most 8 digits, of which {currency} has {places} behind the point"
    );
    refuse(report, (Code::BadSum, value.span()), message, help)
}

/// Whether the credit is worth more than twice the price without tax.
fn is_gift(offer: &CreditOffer, rate: Amount) -> bool {
    let net = i128::from(offer.price.parts()) - i128::from(offer.tax.parts());
    let worth = net * i128::from(rate.picos());
    i128::from(offer.credit.picos()) * 10_000 > 2 * worth
}

//! The law of token classes: each price field changes the charge of a fixture by its count and nothing else, in every family, whole
//! and streamed.

use farebox_ledger::{Amount, Evidence};
use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::upstream::{Script, ScriptedUpstream, Speech};
use crate::support::{Gateway, ask, path};

const USAGE: ReportedUsage = ReportedUsage {
    input: 100,
    cache_read: 20,
    cache_write: 30,
    cache_write_1h: 40,
    cache_write_12h: 0,
    output: 50,
    reasoning: 7,
};
const BASE: [(&str, &str); 8] = [
    ("input", "3"),
    ("cache_read", "0.3"),
    ("cache_write", "3.75"),
    ("cache_write_1h", "6"),
    ("output", "15"),
    ("reasoning", "11"),
    ("per_image", "0.002"),
    ("per_request", "0.0004"),
];
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP8zwACTGCSAQANHQEDgslx/wAAAABJRU5ErkJggg==";

/// One model with these prices, and whatever else stands in its price table.
fn model(slug: &str, prices: &[(&str, &str)], more: &str) -> String {
    let prices: Vec<String> = prices
        .iter()
        .map(|(name, value)| format!("{name} = \"{value}\""))
        .collect();
    format!(
        "[[model]]\nmodel = \"{slug}\"\nslug = \"{slug}\"\nprovider = \"T\"\nbest_path = \"chat\"\nbest_environments = [\"t\"]\n\
         price = {{ {}{more} }}\ncapabilities = [\"vision\", \"tools\", \"streaming\"]\n\
         limits = {{ context = 200_000, max_output = 64_000 }}\n\n",
        prices.join(", ")
    )
}

fn routes(base_url: &str, slugs: &[&str], more: &str) -> String {
    let mut text = format!(
        "[provider.up]\nbase_url = \"{base_url}\"\nspeaks = [\"chat\", \"responses\", \"messages\"]\nkey = {{ env = \"K\" }}\n{more}\n\n"
    );
    for slug in slugs {
        text += &format!(
            "[[route]]\nslug = \"{slug}\"\ntargets = [ {{ provider = \"up\", model = \"u\" }} ]\n\n"
        );
    }
    text
}

/// A request with one picture.
fn with_picture(family: Family, slug: &str, stream: bool) -> Value {
    let mut body = ask(family, slug, stream);
    let url = format!("data:image/png;base64,{PNG}");
    let part = match family {
        Family::Chat => json!({"type": "image_url", "image_url": {"url": url}}),
        Family::Responses => json!({"type": "input_image", "image_url": url}),
        Family::Messages => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
        }
    };
    let list = if family == Family::Responses {
        "input"
    } else {
        "messages"
    };
    body[list][0]["content"] = json!([part]);
    body
}

/// What the upstream counts in a family: only native messages tell one-hour writes apart, and reasoning by a name of their own.
fn speech(family: Family) -> Speech {
    let speech = Speech::new(family, "one two three").usage(USAGE);
    if family != Family::Messages {
        return speech;
    }
    speech.claims(json!({
        "input_tokens": 100, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 70, "output_tokens": 57,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 40},
        "output_tokens_details": {"thinking_tokens": 7}}))
}

fn counts(family: Family) -> [i64; 8] {
    let (written, one_hour) = if family == Family::Messages {
        (30, 40)
    } else {
        (70, 0)
    };
    [100, 20, written, one_hour, 50, 7, 1, 1]
}

async fn charge(gateway: &Gateway, body: &Value, family: Family) -> i64 {
    let key = gateway.key("100.00").await;
    let answer = gateway.post(path(family), &key, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let charges = gateway.charges(&key).await;
    assert_eq!(charges.len(), 1);
    -charges[0].amount.picos()
}

fn answering() -> Script {
    Script::by(|seen, _| {
        let family = Family::ALL
            .into_iter()
            .find(|family| seen.path.ends_with(family.protocol().path))
            .unwrap();
        if seen.json()["stream"] == true {
            speech(family).stream()
        } else {
            speech(family).whole()
        }
    })
}

#[tokio::test]
async fn each_price_field_moves_the_charge_by_its_count() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let mut catalog = model("base", &BASE, "");
    let raised: Vec<String> = BASE
        .iter()
        .map(|(name, _)| name.replace('_', "-"))
        .collect();
    for (at, slug) in raised.iter().enumerate() {
        let mut prices = BASE;
        prices[at].1 = "23";
        catalog += &model(slug, &prices, "");
    }
    let slugs: Vec<&str> = ["base"]
        .into_iter()
        .chain(raised.iter().map(String::as_str))
        .collect();
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url(), &slugs, "")).await;
    for family in Family::ALL {
        for stream in [false, true] {
            let base = charge(&gateway, &with_picture(family, "base", stream), family).await;
            let units = [
                1_000_000_i64,
                1_000_000,
                1_000_000,
                1_000_000,
                1_000_000,
                1_000_000,
                1_000_000_000_000,
                1_000_000_000_000,
            ];
            let price = |text: &str, unit: i64| {
                let (whole, part) = text.split_once('.').unwrap_or((text, ""));
                let digits: i64 = format!("{whole}{part:0<6}").parse().unwrap();
                digits * (unit / 1_000_000)
            };
            let exact: i64 = (0..8)
                .map(|at| counts(family)[at] * price(BASE[at].1, units[at]))
                .sum();
            assert_eq!(base, exact, "{family}, stream {stream}");
            for (at, slug) in raised.iter().enumerate() {
                let more =
                    charge(&gateway, &with_picture(family, slug, stream), family).await - base;
                let expected =
                    counts(family)[at] * (price("23", units[at]) - price(BASE[at].1, units[at]));
                assert_eq!(more, expected, "{family}, stream {stream}, {slug}");
            }
        }
    }
}

#[tokio::test]
async fn a_tier_reprices_the_whole_request_only_above_its_bound() {
    let upstream = ScriptedUpstream::start(answering()).await;
    let tier = |above: u64| {
        format!(
            ", tiers = [ {{ above_input = {above}, price = {{ input = \"6\", output = \"30\" }} }} ]"
        )
    };
    let base = [("input", "3"), ("output", "15")];
    let catalog = model("plain", &base, "")
        + &model("below", &base, &tier(190))
        + &model("above", &base, &tier(189));
    let gateway = Gateway::start(
        &catalog,
        &routes(&upstream.base_url(), &["plain", "below", "above"], ""),
    )
    .await;
    for family in Family::ALL {
        let plain = charge(&gateway, &ask(family, "plain", true), family).await;
        assert_eq!(
            plain,
            (190 * 3 + 57 * 15) * 1_000_000,
            "{family}: unset cache and reasoning prices cost input and output"
        );
        assert_eq!(
            charge(&gateway, &ask(family, "below", true), family).await,
            plain,
            "{family}: 190 is not above 190"
        );
        assert_eq!(
            charge(&gateway, &ask(family, "above", true), family).await,
            2 * plain,
            "{family}"
        );
    }
}

/// A provider selects the tier of each step by that step's input: the first case would cost twice as much as one request.
#[tokio::test]
async fn each_step_of_a_compacted_answer_has_its_own_tier() {
    let step = |kind: &str, input: u64, output: u64| json!({"type": kind, "input_tokens": input, "output_tokens": output});
    let cases = [
        (
            json!([
                step("compaction", 120_000, 3_000),
                step("message", 90_000, 500)
            ]),
            90_000,
            (210_000 * 3 + 3_500 * 15),
        ),
        (
            json!([
                step("compaction", 180_000, 3_500),
                step("message", 120_000, 500)
            ]),
            120_000,
            (180_000 * 6 + 3_500 * 30 + 120_000 * 3 + 500 * 15),
        ),
        (
            json!([step("message", 130_000, 200), step("message", 140_000, 300)]),
            270_000,
            (270_000 * 3 + 500 * 15),
        ),
        (
            json!([step("compaction", 160_000, 3_000)]),
            0,
            (160_000 * 6 + 3_000 * 30),
        ),
    ];
    for (iterations, input, micros) in cases {
        let usage = json!({"input_tokens": input, "output_tokens": if input == 0 { 0 } else { 500 }, "iterations": iterations});
        let upstream = ScriptedUpstream::start(Script::by(move |seen, _| {
            let speech = Speech::new(Family::Messages, "one two three").claims(usage.clone());
            if seen.json()["stream"] == true {
                speech.stream()
            } else {
                speech.whole()
            }
        }));
        let upstream = upstream.await;
        let tier =
            ", tiers = [ { above_input = 150_000, price = { input = \"6\", output = \"30\" } } ]";
        let catalog = model("tiered", &[("input", "3"), ("output", "15")], tier);
        let gateway =
            Gateway::start(&catalog, &routes(&upstream.base_url(), &["tiered"], "")).await;
        for stream in [false, true] {
            let key = gateway.key("100.00").await;
            let mut body = ask(Family::Messages, "tiered", stream);
            body["messages"][0]["content"] = json!("a ".repeat(100_000));
            let answer = gateway.post(path(Family::Messages), &key, &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let entry = gateway.charges(&key).await.remove(0);
            let bill = entry.bill.unwrap();
            assert_eq!(
                -entry.amount.picos(),
                micros * 1_000_000,
                "{:?}, stream {stream}",
                bill.lines
            );
            assert_eq!(
                (bill.evidence, bill.exposure),
                (Some(Evidence::Provider), Amount::ZERO),
                "stream {stream}"
            );
        }
    }
}

#[tokio::test]
async fn reasoning_is_inside_the_output_unless_the_provider_says_outside() {
    for (more, output) in [("", 50), ("reasoning = \"outside\"", 57)] {
        let upstream = ScriptedUpstream::start(answering()).await;
        let prices = [("input", "0"), ("output", "10"), ("reasoning", "100")];
        let gateway = Gateway::start(
            &model("base", &prices, ""),
            &routes(&upstream.base_url(), &["base"], more),
        )
        .await;
        for family in Family::ALL {
            let cost = charge(&gateway, &ask(family, "base", false), family).await;
            assert_eq!(cost, (output * 10 + 7 * 100) * 1_000_000, "{family} {more}");
        }
    }
}

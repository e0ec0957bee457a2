//! Sizes: ten thousand models, ten thousand mistakes, and prices that are checked by hand.

use super::super::*;
use super::secrets;

#[test]
fn prices_by_hand() {
    let tokens =
        |text| parse_price(text, PriceUnit::MillionTokens).map(farebox_ledger::Amount::picos);
    for (text, picos) in [
        ("3.00", 3_000_000),
        ("0", 0),
        ("0.000001", 1),
        ("100000", 100_000_000_000),
        ("00.5", 500_000),
    ] {
        assert_eq!(tokens(text), Ok(picos), "{text}");
    }
    for text in [
        "", ".", "3.", ".5", "+3", "3e2", "3,00", "1_000", " 3", "$3", "-", "--1", "-x", "٣", "0x3",
    ] {
        assert_eq!(tokens(text), Err(PriceError::NotDecimal), "{text}");
    }
    assert_eq!(tokens("-1.5"), Err(PriceError::Negative));
    assert_eq!(tokens("1.0000000"), Err(PriceError::TooManyDecimals));
    for text in ["100000.000001", "99999999999999999999"] {
        assert_eq!(tokens(text), Err(PriceError::TooLarge));
    }
    assert_eq!(
        parse_price("0.000000000001", PriceUnit::One).map(farebox_ledger::Amount::picos),
        Ok(1)
    );
}

/// A lineup of many models and their routes.
fn large(count: usize, price: &str) -> (Source, Source) {
    let (mut catalog, mut routes) = (
        String::new(),
        "[provider.sim]\nsimulated = true\n".to_owned(),
    );
    for index in 0..count {
        catalog.push_str(&format!(
            "[[model]]\nmodel = \"Model {index}\"\nslug = \"model-{index}\"\nprovider = \"Many\"\nbest_path = \"chat\"\n\
             best_environments = [\"backend\"]\nprice = {{ input = {price}, output = \"15.00\", cache_read = \"0.30\" }}\n\
             capabilities = [\"vision\", \"tools\", \"streaming\"]\nlimits = {{ context = 200_000, max_output = 64_000 }}\n\
             aliases = [\"alias-{index}\"]\n\n"
        ));
        routes.push_str(&format!(
            "[[route]]\nslug = \"model-{index}\"\ntargets = [ {{ provider = \"sim\", model = \"sim\" }} ]\n\n"
        ));
    }
    (
        Source::new("catalog.toml", catalog),
        Source::new("routes.toml", routes),
    )
}

#[test]
fn ten_thousand_models_load_quickly() {
    let (catalog, routes) = large(10_000, "\"3.00\"");
    let begin = std::time::Instant::now();
    let (config, diagnostics) = load(&catalog, &routes, &secrets(false));
    let took = begin.elapsed();
    println!(
        "10,000 models ({} bytes) loaded in {took:?}",
        catalog.text.len() + routes.text.len()
    );
    assert!(diagnostics.is_empty());
    assert_eq!(config.unwrap().catalog.models.len(), 10_000);
    // Unoptimised code on a busy machine gets more time than a release build is promised to take; a square would take longer.
    assert!(
        took.as_millis() < if cfg!(debug_assertions) { 60_000 } else { 200 },
        "{took:?}"
    );
}

#[test]
fn ten_thousand_mistakes_are_counted_not_listed() {
    let (catalog, routes) = large(10_000, "3.00");
    let (config, diagnostics) = load(&catalog, &routes, &secrets(false));
    assert!(config.is_none());
    assert!(
        diagnostics
            .0
            .iter()
            .any(|finding| finding.code == "N502" && finding.message.starts_with("9500 more"))
    );
    assert!(diagnostics.0.len() < 1_100);
    let garbage = Source::new("catalog.toml", "= [ \" }\n".repeat(1_300_000));
    assert!(
        load(&garbage, &routes, &secrets(false)).1.has_errors(),
        "10 MB of nonsense"
    );
}

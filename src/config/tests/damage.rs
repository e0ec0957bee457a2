//! Damaged files: slips of the pen, habits of other formats, random damage, and secrets where none belong.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::*;
use super::{base, pairs, secrets};

/// The shipped catalog with one edit, checked with the shipped routes.
fn after_an_edit(from: &str, to: &str) -> Diagnostics {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [catalog, routes] = ["catalog.toml", "routes.toml"]
        .map(|name| std::fs::read_to_string(root.join(name)).unwrap());
    assert!(catalog.contains(from) || routes.contains(from));
    let [catalog, routes] = [catalog, routes].map(|text| text.replacen(from, to, 1));
    load(
        &Source::new("catalog.toml", catalog),
        &Source::new("routes.toml", routes),
        &secrets(false),
    )
    .1
}

#[test]
fn one_slip_of_the_pen_is_one_error() {
    let slips = [
        (r#"["SDKs", "backend"]"#, r#"["SDKs, "backend"]"#),
        (r#"["SDKs", "backend"]"#, r#"["SDKs", "backend""#),
        (r#""sim-chat" "#, r#""sim-chat "#),
        ("\n[[model]]", "\n[model]"),
        ("\n[[model]]", "\n[[model]"),
        (r#"cache_read = "0.125" }"#, r#"cache_read = "0.125""#),
        ("{ context = 64_000,", "{ context = 64_000"),
        ("[provider.sim]", "[provider.sim"),
        (
            r#"{ provider = "sim", model = "sim" } ]"#,
            r#"{ provider = "sim", model = "sim" "#,
        ),
        (
            r#"{ provider = "sim", model = "sim" } ]"#,
            r#"{ provider = "sim", model = "sim" ]"#,
        ),
        (r#"open = "30s" }"#, r#"open = "30s""#),
        ("simulated = true", "simulated true"),
    ];
    for (from, to) in slips {
        let diagnostics = after_an_edit(from, to);
        let report = diagnostics.render(Paint::Plain);
        assert_eq!(diagnostics.counts().errors, 1, "{from} → {to}\n{report}");
        assert!(
            !report.contains("***"),
            "nothing here is a secret\n{report}"
        );
    }
    let two = after_an_edit("{ context = 64_000,", "{ context = 64_000").render(Paint::Plain);
    assert!(two.contains("catalog.toml:29"), "{two}");
    let open =
        after_an_edit(r#"["SDKs", "backend"]"#, r#"["SDKs", "backend""#).render(Paint::Plain);
    assert!(
        open.contains("this `[` is not closed") && open.contains("catalog.toml:14:21"),
        "{open}"
    );
}

#[test]
fn two_slips_in_two_tables_are_two_errors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let catalog = std::fs::read_to_string(root.join("catalog.toml")).unwrap();
    let catalog = catalog
        .replacen("\"sim-chat\" ", "\"sim-chat ", 1)
        .replacen("context = 64_000,", "context = 64_000", 1);
    let catalog = catalog.replacen(
        "vision\", \"tools\", \"streaming\"]\nlimits            = { context = 200_000, max_output = 32_768",
        "vison\", \"tools\"]\nlimits            = { context = 200_000, max_output = 32_768",
        1,
    );
    let routes = Source::new(
        "routes.toml",
        std::fs::read_to_string(root.join("routes.toml")).unwrap(),
    );
    let diagnostics = load(
        &Source::new("catalog.toml", catalog),
        &routes,
        &secrets(false),
    )
    .1;
    let codes: Vec<_> = diagnostics
        .0
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.code)
        .collect();
    assert_eq!(
        codes,
        ["E101", "E101", "E108"],
        "{}",
        diagnostics.render(Paint::Plain)
    );
}

#[test]
fn habits_of_other_formats_are_named() {
    let habits = [
        (
            "slug              = \"sim-chat\"",
            "slug: \"sim-chat\"",
            "TOML has `=` between",
        ),
        (
            "slug              = \"sim-chat\"",
            "slug = \"sim-chat\";",
            "without `;`",
        ),
        (
            "slug              = \"sim-chat\"",
            "slug = sim-chat",
            "write it in quotes",
        ),
        (
            "slug              = \"sim-chat\"",
            "slug\u{a0}= \"sim-chat\"",
            "not an ordinary space",
        ),
        (
            "slug              = \"sim-chat\"",
            "<<<<<<< HEAD\nslug = \"sim-chat\"",
            "left by a merge",
        ),
        (
            "slug              = \"sim-chat\"",
            "slug = \"a\"\nslug = \"sim-chat\"",
            "keep one of the two",
        ),
        (
            "[\"vision\", \"tools\", \"streaming\"]",
            "\"vision\", \"tools\"",
            "need brackets",
        ),
        ("simulated = true", "simulated = yes", "write true or false"),
        (
            "simulated = true",
            "simulated = True",
            "write true or false",
        ),
        (
            "simulated = true",
            "simulated = true\n[provider.sim]",
            "keep one of the two",
        ),
    ];
    for (from, to, help) in habits {
        let report = after_an_edit(from, to).render(Paint::Plain);
        assert!(
            report.contains(help) && report.contains("1 error"),
            "{from} → {to}: {report}"
        );
        assert_eq!(
            report.contains("first here"),
            help.starts_with("keep one of the two"),
            "{report}"
        );
    }
    let old_mac = Source::new("catalog.toml", base().0.text.replace('\n', "\r"));
    let report = load(&old_mac, &base().1, &secrets(false))
        .1
        .render(Paint::Plain);
    assert!(
        report.contains("line ends") && report.contains("1 error, 1 note"),
        "{report}"
    );
}

/// Ways to damage a text: the operation, and its position as a fraction of the length.
fn damage() -> impl Strategy<Value = (u8, prop::sample::Index, usize, usize)> {
    (
        0..8_u8,
        any::<prop::sample::Index>(),
        1..16_usize,
        0..SCRAPS.len(),
    )
}

const SCRAPS: &[&str] = &[
    "\"", "'", "\"\"\"", "=", "[", "]", "[[", "{", "}", ",", "\n", "#", ".", " ", "\\", "é", "🔑",
    "key", "0.1", "\u{0}", "\r\n", "true",
];

fn apply(text: &str, (kind, at, length, scrap): (u8, prop::sample::Index, usize, usize)) -> String {
    let characters: Vec<char> = text.chars().collect();
    let at = at.index(characters.len().max(1)).min(characters.len());
    // Only within a line: a secret whose quote and name are both gone is indistinguishable from any other word.
    let until = (at..(at + length).min(characters.len()))
        .find(|index| characters[*index] == '\n')
        .unwrap_or((at + length).min(characters.len()));
    let part = |range: std::ops::Range<usize>| characters[range].iter().collect::<String>();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let line = text
        .chars()
        .take(at)
        .filter(|each| *each == '\n')
        .count()
        .min(lines.len().saturating_sub(1));
    match kind {
        0 | 1 => part(0..at) + &part(until..characters.len()),
        2 | 3 => part(0..at) + SCRAPS[scrap] + &part(at..characters.len()),
        4 => part(0..at),
        5 => lines
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != line)
            .map(|(_, text)| *text)
            .collect(),
        6 => lines
            .iter()
            .enumerate()
            .map(|(index, text)| {
                if index == line {
                    text.repeat(2)
                } else {
                    (*text).to_owned()
                }
            })
            .collect(),
        _ => lines
            .iter()
            .enumerate()
            .map(|(index, text)| {
                if index == line {
                    text.trim_end_matches('\n')
                } else {
                    text
                }
            })
            .collect(),
    }
}

const SECRET: &str = "hunter2-very-secret";

/// Routes with the same secret in every place where one could be written.
fn leaky_routes() -> String {
    let (_, routes) = pairs("valid").remove("full").unwrap();
    let literal = format!("\"{SECRET}\"");
    let text = routes
        .text
        .replace("{ env = \"ALPHA_KEY\" }, {", &format!("{literal}, {{"));
    let text = text
        .replace("{ env = \"TEAM_HEADER\" }", &literal)
        .replace("\"farebox\"", &literal);
    format!(
        "{text}\n[provider.gamma]\nbase_url = \"https://gamma.example/v1\"\nspeaks = [\"chat\"]\n\
        key = {{ env = {literal} }}\n\n[provider.delta]\nkey = '''\n{SECRET}\n'''\n[provider.delta.headers]\nmodel = {literal}\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_never_panic_and_never_show_a_secret(damages in prop::collection::vec(damage(), 0..6), other in prop::collection::vec(damage(), 0..3)) {
        let (catalog, _) = pairs("valid").remove("full").unwrap();
        let routes = damages.into_iter().fold(leaky_routes(), |text, each| apply(&text, each));
        let catalog = other.into_iter().fold(catalog.text, |text, each| apply(&text, each));
        let (config, diagnostics) = load(&Source::new("catalog.toml", catalog), &Source::new("routes.toml", routes.as_str()), &secrets(false));
        prop_assert_eq!(config.is_some(), !diagnostics.has_errors());
        let shown = diagnostics.render(Paint::Plain) + &serde_json::to_string(&diagnostics).unwrap();
        for start in 0..SECRET.len() - 8 {
            let piece = &SECRET[start..start + 9];
            // Names of fields are shown, whatever they are.
            prop_assume!(!routes.lines().any(|line| line.split_once('=').is_some_and(|(name, _)| name.contains(piece))));
            prop_assert!(!shown.contains(piece), "{piece} is shown:\n{shown}\n--- of\n{routes}");
        }
    }

    #[test]
    fn any_text_is_survived(catalog in "\\PC{0,200}", routes in "[\\[\\]{}=\"'a-z.,#\n ]{0,200}") {
        let (config, diagnostics) = load(&Source::new("c", catalog), &Source::new("r", routes), &secrets(false));
        prop_assert!(config.is_none() && diagnostics.has_errors());
        prop_assert!(!diagnostics.render(Paint::Coloured).is_empty());
    }

    #[test]
    fn the_mask_keeps_every_column(text in "(\\PC|\n|\t){0,300}") {
        for masked in [farebox_toml::redact::file(&text), farebox_toml::redact::catalog(&text)] {
            prop_assert_eq!(masked.len(), text.len());
            prop_assert_eq!(masked.chars().count(), text.chars().count());
            prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
        }
        prop_assert_eq!(farebox_toml::redact::words(&text).len(), text.len());
    }

    #[test]
    fn prices_are_exact(picos in 0_i64..=100_000_000_000) {
        let amount = farebox_ledger::Amount::from_picos(picos);
        let shown = show_price(amount, PriceUnit::MillionTokens).replace(['$', ','], "");
        prop_assert_eq!(parse_price(&shown, PriceUnit::MillionTokens), Ok(amount));
        let shown = show_price(amount, PriceUnit::One).replace(['$', ','], "");
        prop_assert_eq!(parse_price(&shown, PriceUnit::One), Ok(amount));
    }
}

#[test]
fn words_that_look_like_secrets_are_hidden() {
    for (text, shown) in [
        ("see sk-live-0123456789", "see sk-***************"),
        ("Bearer abcdef123456", "Bearer ************"),
        ("abcdefghij0123456789", "********************"),
        (
            "https://me:pass@host/v1?key=1#x",
            "https://*******@host/v1?*******",
        ),
        ("me:pass@host/v1", "*******@host/v1"),
        (
            "claude-sonnet-4-5-20250929 ask-something-else",
            "claude-sonnet-4-5-20250929 ask-something-else",
        ),
        (
            "did you mean `base_url`? /v1/chat",
            "did you mean `base_url`? /v1/chat",
        ),
    ] {
        assert_eq!(farebox_toml::redact::words(text), shown);
    }
    assert_eq!(
        farebox_toml::redact::file("key = \"é🔑x\"\n"),
        "key = \"·🔒*\"\n"
    );
}

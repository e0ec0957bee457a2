//! Tests of whole loads: one bad file per mistake with the complete report, valid files, and damage of every kind.
//!
//! The files and the expected reports are under `tests/configs`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::findings::code::Code;
use super::*;

impl Config {
    /// The same with providers that speak one family only. The built-in provider speaks all, so nothing is translated for it.
    pub(crate) fn speaking(mut self, family: farebox_protocol::Family) -> Self {
        let only = |provider: &Provider| {
            Arc::new(Provider {
                speaks: vec![family],
                ..provider.clone()
            })
        };
        self.providers = self
            .providers
            .iter()
            .map(|provider| only(provider))
            .collect();
        let names: Vec<(String, String)> = self
            .catalog
            .by_name
            .drain()
            .map(|(name, model)| (name, model.slug.clone()))
            .collect();
        for model in &mut self.catalog.models {
            let model = Arc::get_mut(model).unwrap();
            Arc::make_mut(&mut model.route)
                .targets
                .iter_mut()
                .for_each(|target| target.provider = only(&target.provider));
        }
        for (name, slug) in names {
            let model = self
                .catalog
                .models
                .iter()
                .find(|model| model.slug == slug)
                .unwrap();
            self.catalog.by_name.insert(name, Arc::clone(model));
        }
        self
    }
}

/// Secrets of a table, so that tests need no environment.
struct TableSecrets {
    values: HashMap<&'static str, &'static str>,
    lenient: bool,
}

impl Secrets for TableSecrets {
    fn variable(&self, name: &str) -> Option<String> {
        self.values.get(name).map(ToString::to_string)
    }

    fn file(&self, path: &Path) -> std::io::Result<String> {
        self.values
            .get(path.to_str().unwrap())
            .map(ToString::to_string)
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn lenient(&self) -> bool {
        self.lenient
    }
}

const ALPHA_KEY: &str = "alpha-secret-0123";

fn secrets(lenient: bool) -> TableSecrets {
    let values = HashMap::from([
        ("ALPHA_KEY", ALPHA_KEY),
        ("TEAM_HEADER", "team-0123456"),
        ("EMPTY", ""),
        ("SHORT", "1234567"),
        ("SPACED", "two words here"),
        ("secrets/good", " file-secret-0123\n"),
        ("secrets/short", "  1234567  \n"),
    ]);
    TableSecrets { values, lenient }
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/configs")
        .join(name)
}

/// The pairs of files in a directory by stem; a missing half is the good base.
fn pairs(name: &str) -> BTreeMap<String, (Source, Source)> {
    let base = directory("valid");
    let mut stems: Vec<String> = std::fs::read_dir(directory(name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| {
            file.strip_suffix(".catalog.toml")
                .or(file.strip_suffix(".routes.toml"))
                .map(str::to_owned)
        })
        .collect();
    stems.sort();
    stems.dedup();
    let half = |stem: &str, which: &str| {
        let text = std::fs::read_to_string(directory(name).join(format!("{stem}.{which}.toml")))
            .unwrap_or_else(|_| {
                std::fs::read_to_string(base.join(format!("base.{which}.toml"))).unwrap()
            });
        Source::new(format!("{which}.toml"), text)
    };
    stems
        .into_iter()
        .map(|stem| {
            (
                stem.clone(),
                (half(&stem, "catalog"), half(&stem, "routes")),
            )
        })
        .collect()
}

fn base() -> (Source, Source) {
    pairs("valid").remove("base").unwrap()
}

fn snapshots() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(directory("reports"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

#[test]
fn every_mistake_has_its_report() {
    let mut seen: HashSet<&'static str> = HashSet::new();
    for (stem, (catalog, routes)) in pairs("invalid") {
        let (config, diagnostics) = load(&catalog, &routes, &secrets(false));
        let report = diagnostics.render(Paint::Plain);
        assert_eq!(config.is_some(), !diagnostics.has_errors(), "{stem}");
        assert!(!report.contains("hunter2"), "a secret is shown:\n{report}");
        let code = stem.split('-').next().unwrap().to_uppercase();
        assert!(
            diagnostics.0.iter().any(|finding| finding.code == code),
            "{stem} does not have {code}:\n{report}"
        );
        seen.extend(diagnostics.0.iter().map(|finding| finding.code));
        snapshots().bind(|| insta::assert_snapshot!(stem, report));
    }
    // These need other circumstances and have their own tests.
    let elsewhere = [
        Code::Unreadable,
        Code::PriceJump,
        Code::Vanished,
        Code::SecretNotChecked,
        Code::MoreFindings,
        Code::Miscounting,
    ];
    for code in Code::ALL.iter().filter(|code| !elsewhere.contains(code)) {
        assert!(seen.contains(code.id()), "no file shows {}", code.id());
    }
}

#[test]
fn valid_files_are_clean() {
    for (stem, (catalog, routes)) in pairs("valid") {
        let (config, diagnostics) = load(&catalog, &routes, &secrets(false));
        assert_eq!(diagnostics.render(Paint::Plain), "no findings\n", "{stem}");
        assert!(config.is_some());
    }
}

#[test]
fn shipped_files_are_clean_and_need_no_environment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let nothing = TableSecrets {
        values: HashMap::new(),
        lenient: false,
    };
    let (config, diagnostics) = load_files(
        &root.join("catalog.toml"),
        &root.join("routes.toml"),
        &nothing,
    );
    assert_eq!(diagnostics.render(Paint::Plain), "no findings\n");
    let catalog = config.unwrap().catalog;
    for family in farebox_protocol::Family::ALL {
        assert!(catalog.models.iter().any(|model| model.best_path == family));
    }
    assert!(
        catalog
            .models
            .iter()
            .any(|model| !model.can(Capability::Vision))
    );
    assert!(
        catalog
            .models
            .iter()
            .any(|model| model.slug.starts_with("claude-"))
    );
}

#[test]
fn the_starter_of_every_known_service_is_clean() {
    assert!(presets().len() >= 5);
    for preset in presets() {
        let catalog = Source::new("catalog.toml", preset.starter_catalog());
        let routes = Source::new("routes.toml", preset.starter_routes());
        let (config, diagnostics) = load(&catalog, &routes, &secrets(true));
        let other: Vec<_> = diagnostics
            .0
            .iter()
            .filter(|finding| finding.code != Code::SecretNotChecked.id())
            .collect();
        assert!(
            other.is_empty(),
            "{}: {}",
            preset.name,
            diagnostics.render(Paint::Plain)
        );
        let config = config.unwrap();
        let provider = &config
            .catalog
            .get(&preset.model.slug)
            .unwrap()
            .route
            .targets[0]
            .provider;
        assert_eq!(provider.endpoint, Endpoint::Http(preset.base_url.clone()));
        assert_eq!(
            (&provider.speaks, provider.auth),
            (&preset.speaks(), preset.auth()),
            "{}",
            preset.name
        );
        assert_eq!(
            (provider.chat_limit, &provider.refuse_beta),
            (preset.chat_limit(), &preset.refuse_beta)
        );
        assert_eq!(provider.pass, preset.pass);
        let blanks = preset.starter_catalog();
        assert!(
            blanks.contains("fill in") && blanks.contains("\"…\""),
            "the next model's prices are left to the operator"
        );
    }
}

#[test]
fn a_field_of_the_provider_wins_over_its_kind() {
    let preset = preset("anthropic").unwrap();
    let routes = preset.starter_routes().replace(
        "kind     = ",
        "refuse_beta = []\nbase_url = \"https://eu.example/v1\"\nkind     = ",
    );
    let catalog = Source::new("catalog.toml", preset.starter_catalog());
    let config = load(
        &catalog,
        &Source::new("routes.toml", routes),
        &secrets(true),
    )
    .0
    .unwrap();
    let provider = config.provider("anthropic").unwrap();
    assert_eq!(
        provider.endpoint,
        Endpoint::Http("https://eu.example/v1".to_owned())
    );
    assert!(provider.refuse_beta.is_empty());
    assert_eq!(provider.auth, preset.auth(), "the rest is the preset's");
}

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
fn shipped_examples_in_comments_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let uncommented = |name: &str| {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let is_toml = |line: &str| line.starts_with('[') || line.contains(" = ");
        let lines = text.lines().map(|line| {
            line.strip_prefix("# ")
                .filter(|rest| is_toml(rest))
                .unwrap_or(line)
        });
        Source::new(name, lines.collect::<Vec<_>>().join("\n"))
    };
    let (config, diagnostics) = load(
        &uncommented("catalog.toml"),
        &uncommented("routes.toml"),
        &secrets(true),
    );
    let report = diagnostics.render(Paint::Plain);
    assert!(
        config.is_some_and(|config| config.catalog.get("claude-sonnet-4.5").is_some()),
        "{report}"
    );
    assert_eq!(diagnostics.counts().errors, 0, "{report}");
}

#[test]
fn defaults_and_every_field() {
    let (catalog, routes) = pairs("valid").remove("full").unwrap();
    let config = load(&catalog, &routes, &secrets(false)).0.unwrap();
    let alpha = config.catalog.get("alpha-one").unwrap();
    snapshots().bind(|| insta::assert_debug_snapshot!("valid-full-alpha", alpha));
    let beta = config.catalog.get("beta:free").unwrap();
    assert_eq!(beta.limits.default_output, 4_096, "capped at max_output");
    assert_eq!((beta.route.retry, beta.route.breaker.failures), (1, 5));
    assert_eq!(
        alpha.route.targets[0].provider.keys[1].reveal(),
        "file-secret-0123",
        "file secrets are trimmed"
    );
    assert_eq!(
        config.provider("beta.local").unwrap().endpoint,
        Endpoint::Http("http://127.0.0.1:8000".to_owned())
    );
    assert!(!format!("{config:?}").contains(ALPHA_KEY));
}

#[test]
fn names_are_found_or_explained() {
    let (catalog, routes) = pairs("valid").remove("full").unwrap();
    let catalog = load(&catalog, &routes, &secrets(false)).0.unwrap().catalog;
    assert!(
        matches!(catalog.find("alpha-latest"), Lookup::Found(model) if model.slug == "alpha-1")
    );
    let retired = catalog.find("alpha-0");
    assert!(matches!(retired, Lookup::Retired(_, Some("alpha-1"))));
    assert!(
        matches!(catalog.find("vendor/Alpha-2"), Lookup::Unknown(near) if near == ["alpha-1", "beta:free"])
    );
    assert!(matches!(catalog.find(&"x".repeat(100_000)), Lookup::Unknown(near) if near.is_empty()));
    for far in ["", "banana", "/"] {
        assert!(
            matches!(catalog.find(far), Lookup::Unknown(near) if near.len() == 2),
            "{far}"
        );
    }
}

#[test]
fn no_secrets_turns_unset_secrets_into_notes() {
    let (catalog, routes) = pairs("invalid").remove("e309-unset-secret").unwrap();
    let (config, diagnostics) = load(&catalog, &routes, &secrets(true));
    assert!(config.is_some());
    assert_eq!(diagnostics.summary(), "1 warning, 2 notes");
    let (catalog, routes) = pairs("invalid").remove("e308-literal-secret").unwrap();
    assert!(
        load(&catalog, &routes, &secrets(true)).0.is_none(),
        "a literal stays an error"
    );
}

#[test]
fn files_that_cannot_be_read_are_findings() {
    let here = tempfile::tempdir().unwrap();
    let (catalog, routes) = (
        here.path().join("catalog.toml"),
        here.path().join("routes.toml"),
    );
    std::fs::write(&routes, b"# \xff\xfe\n").unwrap();
    let (config, diagnostics) = load_files(&catalog, &routes, &secrets(false));
    assert!(config.is_none());
    let report = diagnostics
        .render(Paint::Plain)
        .replace(here.path().to_str().unwrap(), "DIR");
    snapshots().bind(|| insta::assert_snapshot!("e106-unreadable", report));
    std::fs::remove_file(&routes).unwrap();
    let empty_folder = load_files(&catalog, &routes, &secrets(false)).1;
    let advice = empty_folder.render(Paint::Plain);
    assert!(
        advice.matches("`farebox init`").count() == 1 && empty_folder.summary() == "2 errors",
        "{advice}"
    );
    std::fs::write(&catalog, "").unwrap();
    std::fs::write(&routes, "").unwrap();
    assert_eq!(
        load_files(&catalog, &routes, &secrets(false)).1.0[0].code,
        "E201"
    );
}

#[test]
fn price_jumps_and_vanished_slugs_are_warned_about() {
    let (catalog, routes) = base();
    let old = load(&catalog, &routes, &secrets(false)).0.unwrap();
    let dearer = Source::new(
        "catalog.toml",
        catalog
            .text
            .replace("\"3.00\"", "\"4.51\"")
            .replace("\"0.30\"", "\"0.45\""),
    );
    let new = load(&dearer, &routes, &secrets(false)).0.unwrap();
    let known = [
        "alpha-1".to_owned(),
        "alpha-0".to_owned(),
        "alpha-latest".to_owned(),
    ];
    let report = Diagnostics(compare(Some(&old), &new, &known)).render(Paint::Plain);
    snapshots().bind(|| insta::assert_snapshot!("w403-w404-compare", report));
    assert!(compare(Some(&old), &old, &[]).is_empty());
}

#[test]
fn differences_are_rows() {
    let load_one = |name: &str| {
        let (catalog, routes) = pairs("valid").remove(name).unwrap();
        load(&catalog, &routes, &secrets(false))
            .0
            .unwrap()
            .summary()
    };
    let (old, new) = (load_one("base"), load_one("full"));
    let shown = |old: &Summary, new: &Summary| {
        let line = |row: DiffRow| {
            format!(
                "{} {:?} {} {}: {:?} → {:?}\n",
                row.change.mark(),
                row.subject,
                row.name,
                row.field,
                row.old,
                row.new
            )
        };
        diff(old, new).into_iter().map(line).collect::<String>()
    };
    snapshots().bind(|| insta::assert_snapshot!("diff", shown(&old, &new)));
    assert_eq!(shown(&old, &old), "");
    let text = serde_json::to_string(&new).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), new);
    assert!(!text.contains("secret-0123") && !text.contains("team-0123456"));
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

#[test]
fn canonical_table() {
    let (catalog, routes) = pairs("valid").remove("full").unwrap();
    let rows = load(&catalog, &routes, &secrets(false))
        .0
        .unwrap()
        .catalog
        .rows();
    let json = serde_json::to_string_pretty(&rows).unwrap();
    let all = format!("{}\n{json}\n", table_markdown(&rows));
    snapshots().bind(|| insta::assert_snapshot!("canonical-table", all));
    let (catalog, routes) = base();
    let rows = load(&catalog, &routes, &secrets(false))
        .0
        .unwrap()
        .catalog
        .rows();
    assert_eq!(
        rows[0].service_price,
        "in $3.00 · out $15.00 · cache read $0.30 · cache write $3.75 per 1M tokens"
    );
}

#[test]
fn findings_serialise_without_their_lines() {
    let (catalog, routes) = pairs("invalid").remove("e308-literal-secret").unwrap();
    let diagnostics = load(&catalog, &routes, &secrets(false)).1;
    let json = serde_json::to_string_pretty(&diagnostics).unwrap();
    assert!(!json.contains("hunter2"));
    snapshots().bind(|| insta::assert_snapshot!("json-form", json));
    assert!(diagnostics.render(Paint::Coloured).contains("\u{1b}["));
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
        for masked in [findings::redact::file(&text), findings::redact::catalog(&text)] {
            prop_assert_eq!(masked.len(), text.len());
            prop_assert_eq!(masked.chars().count(), text.chars().count());
            prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
        }
        prop_assert_eq!(findings::redact::words(&text).len(), text.len());
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
        assert_eq!(findings::redact::words(text), shown);
    }
    assert_eq!(
        findings::redact::file("key = \"é🔑x\"\n"),
        "key = \"·🔒*\"\n"
    );
}

#[test]
fn every_field_and_code_is_documented() {
    let guide =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/config.md"))
            .unwrap();
    for code in Code::ALL {
        let row = format!("| {} | {} |", code.id(), code.title());
        assert!(guide.contains(&row), "no row begins {row}");
    }
    let fields = [
        schema::MODEL_FIELDS,
        schema::LIMIT_FIELDS,
        schema::RETIRED_FIELDS,
        schema::PRICE_FIELDS,
        schema::TIER_FIELDS,
        schema::PROVIDER_FIELDS,
        schema::TIMEOUT_FIELDS,
        schema::ROUTE_FIELDS,
        schema::TARGET_FIELDS,
        schema::ABILITY_FIELDS,
        schema::BREAKER_FIELDS,
        schema::SECRET_FIELDS,
    ];
    for field in fields.into_iter().flatten() {
        assert!(
            guide.contains(&format!("`{field}`")) || guide.contains(&format!("{field} = ")),
            "`{field}` is not documented"
        );
    }
}

//! Tests of whole loads: one bad file per mistake with the complete report, valid files, and damage of every kind.
//!
//! The files and the expected reports are under `tests/configs`.

mod damage;
mod large;
mod price_lists;
mod service;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::*;

impl Config {
    /// The same with providers that speak one family only. The built-in provider speaks all, so nothing is translated for it.
    pub(crate) fn speaking(mut self, family: farebox_protocol::Family) -> Self {
        let only = |provider: &Provider| {
            Arc::new(Provider {
                speaks: vec![family.into()],
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
        ("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("SPACED", "two words here"),
        ("QUOTED", "\"sk-0123456789\""),
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
        Code::LostPriceList,
        Code::SecretNotChecked,
        Code::MoreFindings,
        Code::Miscounting,
        Code::Unreachable,
        Code::WrongPath,
        Code::WrongModel,
        Code::KeyRefused,
        Code::AccountDrained,
        Code::AbilityMissing,
        Code::TargetFails,
        Code::NoCapacity,
        Code::Organisations,
        Code::MountedAlone,
        Code::CertificateUnusable,
        Code::CertificateExpired,
        Code::CertificateName,
        Code::CertificateEnds,
        Code::WordContradicted,
        Code::ServiceTried,
    ];
    // Those of the shop's file are shown by its own tests.
    let shown = |code: &&Code| !elsewhere.contains(code) && !code.is_of_shop();
    for code in Code::ALL.iter().filter(shown) {
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
        let unsaid = preset.is_hosted()
            && Library::current()
                .service(&preset.name)
                .is_none_or(|service| service.limit.is_none());
        let other: Vec<_> = diagnostics
            .0
            .iter()
            .filter(|finding| finding.code != Code::SecretNotChecked.id())
            .filter(|finding| !unsaid || finding.code != Code::UnsaidLimit.id())
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
        assert_eq!(provider.fields.pass, preset.pass);
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
    assert_eq!((beta.limits.speed, beta.limits.max_reasoning), (None, None));
    assert_eq!((beta.route.retry, beta.route.breaker.failures), (1, 5));
    assert_eq!(
        alpha.route.targets[0].provider.keys[1].secret.reveal(),
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
fn a_class_whose_price_jumps_is_warned_about_and_a_factor_follows_the_standard() {
    let (catalog, routes) = base();
    let selling = |input: &str, classes: &str| {
        let priced = catalog
            .text
            .replacen("\"3.00\"", &format!("\"{input}\""), 1);
        let text = priced.replacen(
            "price = {",
            &format!("price = {{ classes = {{ {classes} }},"),
            1,
        );
        let (config, found) = load(&Source::new("catalog.toml", text), &routes, &secrets(false));
        config.unwrap_or_else(|| panic!("{}", found.render(Paint::Plain)))
    };
    let jumps = |old: &Config, new: &Config| {
        let found = compare(Some(old), new, &[]).into_iter();
        found.map(|finding| finding.message).collect::<Vec<_>>()
    };
    let old = selling("3.00", "flex = \"0.5\"");
    let all = jumps(&old, &selling("6.00", "flex = \"0.5\""));
    assert_eq!(all.len(), 1, "{all:?}");
    let all = jumps(&old, &selling("3.00", "flex = \"0.1\""));
    assert!(
        all.len() == 1 && all[0].contains("`alpha-1 (flex)` jumps: input from $1.50 to $0.30"),
        "{all:?}"
    );
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
fn a_plan_sells_what_replaces_a_retired_slug_and_none_without_models() {
    let (catalog, routes) = pairs("valid").remove("full").unwrap();
    let sold = load(&catalog, &routes, &secrets(false)).0.unwrap().catalog;
    let narrowed = catalog.text.replace("\"alpha-1\", \"beta:free\", ", "");
    let narrowed = load(
        &Source::new("catalog.toml", narrowed),
        &routes,
        &secrets(false),
    );
    let narrowed = narrowed.0.unwrap().catalog;
    let slugs = |catalog: &Catalog| catalog.plan("coder").unwrap().models.clone().unwrap();
    assert_eq!(
        slugs(&sold),
        ["alpha-0", "alpha-1", "beta:free", "alpha-00"]
    );
    assert_eq!(slugs(&narrowed), ["alpha-0", "alpha-1", "alpha-00"]);
    assert_eq!(sold.dead_plans().count(), 0);
    let no = |catalog: &Catalog, name: &str| catalog.plan(name).unwrap_err();
    assert!(no(&sold, "codr").ends_with("did you mean `coder`?"));
    assert!(no(&sold, "gold").ends_with("it has `coder` and `free.30`"));

    let (catalog, routes) = pairs("invalid").remove("w428-dead-plan").unwrap();
    let dead = load(&catalog, &routes, &secrets(false)).0.unwrap().catalog;
    assert_eq!(dead.dead_plans().count(), 1);
    assert!(no(&dead, "coder").ends_with("all of its models are retired"));
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

//! What is known of services: who is heard first, and what holds where nobody says anything.

use farebox_protocol::{Classes, CostField, ServiceTier};

use super::*;

const FAST: Classes = Classes {
    tier: ServiceTier::Fast,
    ..Classes::STANDARD
};

/// The target of the base files with this provider's table and these fields of the target.
fn target(provider: &str, fields: &str) -> Target {
    let routes = format!(
        "[provider.alpha]\n{provider}\n\n[[route]]\nslug = \"alpha-1\"\ntargets = [ {{ provider = \"alpha\", {fields} }} ]\n"
    );
    let (config, found) = load(
        &base().0,
        &Source::new("routes.toml", routes),
        &secrets(true),
    );
    let config = config.unwrap_or_else(|| panic!("{}", found.render(Paint::Plain)));
    config.catalog.get("alpha-1").unwrap().route.targets[0].clone()
}

#[test]
fn a_targets_word_wins_over_its_providers_and_that_over_the_librarys() {
    let groq = "kind = \"groq\"\nkey = { env = \"ALPHA_KEY\" }";
    let model = "model = \"openai/gpt-oss-120b\"";
    let listed = target(groq, model);
    assert_eq!(
        (listed.limit, listed.stops, listed.speed(FAST)),
        (Some(LimitBinds::All), false, Some(500))
    );
    let said = format!("{groq}\nlimit = \"text\"\nstops = true\nspeed = {{ fast = 900 }}");
    let of_provider = target(&said, model);
    assert_eq!(
        (of_provider.limit, of_provider.stops),
        (Some(LimitBinds::Text), true)
    );
    assert_eq!(of_provider.speed(FAST), Some(900));
    assert_eq!(of_provider.speed(Classes::STANDARD), Some(500));
    let own = target(&said, &format!("{model}, limit = \"none\", speed = 80"));
    assert_eq!(own.limit, Some(LimitBinds::None));
    assert_eq!(
        [Classes::STANDARD, FAST].map(|class| own.speed(class)),
        [Some(80), Some(80)],
        "a number is for every class"
    );
}

#[test]
fn a_kind_says_where_its_answers_tell_their_cost() {
    for (kind, field) in [
        ("openrouter", Some(CostField::Usd)),
        ("xai", Some(CostField::Ticks)),
        ("openai", None),
        ("vllm", None),
    ] {
        assert_eq!(preset(kind).unwrap().cost_field(), field, "{kind}");
    }
    let facts = include_str!("../presets.toml")
        .matches("\ntold_cost")
        .count();
    let known = |preset: &&Preset| preset.cost_field().is_some();
    assert_eq!(
        presets().iter().filter(known).count(),
        facts,
        "each word is known"
    );
    let own = target("simulated = true", "model = \"alpha-one-2026\"");
    assert_eq!(own.provider.cost_field(), Some(CostField::Usd));
}

#[test]
fn what_nobody_says_holds_of_own_servers_and_not_of_hosted_ones() {
    let model = "model = \"alpha-one-2026\"";
    let known = |provider: &str| {
        let target = target(provider, model);
        (target.limit, target.stops, target.speed(Classes::STANDARD))
    };
    let binds = (Some(LimitBinds::All), true, None);
    let open = (None, false, None);
    let key = "key = { env = \"ALPHA_KEY\" }\nspeaks = [\"chat\"]";
    let at = |url: &str| format!("base_url = \"{url}\"\n{key}");
    assert_eq!(known("simulated = true"), binds);
    assert_eq!(known("kind = \"sglang\""), binds);
    assert_eq!(known(&at("http://127.0.0.1:8000/v1")), binds);
    assert_eq!(known(&at("https://models.internal/v1")), binds);
    assert_eq!(known(&at("https://api.alpha.example/v1")), open);
    // Whoever says which service it is is believed wherever its address leads.
    let moonshot = format!("kind = \"moonshot\"\nbase_url = \"http://127.0.0.1:1/v1\"\n{key}");
    assert_eq!(known(&moonshot), (Some(LimitBinds::All), false, None));
    for (kind, stops) in [
        ("openai", true),
        ("anthropic", true),
        ("azure", true),
        ("gemini", false),
    ] {
        let provider =
            format!("kind = \"{kind}\"\nkey = {{ env = \"ALPHA_KEY\" }}\nspeaks = [\"chat\"]");
        assert_eq!(
            known(&provider),
            (Some(LimitBinds::All), stops, None),
            "{kind}"
        );
    }
}

/// What was looked up has a date and a source, and what was not found is named.
#[test]
fn the_library_knows_each_hosted_service_or_says_what_it_does_not() {
    let facts = |service: &Service| {
        let limit = service.limit.as_ref();
        let stops = service.stops.as_ref();
        [
            (
                "limit",
                limit.map(|fact| (fact.date.clone(), fact.source.clone())),
            ),
            (
                "stops",
                stops.map(|fact| (fact.date.clone(), fact.source.clone())),
            ),
        ]
    };
    for preset in presets().iter().filter(|preset| preset.is_hosted()) {
        let name = &preset.name;
        let service = Library::current()
            .service(name)
            .unwrap_or_else(|| panic!("{name} is unknown"));
        for (fact, found) in facts(service) {
            let unverified = service.unverified.iter().any(|known| known == fact);
            assert_ne!(found.is_some(), unverified, "{name}: {fact}");
            if let Some((date, source)) = found {
                assert!(
                    date.starts_with("2026-") && source.len() > 10,
                    "{name}: {fact}"
                );
            }
        }
    }
    for offer in Library::current().offers() {
        if let Some(speed) = &offer.speed {
            assert!(
                speed.is.standard.is_some_and(|speed| speed > 0),
                "{}",
                offer.name()
            );
            assert!(speed.source.starts_with("https://"), "{}", offer.name());
        }
    }
}

#[test]
fn a_library_of_before_leaves_services_to_the_one_that_is_shipped() {
    let old = "[[offer]]\nservice = \"openai\"\ndate = \"2026-10\"\nsource = \"x\"\n[offer.model]\nslug = \"m\"\ntitle = \"M\"\nprovider = \"P\"\nupstream = \"m\"\nbest_path = \"chat\"\nprice = { input = \"1\" }\ncontext = 1000\noutput = 100\ncapabilities = []\nabilities = \"\"\n";
    let library: Library = toml::from_str(old).unwrap();
    assert_eq!(library.offers().len(), 1);
    assert!(library.offers()[0].speed.is_none());
    assert!(library.service("openai").is_some());
}

#[test]
fn a_catalog_of_before_is_served_with_warnings() {
    let (catalog, routes) = pairs("invalid").remove("w426-former-fields").unwrap();
    let (config, found) = load(&catalog, &routes, &secrets(false));
    assert_eq!(found.summary(), "3 warnings");
    let limits = config.unwrap().catalog.get("alpha-1").unwrap().limits;
    assert_eq!((limits.max_output, limits.speed), (64_000, None));
}

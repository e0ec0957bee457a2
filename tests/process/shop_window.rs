//! A shop window of real models without an editor: `farebox init`, `farebox add`, `farebox library`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::process::{farebox, json};

fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = farebox(folder, arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(said).unwrap(),
    )
}

/// Five real models from three services, behind the first, which `init` writes.
fn window(folder: &Path) {
    let (code, said) = run(folder, &["init", "--provider", "openai"]);
    assert_eq!(code, 0, "{said}");
    four_more(folder);
}

fn four_more(folder: &Path) {
    for model in [
        "anthropic",
        "anthropic/claude-opus-5.5",
        "deepseek",
        "deepseek/deepseek-flash",
    ] {
        let (code, said) = run(folder, &["add", model, "--markup", "20%"]);
        assert_eq!(code, 0, "{said}");
    }
}

#[test]
fn five_models_of_three_services_need_no_editor() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    window(folder);
    let (code, said) = run(folder, &["check", "--no-secrets"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("ok: 5 models, 3 providers\n") && !said.contains("warning"),
        "{said}"
    );
    let models = json(folder, &["models"]);
    let price = |slug: &str| {
        let rows = models["models"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["customer_slug"] == slug)
            .unwrap();
        row.to_string()
    };
    assert!(price("gpt-5.4-mini").contains("in $0.75"), "as listed");
    assert!(
        price("claude-opus-5.5").contains("in $4.80 · out $24.00"),
        "{}",
        price("claude-opus-5.5")
    );
    let (_, said) = run(folder, &["library", "--diff"]);
    assert_eq!(said, "no differences\n", "each target costs what is listed");
}

/// What nobody has touched is an example, and nothing to sell; what somebody has touched stays.
#[test]
fn the_first_real_model_takes_the_place_of_the_examples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, &["init"]);
    let (code, said) = run(folder, &["add", "openai"]);
    assert!(
        code == 0 && said.starts_with("- the simulated models"),
        "{said}"
    );
    four_more(folder);
    let (code, said) = run(folder, &["check", "--no-secrets"]);
    assert!(
        code == 0 && said.contains("ok: 5 models, 3 providers\n") && !said.contains("warning"),
        "{said}"
    );
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    for text in [read("catalog.toml"), read("routes.toml")] {
        assert!(
            text.starts_with("# ") && !text.contains("sim-chat"),
            "{text}"
        );
    }

    let touched = tempfile::tempdir().unwrap();
    let touched = touched.path();
    run(touched, &["init"]);
    let catalog = fs::read_to_string(touched.join("catalog.toml")).unwrap();
    let mine = catalog.replacen("\"1.25\"", "\"1.50\"", 1);
    fs::write(touched.join("catalog.toml"), &mine).unwrap();
    let (code, said) = run(touched, &["add", "openai"]);
    assert_eq!(code, 0, "{said}");
    let after = fs::read_to_string(touched.join("catalog.toml")).unwrap();
    assert!(after.starts_with(&mine), "{after}");
}

#[test]
fn what_is_added_is_shown_and_stands_behind_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, &["init", "--provider", "openai"]);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let before = [read("catalog.toml"), read("routes.toml")];
    let (code, said) = run(folder, &["add", "anthropic", "--slug", "sonnet"]);
    assert_eq!(code, 0, "{said}");
    for line in [
        "+ [provider.anthropic]",
        "+ slug    = \"sonnet\"",
        "+ aliases           = [\"claude-sonnet-5-5\"]",
        "classes = { us = \"1.1\" }",
        "Claude Code also asks for claude-opus-5-5, claude-haiku-5-5 by itself",
        "aliases = [\"claude-opus-5-5\", \"claude-haiku-5-5\"]",
        "export ANTHROPIC_API_KEY=…",
        "platform.claude.com",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    for (before, after) in before
        .iter()
        .zip([read("catalog.toml"), read("routes.toml")])
    {
        assert!(after.starts_with(before.as_str()), "{after}");
    }
    let (code, said) = run(folder, &["add", "anthropic/claude-opus-5.5"]);
    assert!(
        code == 0 && !said.contains("[provider.anthropic]"),
        "one provider is enough: {said}"
    );
    assert!(
        said.contains("classes = { fast = \"2\", us = \"1.1\" }") && !said.contains("web_search"),
        "classes are sold, calls are not: {said}"
    );
    assert!(
        said.contains("Claude Code also asks for claude-haiku-5-5 by itself"),
        "what answers already is not offered: {said}"
    );
    let (code, said) = run(folder, &["add", "anthropic", "--slug", "sonnet"]);
    assert!(code == 1 && said.contains("already published"), "{said}");
}

#[test]
fn an_unverified_price_is_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, &["init", "--provider", "openai"]);
    let before = fs::read_to_string(folder.join("catalog.toml")).unwrap();
    let (code, said) = run(folder, &["add", "qwen/qwen3.7-plus"]);
    assert!(code == 1 && said.contains("is unverified"), "{said}");
    assert_eq!(
        fs::read_to_string(folder.join("catalog.toml")).unwrap(),
        before
    );
    let (code, said) = run(folder, &["add", "nobody/nothing"]);
    assert!(
        code == 1 && said.contains("openai/gpt-5.4-mini"),
        "what there is: {said}"
    );
}

#[test]
fn the_library_has_a_dated_and_sourced_model_of_every_hosted_service() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_, shown) = run(folder, &["library"]);
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    let library = json(folder, &["library"]);
    let offers = library["offers"].as_array().unwrap();
    for preset in farebox::config::presets() {
        if preset.key.is_none() {
            continue;
        }
        let sold =
            |offer: &&Value| offer["service"] == preset.name && offer["list_price"].is_string();
        let offer = offers.iter().find(sold);
        let offer = offer.unwrap_or_else(|| panic!("no verified offer of {}", preset.name));
        assert!(shown.contains(offer["name"].as_str().unwrap()), "{shown}");
        assert!(
            offer["date"].as_str().unwrap().starts_with("202")
                && !offer["reference"].as_str().unwrap().is_empty()
                && offer["source"].as_str().unwrap().starts_with("https://"),
            "{offer}"
        );
        // Every offer can be added: its price, limits and abilities are ones.
        for offer in farebox::config::Library::current().at(&preset.name) {
            let place = tempfile::tempdir().unwrap();
            run(place.path(), &["init"]);
            let (code, said) = run(place.path(), &["add", &offer.name()]);
            let verified = offer.is_verified("price");
            assert_eq!(code == 0, verified, "{}: {said}", offer.name());
        }
    }
}

#[test]
fn a_newer_library_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    window(folder);
    let shipped = include_str!("../../src/config/library.toml");
    let dearer = shipped.replace("output = \"20.00\"", "output = \"21.00\"");
    fs::write(folder.join("newer.toml"), dearer).unwrap();
    let said = json(folder, &["library", "--library", "newer.toml"]);
    assert!(said.to_string().contains("out $21.00"), "{said}");
    fs::write(folder.join("newer.toml"), "nonsense").unwrap();
    let (code, said) = run(folder, &["check", "--library", "newer.toml"]);
    assert!(code == 2 && said.contains("newer.toml"), "{said}");
}

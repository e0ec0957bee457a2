//! `shop.toml`: one bad file per mistake with its whole report, files that are good, `--check`, and a save while the shop runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use farebox_toml::{Paint, Secrets};

use crate::support::{Street, Visitor};

/// Secrets of a table, so that a report depends on no environment.
struct TableSecrets;

impl Secrets for TableSecrets {
    fn variable(&self, name: &str) -> Option<String> {
        let secret = match name {
            "TOKEN" => "fb-token-0123",
            "STRIPE_KEY" => "sk_test_0123",
            "STRIPE_WEBHOOK" => "whsec_0123",
            "PUBLISHABLE" => "pk_test_hunter2",
            "QUOTED" => "\"fb-token-hunter2\"",
            _ => return None,
        };
        Some(secret.to_owned())
    }

    fn file(&self, _: &Path) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

fn configs(folder: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/configs").join(folder)
}

/// The report of each file of a folder, by the file's name.
fn reports(folder: &str) -> BTreeMap<String, (bool, String)> {
    let files = std::fs::read_dir(configs(folder)).unwrap();
    let report = |path: PathBuf| {
        let (settings, findings) = farebox_shop::load(&path, &TableSecrets);
        assert_eq!(settings.is_some(), !findings.has_errors(), "{path:?}");
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = findings.render(Paint::Plain);
        let text = text.replace(path.to_str().unwrap(), "shop.toml");
        (name, (settings.is_some(), text))
    };
    files.map(|file| report(file.unwrap().path())).collect()
}

#[test]
fn every_mistake_has_its_report() {
    let reports = reports("invalid");
    assert!(reports.len() >= 40, "{}", reports.len());
    let mut golden = insta::Settings::clone_current();
    golden.set_snapshot_path(configs("reports"));
    golden.set_prepend_module_to_snapshot(false);
    golden.set_omit_expression(true);
    for (name, (is_good, report)) in reports {
        assert!(!is_good, "{name}");
        assert!(!report.contains("hunter2"), "a secret is shown:\n{report}");
        let code = name.split('-').next().unwrap().to_uppercase();
        assert!(
            report.contains(&format!("error[{code}]")),
            "{name} has no {code}:\n{report}"
        );
        golden.bind(|| insta::assert_snapshot!(name, report));
    }
    for code in farebox_toml::Code::ALL {
        let id = code.id().to_lowercase();
        let file = |name: &String| name.starts_with(&id);
        let shown = std::fs::read_dir(configs("invalid")).unwrap();
        let mut names = shown.map(|file| file.unwrap().file_name().into_string().unwrap());
        assert!(
            !id.starts_with("e70") || names.any(|name| file(&name)),
            "no file shows {id}"
        );
    }
}

#[test]
fn good_files_are_clean() {
    for (name, (is_good, report)) in reports("valid") {
        assert!(is_good && report == "no findings\n", "{name}: {report}");
    }
}

/// Exit code, and what is said on standard output and standard error.
fn check(file: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.toml"), file).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farebox-shop"));
    let output = command
        .env_clear()
        .env("TOKEN", "fb-token-of-the-tests")
        .env("KEY", "sk_test_secret")
        .env("WEBHOOK", "whsec_secret")
        .current_dir(folder.path())
        .args(["--check", "--offline"])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn the_shipped_file_is_good_once_its_secrets_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let shipped = std::fs::read_to_string(root.join("deploy/shop.toml")).unwrap();
    let (code, _, told) = check(&shipped);
    assert_eq!(code, 78, "{told}");
    assert!(
        told.ends_with("3 errors\n") && !told.contains('\u{1b}'),
        "{told}"
    );
    let folder = "/run/credentials/farebox-shop.service";
    let mut here = shipped;
    for (file, variable) in [
        ("token", "TOKEN"),
        ("stripe-key", "KEY"),
        ("stripe-webhook", "WEBHOOK"),
    ] {
        let place = format!("{{ file = \"{folder}/{file}\" }}");
        here = here.replace(&place, &format!("{{ env = \"{variable}\" }}"));
    }
    let (code, said, told) = check(&here);
    assert_eq!(
        (code, said.as_str(), told.as_str()),
        (0, "ok: 2 offers in EUR\n", "")
    );
    let (code, _, told) = check("[processor");
    assert_eq!(code, 78);
    assert!(told.contains("error[E101]"), "{told}");
    let missing = Command::new(env!("CARGO_BIN_EXE_farebox-shop"))
        .args(["--check", "--offline", "--config", "/nowhere/shop.toml"])
        .output()
        .unwrap();
    let told = String::from_utf8(missing.stderr).unwrap();
    assert!(told.contains("error[E106]"), "{told}");
}

#[tokio::test]
async fn a_save_changes_offers_and_texts_and_says_what_needs_a_restart() {
    let street = Street::open().await;
    let mut visitor = Visitor::new(&street);
    let before = visitor.get("/").await;
    // With a mistake nothing changes.
    street.edit(|file| file.replace("\"11.90\"", "\"eleven\""));
    street.shop.says("error[E702]").await;
    assert!(visitor.get("/").await.text.contains("11.90 EUR"));
    street.edit(|file| {
        file.replace("\"eleven\"", "\"12.90\"")
            .replace("Key Corner", "Key Crossing")
            .replace("\"127.0.0.1:0\"", "\"127.0.0.1:1\"")
    });
    street.shop.says("needs a restart for listen").await;
    for _ in 0..100 {
        if visitor.get("/").await.text.contains("12.90 EUR") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let after = visitor.get("/").await;
    assert!(
        after.text.contains("12.90 EUR") && after.text.contains("Key Crossing"),
        "{}",
        after.text
    );
    // A page from before buys nothing at another price.
    let stale = visitor.send_form(&before, &[]).await;
    assert_eq!(stale.status, 422, "{}", stale.text);
    assert!(street.stripe.begun().is_empty());
    assert_eq!(visitor.send_form(&after, &[]).await.status, 200);
}

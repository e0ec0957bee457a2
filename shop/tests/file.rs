//! `farebox-shop --check`: the file that is shipped has no mistake but the secrets that are not here, and every mistake is told at once.

use std::path::Path;
use std::process::Command;

/// Exit code, and what is said on standard output and standard error.
fn check(file: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.toml"), file).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farebox-shop"));
    let output = command
        .env_clear()
        .env("SECRET", "sk_test_secret")
        .current_dir(folder.path())
        .arg("--check")
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
        told.lines().count() == 3 && !told.contains('\u{1b}'),
        "{told}"
    );
    let mut here = String::new();
    for line in shipped.lines() {
        let (before, after) = line.split_once("{ file = ").unwrap_or((line, ""));
        let (_, behind) = after.split_once('}').unwrap_or_default();
        here.push_str(before);
        if !after.is_empty() {
            here.push_str(&format!("{{ env = \"SECRET\" }}{behind}"));
        }
        here.push('\n');
    }
    let (code, said, told) = check(&here);
    assert_eq!(
        (code, said.as_str()),
        (0, "ok: 2 offers in EUR\n"),
        "{told}"
    );
    let bad = here
        .replace("\"EUR\"", "\"euro\"")
        .replace("\"10\"", "\"ten\"");
    let (code, _, told) = check(&bad);
    assert_eq!(code, 78);
    for part in ["shop.toml: currency", "shop.toml: offer.credit"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("sk_test_secret"), "{told}");
}

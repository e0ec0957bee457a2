//! Says which commit the three programs are built from: `FAREBOX_COMMIT`, or in a release build what git knows of this folder.
//!
//! Without either the version stands alone. Builds for development do not ask git: each commit would compile everything again.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let of_cargo = |name: &str| env::var(name).unwrap_or_default();
    let package = PathBuf::from(of_cargo("CARGO_MANIFEST_DIR"));
    let is_root = |folder: &&Path| folder.join("Cargo.lock").exists();
    let root = package.ancestors().find(is_root).unwrap_or(&package);
    let script = root.join("cli/build.rs");
    println!("cargo:rerun-if-changed={}", script.display());
    println!("cargo:rerun-if-env-changed=FAREBOX_COMMIT");
    let named = Some(of_cargo("FAREBOX_COMMIT")).filter(|commit| !commit.is_empty());
    let release = of_cargo("PROFILE") == "release";
    let commit = named.or_else(|| release.then(|| of_git(root)).flatten());
    let built_from = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    let version = of_cargo("CARGO_PKG_VERSION");
    println!("cargo:rustc-env=FAREBOX_VERSION={version}{built_from}");
}

/// The commit of this folder, with `-dirty` if its files differ from it; nothing where the folder is no clone of its own.
fn of_git(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let said = command.arg("-C").arg(root).args(arguments).output().ok()?;
        let text = String::from_utf8(said.stdout).ok()?;
        said.status.success().then(|| text.trim().to_owned())
    };
    let clone = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&clone).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    for of_commit in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&["rev-parse", "--git-path", of_commit])?);
        println!("cargo:rerun-if-changed={}", path.display());
    }
    for sources in [
        "src",
        "protocol",
        "ledger/src",
        "ledger/bus-error/src",
        "cli/src",
        "tui/src",
        "shop/src",
        "Cargo.lock",
    ] {
        println!("cargo:rerun-if-changed={}", root.join(sources).display());
    }
    git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ])
}

//! Codex, a coding client, as `./test --install` takes it from its registry: started with the settings that `farebox setup codex` prints.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::skip;

/// What it is asked.
const ASKED: &str = "Say PONG";

fn program() -> PathBuf {
    Path::new(crate::support::HOME).join("target/tools/codex/node_modules/.bin/codex")
}

/// What it says when it is asked to say PONG with these settings, which stand in the document of `farebox setup codex --json`. `None`,
/// and listed as not tested, where it is not installed.
pub(crate) fn answer(settings: &Value) -> Option<String> {
    let program = program();
    if !program.exists() {
        skip::list("a real coding client with a key from the shop: Codex is not installed");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (home, bin) = (folder.path().join("home"), folder.path().join("bin"));
    for made in [&home, &bin] {
        fs::create_dir_all(made).unwrap();
    }
    // The last line that is printed starts it; here it is asked one question.
    let started = format!(
        "#!/bin/sh\nexec {} exec --skip-git-repo-check '{ASKED}' < /dev/null\n",
        program.display()
    );
    fs::write(bin.join("codex"), started).unwrap();
    fs::set_permissions(bin.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut said = String::new();
    for block in settings["blocks"].as_array().unwrap() {
        let (place, text) = (block["place"].as_str(), block["text"].as_str().unwrap());
        if let Some(below) = place.and_then(|place| place.strip_prefix("~/")) {
            let file = home.join(below);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
            continue;
        }
        let run = Command::new("timeout")
            .args(["120", "sh", "-c", text])
            .env_clear()
            .envs([("PATH", path.as_str()), ("TERM", "dumb")])
            .env("HOME", &home)
            .current_dir(&home)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        said = String::from_utf8_lossy(&run.stdout).into_owned();
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}\n{told}");
    }
    Some(said)
}

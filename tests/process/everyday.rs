//! Small commands of every day: what shells complete, and what a container asks.

use std::process::{Command, Stdio};

use crate::support::process::{Served, farebox};

#[test]
fn shells_complete_commands_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let made = farebox(folder.path(), &["completions", shell])
            .output()
            .unwrap();
        assert!(made.status.success(), "{shell}");
        let script = String::from_utf8(made.stdout).unwrap();
        for word in ["top-up", "reference"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        std::fs::write(folder.path().join(shell), script).unwrap();
    }
    let asked = r#"source ./bash
        COMP_WORDS=(farebox keys top) COMP_CWORD=2
        _farebox farebox top keys
        echo "${COMPREPLY[@]}"
        COMP_WORDS=(farebox keys top-up --ref) COMP_CWORD=3
        _farebox farebox --ref top-up
        echo "${COMPREPLY[@]}""#;
    let bash = Command::new("bash")
        .args(["--norc", "-c", asked])
        .current_dir(folder.path())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(bash.stdout).unwrap(),
        "top-up\n--reference\n"
    );
}

#[test]
fn a_container_asks_whether_the_gateway_serves() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(
        farebox(folder, &["init"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let health = |admin: &str| {
        let output = farebox(folder, &["health", "--admin-listen", admin])
            .output()
            .unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), said)
    };
    let served = Served::start(folder, &[]);
    let admin = served.admin.strip_prefix("http://").unwrap().to_owned();
    assert_eq!(health(&admin), (Some(0), "ready\n".to_owned()));
    drop(served);
    let (code, said) = health(&admin);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no gateway answers at"), "{said}");
    let refused = farebox(folder, &["health", "--json"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "it prints no document");
}

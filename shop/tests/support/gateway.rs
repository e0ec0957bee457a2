//! The gateway as a process, with a real ledger.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The gateway as a process, on the same addresses after each start. Dropping it kills it.
pub(crate) struct RealGateway {
    child: Option<Child>,
    folder: TempDir,
    pub(crate) admin: SocketAddr,
    pub(crate) listen: SocketAddr,
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Built beside the shop, as `cargo test --workspace` does.
fn binary() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_farebox-shop")).with_file_name("farebox");
    assert!(
        path.exists(),
        "build the gateway first: cargo build --workspace"
    );
    path
}

impl RealGateway {
    fn command(&self, arguments: &[&str]) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut command = Command::new(binary());
        command
            .env_clear()
            .current_dir(self.folder.path())
            .env("FAREBOX_CATALOG", self.folder.path().join("catalog.toml"))
            .env("FAREBOX_ROUTES", root.join("routes.toml"))
            .env("FAREBOX_LISTEN", self.listen.to_string())
            .env("FAREBOX_ADMIN_LISTEN", self.admin.to_string())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {told}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) async fn start() -> Self {
        Self::selling("").await
    }

    /// One whose catalog sells these plans besides.
    pub(crate) async fn selling(plans: &str) -> Self {
        let mut gateway = Self {
            child: None,
            folder: tempfile::tempdir().unwrap(),
            admin: free(),
            listen: free(),
        };
        gateway.sell(plans);
        gateway.resume().await;
        gateway
    }

    /// Saves its catalog, with these plans.
    pub(crate) fn sell(&self, plans: &str) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let catalog = std::fs::read_to_string(root.join("catalog.toml")).unwrap();
        let path = self.folder.path().join("catalog.toml");
        std::fs::write(path, format!("{catalog}\n{plans}")).unwrap();
    }

    pub(crate) async fn resume(&mut self) {
        let mut serving = self.command(&["serve", "--wait-lock", "30"]);
        if !self.folder.path().join("farebox.db").exists() {
            serving.arg("--new-ledger");
        }
        let serving = serving.stderr(Stdio::null()).spawn();
        self.child = Some(serving.unwrap());
        let begun = Instant::now();
        while std::net::TcpStream::connect(self.admin).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the gateway does not serve"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Its process now; 0 while it is killed.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn token(&self, daily: &str) -> String {
        let made = self.json(&[
            "tokens", "create", "shop", "--role", "sell", "--daily", daily,
        ]);
        made["secret"].as_str().unwrap().to_owned()
    }

    pub(crate) fn entries(&self) -> Vec<Value> {
        let all = self.json(&["ledger", "entries"]);
        all["entries"].as_array().unwrap().clone()
    }

    pub(crate) fn references(&self) -> Vec<String> {
        let entries = self.entries();
        let paid = entries.iter().filter(|entry| entry["kind"] == "top_up");
        let mut found: Vec<String> = paid
            .map(|entry| entry["reference"].as_str().unwrap().to_owned())
            .collect();
        found.sort();
        found
    }

    /// The files beside its ledger that have these bytes anywhere, free pages included.
    pub(crate) fn files_with(&self, bytes: &[u8]) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let has = |file: &PathBuf| {
            let content = std::fs::read(file).unwrap_or_default();
            content.windows(bytes.len()).any(|part| part == bytes)
        };
        files.filter(has).collect()
    }

    pub(crate) fn assert_sound(&self) {
        let output = self.command(&["ledger", "verify"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for RealGateway {
    fn drop(&mut self) {
        self.kill();
    }
}

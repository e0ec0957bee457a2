//! PgBouncer in front of a server, as operators run it; `None` where it is not installed.
#![expect(clippy::expect_used, reason = "a test ends at the first surprise")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::cluster::{NOBODY, ordinary};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running pooler, with its socket in a folder of its own. It ends with this value.
pub(crate) struct Pooler {
    folder: tempfile::TempDir,
    child: Child,
    mode: &'static str,
    address: Option<&'static str>,
}

impl Pooler {
    /// Pools sessions (`session`) or transactions (`transaction`) of the server with its socket in this folder. It also listens at
    /// `address`, if there is one.
    pub(crate) fn start(
        server: &Path,
        mode: &'static str,
        address: Option<&'static str>,
    ) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))
            .expect("the folder is ours");
        if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY))
                .expect("root may give it away");
        }
        std::fs::write(folder.path().join("users"), "\"farebox\" \"\"\n").expect("its users");
        let settings = folder.path().join("pgbouncer.ini");
        configure(&settings, server, mode, address);
        let child = ordinary(Path::new(PROGRAM))
            .arg("-q")
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let pooler = Self {
            folder,
            child,
            mode,
            address,
        };
        let (begun, socket) = (Instant::now(), pooler.folder().join(".s.PGSQL.5432"));
        while !socket.exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{}",
                pooler.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(pooler)
    }

    /// The folder of its socket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Leads new sessions to another server, and ends those of the old one, as an operator does after a promotion.
    pub(crate) fn lead_to(&self, server: &Path) {
        let settings = self.folder().join("pgbouncer.ini");
        configure(&settings, server, self.mode, self.address);
        for order in ["RELOAD", "KILL postgres", "RESUME postgres"] {
            let mut psql = Command::new("psql");
            psql.args([
                "-X",
                "-q",
                "-U",
                "farebox",
                "-d",
                "pgbouncer",
                "-c",
                order,
                "-h",
            ]);
            let said = psql.arg(self.folder()).output().expect("psql runs");
            assert!(
                said.status.success(),
                "{order}: {}",
                String::from_utf8_lossy(&said.stderr)
            );
        }
    }

    /// Stops it in its tracks, as its machine does.
    pub(crate) fn freeze(&self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-STOP", &pid]).status();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }
}

fn configure(settings: &Path, server: &Path, mode: &str, address: Option<&str>) {
    let folder = settings.parent().expect("a folder").display();
    let text = format!(
        "[databases]\n* = host={}\n[pgbouncer]\nlisten_addr = {}\nlisten_port = 5432\nunix_socket_dir = {folder}\n\
         auth_type = trust\nauth_file = {folder}/users\nadmin_users = farebox\npool_mode = {mode}\ndefault_pool_size = 40\n\
         server_login_retry = 1\nserver_connect_timeout = 3\n\
         logfile = {folder}/log\npidfile = {folder}/pid\n",
        server.display(),
        address.unwrap_or_default()
    );
    std::fs::write(settings, text).expect("its settings");
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // `setpriv` has become the pooler, so this is its own process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A private PostgreSQL for one test program: a cluster in a temporary folder, with its socket there and a database for each test.
//!
//! It runs as an ordinary user, touches nothing of the system's, and ends with the test program, however that ends: a shell beside
//! it waits for the end of a pipe.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// `nobody` and `nogroup` of Debian, when the tests run as root: PostgreSQL refuses to.
pub(crate) const NOBODY: u32 = 65_534;

/// A running server.
pub(crate) struct Cluster {
    bin: PathBuf,
    folder: PathBuf,
    made: AtomicUsize,
    _keeper: Child,
}

impl Cluster {
    /// The test program's own, started at its first use. `None` where PostgreSQL is not installed.
    pub(crate) fn shared() -> Option<&'static Self> {
        static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
        CLUSTER
            .get_or_init(|| {
                programs().map(|bin| Self::start(bin, &["fsync=off", "synchronous_commit=off"]))
            })
            .as_ref()
    }

    /// A server with settings of its own.
    pub(crate) fn start(bin: PathBuf, settings: &[&str]) -> Self {
        Self::start_on(bin, settings, &[])
    }

    /// The same with variables in its environment.
    pub(crate) fn start_on(bin: PathBuf, settings: &[&str], environment: &[(&str, &str)]) -> Self {
        let base = tempfile::Builder::new()
            .prefix("farebox-pg-")
            .tempdir()
            .expect("a temporary folder")
            .keep();
        std::fs::set_permissions(&base, PermissionsExt::from_mode(0o700))
            .expect("the folder is ours");
        if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            std::os::unix::fs::chown(&base, Some(NOBODY), Some(NOBODY))
                .expect("root may give it away");
        }
        let data = base.join("data");
        let mut initdb = ordinary(&bin.join("initdb"));
        initdb
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=farebox",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data);
        let made = initdb.current_dir(&base).output().expect("initdb runs");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let mut server = vec![
            "listen_addresses=".to_owned(),
            format!("unix_socket_directories={}", base.display()),
            "max_connections=200".to_owned(),
            "shared_buffers=32MB".to_owned(),
            // In the folder, and not in /dev/shm, where a killed server leaves it.
            "dynamic_shared_memory_type=mmap".to_owned(),
        ];
        server.extend(settings.iter().map(|setting| (*setting).to_owned()));
        // When the test program is gone, the pipe ends and so do the server and its folder.
        let script = "folder=$1; shift; \"$@\" >\"$folder/log\" 2>&1 </dev/null & server=$!; cat >/dev/null; \
             kill -QUIT $server; wait $server; rm -rf \"$folder\"";
        let mut keeper = ordinary(Path::new("/bin/sh"));
        keeper
            .args(["-c", script, "sh"])
            .arg(&base)
            .arg(bin.join("postgres"))
            .arg("-D")
            .arg(&data);
        keeper.args(server.iter().flat_map(|setting| ["-c", setting]));
        let keeper = keeper
            .current_dir(&base)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell runs");
        let cluster = Self {
            bin,
            folder: base,
            made: AtomicUsize::new(0),
            _keeper: keeper,
        };
        let begun = Instant::now();
        while !cluster
            .psql("postgres", "SELECT 1")
            .is_ok_and(|answer| answer == "1")
        {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{}",
                cluster.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster
    }

    /// Runs a statement in a database and gives what `psql` prints.
    pub(crate) fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        psql_at(&self.bin, &self.folder, database, sql)
    }

    /// A fresh database's name.
    pub(crate) fn database(&self) -> String {
        let name = format!("t{}", self.made.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"))
            .unwrap_or_else(|error| panic!("{error}"));
        name
    }

    /// A copy of a database to which nobody is connected.
    pub(crate) fn copy_of(&self, database: &str) -> String {
        let name = format!("t{}", self.made.fetch_add(1, Ordering::Relaxed));
        let sql = format!("CREATE DATABASE {name} TEMPLATE {database}");
        self.psql("postgres", &sql)
            .unwrap_or_else(|error| panic!("{error}"));
        name
    }

    /// Thousands of databases would fill the disk.
    pub(crate) fn drop_database(&self, name: &str) {
        self.psql("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"))
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// A copy of a database that is in use.
    pub(crate) fn copy_of_running(&self, database: &str) -> String {
        let name = self.database();
        let at = self.folder.display();
        let pass = format!(
            "pg_dump -h {at} -U farebox {database} | psql -X -q -h {at} -U farebox -v ON_ERROR_STOP=1 {name} > {at}/restored"
        );
        let mut shell = Command::new("/bin/bash");
        shell.args(["-o", "pipefail", "-c", &pass]);
        let done = shell.output().expect("a shell runs");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        name
    }

    /// A fresh database with what `pg_dump` wrote into this file.
    pub(crate) fn restored(&self, dump: &Path) -> String {
        let name = self.database();
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "farebox"])
            .args(["-d", &name, "-h"])
            .arg(&self.folder)
            .arg("-f")
            .arg(dump);
        let done = psql.output().expect("psql runs");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        name
    }

    /// The schema of a database, as `pg_dump` writes it.
    pub(crate) fn schema(&self, database: &str) -> String {
        let mut dump = Command::new("pg_dump");
        dump.args(["--schema-only", "-U", "farebox", "-h"])
            .arg(&self.folder)
            .arg(database);
        let dumped = dump.output().expect("pg_dump runs");
        let why = String::from_utf8_lossy(&dumped.stderr);
        assert!(dumped.status.success(), "{why}");
        let text = String::from_utf8_lossy(&dumped.stdout);
        // A key made for this dump.
        let own = |line: &&str| !line.contains("restrict ");
        text.lines().filter(own).collect::<Vec<_>>().join("\n")
    }

    /// Where a database is, as `--ledger` takes it.
    pub(crate) fn url(&self, database: &str) -> String {
        format!(
            "postgres://farebox@{}/{database}",
            self.folder.display().to_string().replace('/', "%2F")
        )
    }

    /// The folder with its socket.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

/// Runs a statement at the server whose socket is in this folder and gives what `psql` prints.
pub(crate) fn psql_at(
    bin: &Path,
    folder: &Path,
    database: &str,
    sql: &str,
) -> Result<String, String> {
    // A package of the server alone has no `psql`; that of another version does.
    let own = Some(bin.join("psql")).filter(|own| own.exists());
    let mut psql = Command::new(own.unwrap_or_else(|| "psql".into()));
    psql.args([
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-U",
        "farebox",
        "-d",
        database,
        "-c",
        sql,
        "-h",
    ]);
    let output = psql
        .arg(folder)
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

/// Debian keeps the server's programs beside the path. `FAREBOX_POSTGRES` names the folder of another version's.
pub(crate) fn programs() -> Option<PathBuf> {
    if let Some(other) = std::env::var_os("FAREBOX_POSTGRES") {
        return Some(other.into());
    }
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
        .collect();
    versions.sort();
    versions.pop()
}

/// A program as an ordinary user.
pub(crate) fn ordinary(program: &Path) -> Command {
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        let mut command = Command::new("setpriv");
        let id = NOBODY.to_string();
        command
            .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
            .arg(program);
        return command;
    }
    Command::new(program)
}

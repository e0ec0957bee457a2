//! A primary and its synchronous standby for one test: they stream, freeze, die, are promoted and join again.
//!
//! As the single cluster they run as an ordinary user, in a temporary folder, on sockets in it, and end with the test program.
//! Both wait for a standby whenever they are the primary.
#![expect(clippy::expect_used, clippy::panic, reason = "a test ends at the first surprise")]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::cluster::{NOBODY, ordinary, programs, psql_at};

/// How long a server may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// One server: its folder has the socket and the data.
struct Server {
    folder: PathBuf,
    keeper: Option<Child>,
}

/// Two servers.
pub(crate) struct Pair {
    bin: PathBuf,
    base: PathBuf,
    servers: [Server; 2],
    primary: usize,
    _cleaner: Child,
}

impl Pair {
    /// A primary and a standby that streams; `None` where PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        let bin = programs()?;
        let base = tempfile::Builder::new().prefix("farebox-pair-").tempdir().expect("a temporary folder").keep();
        let servers = ["a", "b"].map(|name| Server { folder: base.join(name), keeper: None });
        for folder in std::iter::once(&base).chain(servers.iter().map(|server| &server.folder)) {
            if *folder != base {
                std::fs::create_dir(folder).expect("a folder");
            }
            std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).expect("the folder is ours");
            if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
                std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
            }
        }
        let script = "cat >/dev/null; sleep 2; rm -rf \"$1\"";
        let mut cleaner = ordinary(Path::new("/bin/sh"));
        cleaner.args(["-c", script, "sh"]).arg(&base).stdin(Stdio::piped());
        let mut pair = Self { bin, base, servers, primary: 0, _cleaner: cleaner.spawn().expect("a shell runs") };
        let mut initdb = ordinary(&pair.bin.join("initdb"));
        initdb.args(["--no-sync", "--auth=trust", "--username=farebox", "--encoding=UTF8", "--locale=C", "-D"]);
        run(initdb.arg(pair.data(0)));
        pair.run_server(0);
        pair.build_standby();
        pair.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        pair.sql("SELECT pg_reload_conf()");
        // The server reads its settings a moment after the reload was asked for.
        pair.until(0, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
        Some(pair)
    }

    fn data(&self, server: usize) -> PathBuf {
        self.servers[server].folder.join("data")
    }

    pub(crate) const fn primary(&self) -> usize {
        self.primary
    }

    pub(crate) const fn standby(&self) -> usize {
        1 - self.primary
    }

    /// Starts a server on its data and waits until it answers.
    pub(crate) fn run_server(&mut self, server: usize) {
        let folder = &self.servers[server].folder;
        let script = "log=$1; shift; \"$@\" >>\"$log\" 2>&1 </dev/null & server=$!; cat >/dev/null; \
             kill -CONT $server 2>/dev/null; kill -QUIT $server 2>/dev/null; wait $server";
        let mut keeper = ordinary(Path::new("/bin/sh"));
        keeper.args(["-c", script, "sh"]).arg(folder.join("log")).arg(self.bin.join("postgres")).arg("-D").arg(self.data(server));
        for setting in [
            "listen_addresses=",
            &format!("unix_socket_directories={}", folder.display()),
            "fsync=off",
            "shared_buffers=32MB",
            "max_connections=100",
            "wal_sender_timeout=20s",
            "wal_receiver_timeout=20s",
            "wal_retrieve_retry_interval=200ms",
        ] {
            keeper.args(["-c", setting]);
        }
        let keeper = keeper.current_dir(folder).stdin(Stdio::piped()).spawn().expect("a shell runs");
        self.servers[server].keeper = Some(keeper);
        self.until(server, "SELECT 1", "1");
    }

    /// Makes the other server a standby of the primary, whatever it was, and waits until it streams.
    pub(crate) fn build_standby(&mut self) {
        let standby = self.standby();
        let data = self.data(standby);
        let _ = std::fs::remove_dir_all(&data);
        let mut copy = ordinary(&self.bin.join("pg_basebackup"));
        copy.args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "-U", "farebox", "-h"]);
        run(copy.arg(&self.servers[self.primary].folder).arg("-D").arg(&data));
        let mut settings = OpenOptions::new().append(true).open(data.join("postgresql.auto.conf")).expect("its settings");
        settings.write_all(b"synchronous_standby_names = '*'\n").expect("its settings");
        self.run_server(standby);
        self.until(self.primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1");
    }

    /// Waits until a statement has this result.
    fn until(&self, server: usize, sql: &str, result: &str) {
        let begun = Instant::now();
        while !self.ask(server, "postgres", sql).is_ok_and(|found| found == result) {
            assert!(begun.elapsed() < PATIENCE, "{sql}: {}", self.log(server));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn ask(&self, server: usize, database: &str, sql: &str) -> Result<String, String> {
        psql_at(&self.bin, &self.servers[server].folder, database, sql)
    }

    /// Runs a statement on the primary.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.ask(self.primary, "postgres", sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Lets the primary confirm what no standby has.
    pub(crate) fn wait_for_nobody(&self) {
        self.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
        self.sql("SELECT pg_reload_conf()");
    }

    /// Kills every process of a server, as a machine that loses power does.
    pub(crate) fn kill(&mut self, server: usize) {
        self.signal(server, "KILL");
        if let Some(mut keeper) = self.servers[server].keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }

    /// Stops every process of a server in its tracks (`STOP`), or lets it go on (`CONT`).
    pub(crate) fn signal(&self, server: usize, signal: &str) {
        let pid = std::fs::read_to_string(self.data(server).join("postmaster.pid")).expect("it runs");
        let postmaster: u32 = pid.lines().next().and_then(|line| line.trim().parse().ok()).expect("its number");
        let mut all = vec![postmaster];
        all.extend(children(postmaster));
        let mut kill = Command::new("kill");
        kill.arg(format!("-{signal}")).args(all.iter().map(u32::to_string));
        // One of them may have ended by itself.
        let _ = kill.stderr(Stdio::null()).status();
    }

    /// Makes the standby the primary. The old one must be dead.
    pub(crate) fn promote(&mut self) {
        self.primary = self.standby();
        self.until(self.primary, "SELECT pg_promote(true, 30) OR NOT pg_is_in_recovery()", "t");
    }

    /// The folder of a server's socket.
    pub(crate) fn folder(&self, server: usize) -> &Path {
        &self.servers[server].folder
    }

    /// Where a database is, on whichever server takes writes, as `--ledger` takes it; `folders` have the sockets.
    pub(crate) fn url_at(folders: [&Path; 2], database: &str) -> String {
        let [a, b] = folders.map(|folder| folder.display().to_string().replace('/', "%2F"));
        format!("postgres://farebox@{a},{b}/{database}")
    }

    /// The same, on the servers' own sockets.
    pub(crate) fn url(&self, database: &str) -> String {
        Self::url_at([self.folder(0), self.folder(1)], database)
    }

    fn log(&self, server: usize) -> String {
        std::fs::read_to_string(self.servers[server].folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for server in 0..2 {
            if self.servers[server].keeper.is_some() {
                self.kill(server);
            }
        }
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

fn run(command: &mut Command) {
    let output = command.current_dir("/").output().expect("the program runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The processes that this one has started.
fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("Linux");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which is in parentheses: the state, then the parent.
        let after = stat.rsplit(") ").next().unwrap_or_default().to_owned();
        after.split(' ').nth(1).and_then(|text| text.parse::<u32>().ok()) == Some(parent)
    };
    numbers.filter(is_child).collect()
}

//! A primary and its synchronous standbys for one test: they stream, freeze, die, are promoted, rejoin, and run out of disk.
//!
//! Like the single cluster they run as an ordinary user, in a temporary folder, on sockets in it, and end with the test program.
//! Each waits for a standby whenever it is the primary.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::cluster::{NOBODY, ordinary, programs, psql_at};
pub(crate) use disk::Disk;
use disk::Mounted;

#[path = "disk.rs"]
mod disk;

/// How long a server may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the servers are called.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Which standbys a commit waits for: no other program that streams.
const ANY: &str = "ANY 1 (a, b, c)";

/// One server: its folder has the socket and the data, and its log is beside it.
struct Server {
    folder: PathBuf,
    keeper: Option<Child>,
    disk: Option<Mounted>,
}

/// A primary and one standby, or two.
pub(crate) struct Pair {
    bin: PathBuf,
    base: PathBuf,
    servers: Vec<Server>,
    primary: usize,
    has_disks: bool,
    /// Where each listens besides its socket; all in one network of the test's own.
    addresses: Vec<&'static str>,
    _cleaner: Child,
}

impl Pair {
    /// A primary and a standby that streams; `None` where PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(1, false)
    }

    /// A primary and so many standbys, any of which confirms a commit. With `disks`, and where mounting is permitted, each has a
    /// small disk of its own.
    pub(crate) fn start_with(standbys: usize, disks: bool) -> Option<Self> {
        Self::start_at(standbys, disks.then_some(Disk::Small), &[])
    }

    /// The same, each also at one of these addresses. The caller is in a network where they exist.
    pub(crate) fn start_at(
        standbys: usize,
        disk: Option<Disk>,
        addresses: &[&'static str],
    ) -> Option<Self> {
        let bin = programs()?;
        let base = tempfile::Builder::new()
            .prefix("farebox-pair-")
            .tempdir()
            .expect("a temporary folder")
            .keep();
        give_away(&base);
        let mut servers: Vec<Server> = NAMES
            .iter()
            .take(1 + standbys)
            .map(|name| Server {
                folder: base.join(name),
                keeper: None,
                disk: None,
            })
            .collect();
        // Whoever mounted a disk unmounts it, so not as an ordinary user. Ctrl-C ends the test and not this.
        let script = "trap '' INT TERM; cat >/dev/null; sleep 2; for disk in \"$1\"/* \"$1\"/*/data; do fsfreeze -u \"$disk\" 2>/dev/null; umount -l \"$disk\" 2>/dev/null; done; rm -rf \"$1\"";
        let mut cleaner = Command::new("/bin/sh");
        cleaner
            .args(["-c", script, "sh"])
            .arg(&base)
            .stdin(Stdio::piped());
        let cleaner = cleaner.spawn().expect("a shell runs");
        for server in &mut servers {
            let folder = &server.folder;
            std::fs::create_dir(folder).expect("a folder");
            // A socket needs a file system that knows sockets.
            let mut at = folder.clone();
            if disk == Some(Disk::Fuse) {
                at.push("data");
                std::fs::create_dir(&at).expect("a folder");
            }
            server.disk = disk.and_then(|disk| Mounted::new(&at, disk));
            give_away(folder);
            give_away(&at);
        }
        let has_disks = servers.iter().all(|server| server.disk.is_some());
        let mut pair = Self {
            bin,
            base,
            servers,
            primary: 0,
            has_disks,
            addresses: addresses.to_vec(),
            _cleaner: cleaner,
        };
        let mut initdb = ordinary(&pair.bin.join("initdb"));
        initdb.args([
            "--no-sync",
            "--auth=trust",
            "--username=farebox",
            "--encoding=UTF8",
            "--locale=C",
            "--wal-segsize=1",
            "-D",
        ]);
        run(initdb.arg(pair.data(0)));
        if !addresses.is_empty() {
            let rules = OpenOptions::new()
                .append(true)
                .open(pair.data(0).join("pg_hba.conf"));
            let mut rules = rules.expect("its rules");
            writeln!(rules, "host all all all trust").expect("its rules");
        }
        pair.run_server(0);
        pair.build_standbys();
        pair.wait_for(ANY);
        // The server reads its settings a moment after the reload was asked for.
        pair.until(
            0,
            "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'",
            &standbys.to_string(),
        );
        Some(pair)
    }

    /// Whether the servers have disks that can be filled.
    pub(crate) const fn has_disks(&self) -> bool {
        self.has_disks
    }

    fn data(&self, server: usize) -> PathBuf {
        self.servers[server].folder.join("data")
    }

    pub(crate) const fn primary(&self) -> usize {
        self.primary
    }

    /// All that are not the primary.
    pub(crate) fn standbys(&self) -> Vec<usize> {
        (0..self.servers.len())
            .filter(|server| *server != self.primary)
            .collect()
    }

    /// The only standby of a pair, the first of two.
    pub(crate) fn standby(&self) -> usize {
        usize::from(self.primary == 0)
    }

    /// Starts a server on its data and waits until it answers.
    pub(crate) fn run_server(&mut self, server: usize) {
        let folder = &self.servers[server].folder;
        let script = "log=$1; shift; \"$@\" >>\"$log\" 2>&1 </dev/null & server=$!; cat >/dev/null; \
             kill -CONT $server 2>/dev/null; kill -QUIT $server 2>/dev/null; wait $server";
        let mut keeper = ordinary(Path::new("/bin/sh"));
        keeper
            .args(["-c", script, "sh"])
            .arg(folder.with_extension("log"))
            .arg(self.bin.join("postgres"))
            .arg("-D")
            .arg(self.data(server));
        for setting in [
            &format!(
                "listen_addresses={}",
                self.addresses.get(server).copied().unwrap_or_default()
            ),
            &format!("cluster_name={}", NAMES[server]),
            &format!("unix_socket_directories={}", folder.display()),
            "fsync=off",
            "shared_buffers=32MB",
            // In the folder, and not in /dev/shm, where a killed server leaves it.
            "dynamic_shared_memory_type=mmap",
            "max_connections=100",
            "wal_sender_timeout=20s",
            "wal_receiver_timeout=20s",
            "wal_retrieve_retry_interval=200ms",
            // Segments are small and made when they are needed, so that a full disk is met soon.
            "wal_recycle=off",
            "min_wal_size=2MB",
            "max_wal_size=64MB",
            // The second standby is built while the first begins to stream.
            "wal_keep_size=32MB",
        ] {
            keeper.args(["-c", setting]);
        }
        let keeper = keeper
            .current_dir(folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell runs");
        self.servers[server].keeper = Some(keeper);
        self.until(server, "SELECT 1", "1");
    }

    /// Makes all other servers standbys of the primary, whatever they were, and waits until they stream.
    pub(crate) fn build_standbys(&mut self) {
        for standby in self.standbys() {
            if self.servers[standby].keeper.is_some() {
                self.kill(standby);
            }
            let data = self.data(standby);
            let _ = std::fs::remove_dir_all(&data);
            let mut copy = ordinary(&self.bin.join("pg_basebackup"));
            copy.args([
                "--no-sync",
                "--checkpoint=fast",
                "--write-recovery-conf",
                "-U",
                "farebox",
                "-h",
            ]);
            run(copy
                .arg(&self.servers[self.primary].folder)
                .arg("-D")
                .arg(&data));
            let mut settings = OpenOptions::new()
                .append(true)
                .open(data.join("postgresql.auto.conf"))
                .expect("its settings");
            settings
                .write_all(format!("synchronous_standby_names = '{ANY}'\n").as_bytes())
                .expect("its settings");
            self.run_server(standby);
        }
        let streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        self.until(self.primary, streaming, &self.standbys().len().to_string());
    }

    /// Waits until a statement has this result at a server.
    pub(crate) fn until(&self, server: usize, sql: &str, result: &str) {
        let begun = Instant::now();
        while !self
            .ask(server, "postgres", sql)
            .is_ok_and(|found| found == result)
        {
            assert!(begun.elapsed() < PATIENCE, "{sql}: {}", self.log(server));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn ask(&self, server: usize, database: &str, sql: &str) -> Result<String, String> {
        psql_at(&self.bin, &self.servers[server].folder, database, sql)
    }

    /// Runs a statement on the primary.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.ask(self.primary, "postgres", sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Lets the primary confirm what no standby has.
    pub(crate) fn wait_for_nobody(&self) {
        self.wait_for("");
    }

    /// Which standbys the primary's commits wait for.
    pub(crate) fn wait_for(&self, names: &str) {
        self.sql(&format!(
            "ALTER SYSTEM SET synchronous_standby_names = '{names}'"
        ));
        self.sql("SELECT pg_reload_conf()");
    }

    /// Lets nothing be written to a server's disk any more; whether that is possible.
    pub(crate) fn hang_disk(&self, server: usize) -> bool {
        (self.servers[server].disk.as_ref()).is_some_and(Mounted::hang)
    }

    /// Lets its disk work again.
    pub(crate) fn release_disk(&self, server: usize) {
        self.servers[server].disk.iter().for_each(Mounted::release);
    }

    /// Kills every process of a server, as a machine that loses power does, and waits until the last is gone: one that was just
    /// started, or takes its time to die, keeps the shared memory, and the server does not start beside it.
    pub(crate) fn kill(&mut self, server: usize) {
        self.signal(server, "KILL");
        if let Some(mut keeper) = self.servers[server].keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
        let begun = Instant::now();
        // One that waits for a disk that hangs cannot die.
        while begun.elapsed() < Duration::from_secs(10) {
            let left = working_in(&self.data(server));
            if left.is_empty() {
                return;
            }
            send("KILL", &left);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops every process of a server in its tracks (`STOP`), or lets it go on (`CONT`).
    pub(crate) fn signal(&self, server: usize, signal: &str) {
        // A server that has ended by itself hears nothing.
        let Ok(pid) = std::fs::read_to_string(self.data(server).join("postmaster.pid")) else {
            return;
        };
        let postmaster: u32 = pid
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok())
            .expect("its number");
        let mut all = vec![postmaster];
        all.extend(children(postmaster));
        send(signal, &all);
    }

    /// Makes the standby that has most the primary. The old one must be dead.
    pub(crate) fn promote(&mut self) {
        let standbys = self.standbys();
        for standby in &standbys {
            // What was sent to it has arrived.
            self.until(
                *standby,
                "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'",
                "0",
            );
        }
        self.primary = self.farthest();
        self.until(
            self.primary,
            "SELECT pg_promote(true, 30) OR NOT pg_is_in_recovery()",
            "t",
        );
    }

    /// The standby that has received most. Any other may lack what was confirmed, and could not be followed by this one.
    pub(crate) fn farthest(&self) -> usize {
        let position = |standby: &usize| {
            let sql = "SELECT pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')";
            let said = self.ask(*standby, "postgres", sql).ok();
            said.and_then(|position| position.parse::<u64>().ok())
        };
        let standbys = self.standbys();
        let all = || standbys.iter().map(position).collect::<Vec<_>>();
        // What was sent to them before the primary fell silent arrives within moments.
        let (mut before, mut now) = (Vec::new(), all());
        while before != now {
            std::thread::sleep(Duration::from_millis(300));
            before = std::mem::replace(&mut now, all());
        }
        let farthest = standbys.into_iter().max_by_key(position);
        farthest.expect("there is a standby")
    }

    /// Promotes a standby whatever the primary does, which may be silent and not dead. Another standby, if there is one, follows it.
    pub(crate) fn promote_beside(&mut self, standby: usize) {
        let old = std::mem::replace(&mut self.primary, standby);
        self.until(
            standby,
            "SELECT pg_promote(true, 30) OR NOT pg_is_in_recovery()",
            "t",
        );
        for follower in self.standbys() {
            if follower != old {
                self.follow(follower);
            }
        }
    }

    /// Lets a running standby stream from the primary.
    pub(crate) fn follow(&self, standby: usize) {
        let folder = self.folder(self.primary).display().to_string();
        let change = format!(
            "ALTER SYSTEM SET primary_conninfo = 'user=farebox host={folder} application_name={}'",
            NAMES[standby]
        );
        for sql in [change.as_str(), "SELECT pg_reload_conf()"] {
            self.ask(standby, "postgres", sql)
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let streams = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name = '{}'",
            NAMES[standby]
        );
        self.until(self.primary, &streams, "1");
    }

    /// Fills the primary's disk under load until the server dies in the middle of a COMMIT, then makes room and starts it again.
    pub(crate) fn fill_disk(&mut self) {
        let begun = Instant::now();
        loop {
            let (primary, before) = (self.primary, self.log(self.primary).len());
            let filling = self.servers[primary].folder.join("filling");
            let mut file = File::create(&filling).expect("a file");
            while file.write_all(&[1; 4_096]).is_ok() {}
            drop(file);
            // Each call ends a segment of the log. When no further one can be made, the server dies, and cannot recover.
            while self
                .ask(primary, "postgres", "SELECT pg_switch_wal()")
                .is_ok()
            {
                assert!(
                    begun.elapsed() < PATIENCE,
                    "the disk is full and nobody minds: {}",
                    self.log(primary)
                );
                std::thread::sleep(Duration::from_millis(30));
            }
            std::thread::sleep(Duration::from_millis(500));
            self.kill(primary);
            std::fs::remove_file(filling).expect("there is room again");
            let said = self.log(primary).split_off(before);
            self.run_server(primary);
            let died = said
                .split("PANIC:")
                .skip(1)
                .any(|of| of.contains("No space left") && of.contains("STATEMENT:  COMMIT\n"));
            if died {
                return;
            }
            // It died of another statement: a renewal, which commits by itself.
            assert!(
                begun.elapsed() < PATIENCE,
                "no COMMIT has met the full disk: {said}"
            );
        }
    }

    /// The folder of a server's socket.
    pub(crate) fn folder(&self, server: usize) -> &Path {
        &self.servers[server].folder
    }

    /// The folders of all sockets.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.servers.iter().map(|server| server.folder.as_path())
    }

    /// Where a database is, on whichever server takes writes, as `--ledger` takes it; `folders` have the sockets.
    pub(crate) fn url_at<'a>(
        folders: impl IntoIterator<Item = &'a Path>,
        database: &str,
    ) -> String {
        let folders: Vec<String> = folders
            .into_iter()
            .map(|folder| folder.display().to_string().replace('/', "%2F"))
            .collect();
        format!("postgres://farebox@{}/{database}", folders.join(","))
    }

    /// The same, on the servers' own sockets.
    pub(crate) fn url(&self, database: &str) -> String {
        Self::url_at(self.folders(), database)
    }

    /// What a server has logged.
    pub(crate) fn log(&self, server: usize) -> String {
        std::fs::read_to_string(self.servers[server].folder.with_extension("log"))
            .unwrap_or_default()
    }

    /// The ends of all servers' logs, for a test that fails.
    pub(crate) fn last_words(&self) -> String {
        let end = |server| {
            let log = self.log(server);
            let lines: Vec<&str> = log.lines().rev().take(40).collect();
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("server {}:\n{}", NAMES[server], lines.join("\n"))
        };
        let ends: Vec<String> = (0..self.servers.len()).map(end).collect();
        ends.join("\n")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for server in 0..self.servers.len() {
            self.release_disk(server);
            if self.servers[server].keeper.is_some() {
                self.kill(server);
            }
            self.servers[server].disk = None;
        }
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// Gives a folder to the user as whom the servers run.
fn give_away(folder: &Path) {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).expect("the folder is ours");
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))
            .expect("root may give it away");
    }
}

fn run(command: &mut Command) {
    let output = command.current_dir("/").output().expect("the program runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn send(signal: &str, processes: &[u32]) {
    let mut kill = Command::new("kill");
    kill.arg(format!("-{signal}"))
        .args(processes.iter().map(u32::to_string));
    // One of them may have ended by itself.
    let _ = kill.stderr(Stdio::null()).status();
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("Linux");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
}

/// The processes whose folder this is: each of a server's has its data.
fn working_in(folder: &Path) -> Vec<u32> {
    let is_there = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|found| found == folder)
    };
    processes().filter(is_there).collect()
}

/// The processes that this one has started.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which is in parentheses: the state, then the parent.
        let after = stat.rsplit(") ").next().unwrap_or_default().to_owned();
        after
            .split(' ')
            .nth(1)
            .and_then(|text| text.parse::<u32>().ok())
            == Some(parent)
    };
    processes().filter(is_child).collect()
}

//! The rows of a ledger on PostgreSQL: one server with a certificate, a password, few connections and a disk that can be slow, and one
//! gateway on it that finds it by name.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Child, Command, Stdio};

use farebox_ledger::{LedgerAddress, OpenMode, Opening};
use tokio::task::block_in_place;

use super::{Asked, Row, all_rows, not_tested, until};
use crate::process::bad_machines::Machine;
use crate::support::cluster::{Cluster, NOBODY, programs};
use crate::support::load::{self, UPSTREAM_KEY};
use crate::support::process::Served;
use crate::support::skip::installed;
use crate::support::talking;
use crate::support::upstream::ScriptedUpstream;

/// What makes an authority, and a certificate of it that is good or was good last week.
const CERTIFICATES: &str = r#"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 $new -keyout ca.key -out ca.pem -subj /CN=authority -days 30
openssl req $new -keyout server.key -out server.csr -subj /CN=database.test
printf 'subjectAltName=DNS:database.test\nbasicConstraints=CA:FALSE\n' >extensions
sign() { openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -set_serial 7 -extfile extensions -days "$2" -out "$1"; }
sign good.pem 10
echo -864000 >seconds
BROKEN_MACHINE=. LD_PRELOAD=$1 sign old.pem 1
cp good.pem server.pem
"#;

/// Whether others have all places but those for superusers.
const FULL: &str = "SELECT count(*) = current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
     FROM pg_stat_activity WHERE usename = 'filler'";

/// The server, the database in it, and its certificates.
struct Database {
    cluster: Cluster,
    name: String,
    machine: Machine,
    address: String,
}

impl Database {
    /// `None` where PostgreSQL is not installed.
    fn start(machine: Machine) -> Option<Self> {
        let bin = programs()?;
        let own = std::process::id();
        let address = format!("127.74.{}.{}", own >> 8 & 255, own & 255);
        let folder = machine.folder().to_owned();
        let library = folder.join("broken_machine.so");
        let mut shell = Command::new("/bin/bash");
        let made = shell
            .args(["-e", "-c", CERTIFICATES, "bash"])
            .arg(&library)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        std::fs::remove_file(folder.join("seconds")).unwrap();
        let key = folder.join("server.key");
        // The server runs as another user, who reads all of it and owns its key.
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let _ = chown(&key, Some(NOBODY), Some(NOBODY));
        let at = |name: &str| folder.join(name).display().to_string();
        let settings = [
            format!("listen_addresses={address}"),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", at("server.pem")),
            format!("ssl_key_file={}", at("server.key")),
            "max_connections=30".to_owned(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let cluster = Cluster::start_on(bin, &settings, &machine.environment());
        let name = cluster.database();
        let database = Self {
            cluster,
            name,
            machine,
            address,
        };
        database.sql(&format!(
            "CREATE ROLE seller LOGIN PASSWORD 'right'; CREATE ROLE filler LOGIN; GRANT pg_monitor TO seller; \
             ALTER DATABASE {0} OWNER TO seller; GRANT ALL ON SCHEMA public TO seller",
            database.name
        ));
        let rules = database.cluster.folder().join("data/pg_hba.conf");
        let trusting = std::fs::read_to_string(&rules).unwrap();
        let strict = format!("hostssl all seller all scram-sha-256\n{trusting}");
        std::fs::write(&rules, strict).unwrap();
        database.reload();
        Some(database)
    }

    fn url(&self) -> String {
        format!(
            "postgres://seller:right@database.test/{}?sslrootcert={}",
            self.name,
            self.machine.folder().join("ca.pem").display()
        )
    }

    #[track_caller]
    fn sql(&self, sql: &str) {
        self.answer(sql);
    }

    #[track_caller]
    fn answer(&self, sql: &str) -> String {
        self.cluster.psql(&self.name, sql).unwrap()
    }

    /// The same from another database, on whatever this one is set to.
    #[track_caller]
    fn aside(&self, sql: &str) {
        self.cluster.psql("postgres", sql).unwrap();
    }

    /// The server reads its files anew in a moment of its own, from which on whoever comes meets what is in them.
    fn reload(&self) {
        let read_at = || self.answer("SELECT pg_conf_load_time()");
        let before = read_at();
        self.sql("SELECT pg_reload_conf()");
        until("its files are read", || read_at() != before);
    }

    /// Waits until somebody's session does this.
    fn sees(&self, what: &str) {
        let sql = format!("SELECT count(*) > 0 FROM pg_stat_activity WHERE {what}");
        until(what, || self.answer(&sql) == "t");
    }

    /// Sessions of the gateway end, so that it has to come again.
    fn end_sessions(&self) {
        self.aside(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'seller'",
        );
    }

    /// Changes something that only new sessions meet.
    fn change(&self, sql: &str) {
        self.aside(sql);
        self.end_sessions();
    }

    fn certificate(&self, name: &str) {
        let folder = self.machine.folder();
        let content = std::fs::read(folder.join(name)).unwrap();
        std::fs::write(folder.join("server.pem"), content).unwrap();
        self.reload();
        self.end_sessions();
    }

    /// An operator's session that does this, and waits.
    fn session(&self, role: &str, sql: &str) -> Session {
        let mut psql = Command::new("psql");
        let mut child = psql
            .args(["-X", "-q", "-U", role, "-d", &self.name, "-h"])
            .arg(self.cluster.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{sql}").unwrap();
        Session(child, Some(input))
    }
}

/// A session ends with its input.
struct Session(Child, Option<std::process::ChildStdin>);

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.1.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn unreachable(what: &'static str, says: &str, remedy: &'static str) -> Row {
    Row::new(
        what,
        "ledger_unreachable",
        &["cannot be reached", says],
        remedy,
    )
}

fn refused(what: &'static str, says: &[&str], remedy: &'static str) -> Row {
    Row::new(what, "ledger_refused", says, remedy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_keeps_a_database_from_being_written_is_told() {
    let (Some(machine), Some(server)) = (Machine::new(), Machine::new()) else {
        return not_tested("faults of a machine: there is no compiler");
    };
    if !installed("openssl", "a database with a certificate") {
        return not_tested("faults of a database: openssl is not installed");
    }
    let Some(database) = block_in_place(|| Database::start(server)) else {
        return not_tested("what keeps a database from being written: PostgreSQL is not installed");
    };
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, _) = load::place(&upstream);
    // Made by its socket, as this process is on a machine without that name.
    let socket = database.cluster.url(&database.name);
    let local: LedgerAddress = socket.replace("farebox@", "seller@").parse().unwrap();
    let opening = Opening {
        allow_single: true,
        ..Opening::new(OpenMode::Write)
    };
    let ledger = local.create(&opening).await.unwrap();
    let key = load::key(&*ledger, "100").await;
    ledger.close();
    drop(ledger);
    machine.set("name", &database.address);
    let url = database.url();
    let more = [
        ("FAREBOX_LEDGER", url.as_str()),
        ("FAREBOX_ALLOW_SINGLE", "true"),
    ];
    let environment = [&machine.environment()[..], &[UPSTREAM_KEY], &more].concat();
    let served = block_in_place(|| Served::start_with(folder.path(), &[], &environment));
    let asked = Asked::start(&served, &key).await;

    locks(&asked, &database).await;
    settings(&asked, &database).await;
    connections(&asked, &database, &machine).await;
    if all_rows() {
        full_server(&asked, &database).await;
        let row = Row::new(
            "a sync of 3 s",
            "ledger_slow",
            &["the disk of the database's server"],
            "iostat",
        );
        let sync = |millis| database.machine.set("sync", millis);
        asked
            .goes_through(&row, || sync("3000"), || sync("0"))
            .await;
    }
}

/// Somebody has locked what commits write.
async fn locks(asked: &Asked<'_>, database: &Database) {
    let mut sessions = Vec::new();
    for table in ["nodes", "accounts"] {
        let row = Row::new(
            "a table is locked",
            "ledger_blocked",
            &[
                &format!("a lock on the table {table}, held up by process"),
                "(psql, user farebox, idle in transaction: LOCK TABLE",
            ],
            "pg_terminate_backend",
        );
        let lock = format!("BEGIN; LOCK TABLE {table};");
        asked
            .told(&row, || sessions.push(database.session("farebox", &lock)))
            .await;
        asked.over(&row, || sessions.clear()).await;
    }
    let row = Row::new(
        "an ALTER waits for a report",
        "ledger_blocked",
        &[
            "a lock on the table accounts, held up by process",
            "idle in transaction: SELECT count(*) FROM accounts;), for which waits process",
            "ALTER TABLE accounts",
        ],
        "pg_terminate_backend",
    );
    let queue = || {
        let report = "BEGIN; SELECT count(*) FROM accounts;";
        sessions.push(database.session("farebox", report));
        database
            .sees("query LIKE 'SELECT count(*) FROM accounts%' AND state = 'idle in transaction'");
        let alter = "BEGIN; ALTER TABLE accounts ADD COLUMN odd int; ROLLBACK;";
        sessions.push(database.session("farebox", alter));
    };
    asked.told(&row, queue).await;
    asked.over(&row, || drop(sessions.remove(0))).await;
}

/// The server is reached, and refuses.
async fn settings(asked: &Asked<'_>, database: &Database) {
    for (table, right) in [("entries", "INSERT"), ("accounts", "UPDATE")] {
        let said = format!("permission denied for table {table} (SQLSTATE 42501)");
        let row = refused("a right is revoked", &[&said], "GRANT");
        let revoke = || database.sql(&format!("REVOKE {right} ON {table} FROM seller"));
        let grant = || database.sql(&format!("GRANT {right} ON {table} TO seller"));
        asked.goes_through(&row, revoke, grant).await;
    }
    let name = &database.name;
    let row = refused(
        "a database is read-only",
        &["takes no writes (default_transaction_read_only)"],
        "RESET default_transaction_read_only",
    );
    let set = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    let reset = format!("ALTER DATABASE {name} RESET default_transaction_read_only");
    let (set, reset) = (|| database.change(&set), || database.aside(&reset));
    asked.goes_through(&row, set, reset).await;
    if all_rows() {
        let row = refused(
            "a statement timeout",
            &["statement timeout", "57014"],
            "RESET statement_timeout",
        );
        let set = || database.change("ALTER ROLE seller SET statement_timeout = 1");
        let reset = || database.change("ALTER ROLE seller RESET statement_timeout");
        asked.goes_through(&row, set, reset).await;
    }
}

/// No new connection comes about.
async fn connections(asked: &Asked<'_>, database: &Database, machine: &Machine) {
    let row = unreachable(
        "a role's limit",
        "too many connections for role",
        "ALTER ROLE",
    );
    let limit = || database.change("ALTER ROLE seller CONNECTION LIMIT 0");
    let lift = || database.sql("ALTER ROLE seller CONNECTION LIMIT -1");
    asked.goes_through(&row, limit, lift).await;

    let row = unreachable(
        "a wrong password",
        "password authentication failed",
        "PASSWORD",
    );
    let wrong = || database.change("ALTER ROLE seller PASSWORD 'other'");
    let right = || database.sql("ALTER ROLE seller PASSWORD 'right'");
    asked.goes_through(&row, wrong, right).await;

    let row = unreachable(
        "a name is not found",
        "the name cannot be resolved",
        "getent",
    );
    let lose = || {
        machine.set("name", "");
        database.end_sessions();
    };
    let find = || machine.set("name", &database.address);
    asked.goes_through(&row, lose, find).await;

    let row = unreachable("a certificate expired", "xpired", "ssl_cert_file");
    let (expire, renew) = (
        || database.certificate("old.pem"),
        || database.certificate("good.pem"),
    );
    asked.goes_through(&row, expire, renew).await;
}

/// The server has no place left.
async fn full_server(asked: &Asked<'_>, database: &Database) {
    let row = unreachable(
        "the server's limit",
        "remaining connection slots are reserved",
        "max_connections",
    );
    let mut fillers = Vec::new();
    let fill = || {
        database.change("ALTER ROLE seller CONNECTION LIMIT 0");
        until("others have every place", || {
            let full = database.answer(FULL) == "t";
            if !full {
                fillers.push(database.session("filler", "SELECT 1;"));
            }
            full
        });
        database.sql("ALTER ROLE seller CONNECTION LIMIT -1");
    };
    asked.told(&row, fill).await;
    asked.over(&row, || fillers.clear()).await;
}

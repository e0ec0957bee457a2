//! A standby of the bench's cluster, for which commits wait or not, so that both are measured in one run.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, ordinary, programs};

/// A server that streams from the cluster. It ends with this program, as the cluster does.
pub(crate) struct StreamingStandby {
    _keeper: Child,
}

impl StreamingStandby {
    /// Copies the cluster and starts the copy as its standby.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let bin = programs().unwrap();
        let folder = cluster.folder().join("standby");
        let mut copy = ordinary(&bin.join("pg_basebackup"));
        copy.args([
            "--no-sync",
            "--checkpoint=fast",
            "--write-recovery-conf",
            "-U",
            "farebox",
            "-h",
        ])
        .arg(cluster.folder());
        assert!(
            copy.arg("-D")
                .arg(&folder)
                .current_dir("/")
                .status()
                .unwrap()
                .success()
        );
        let script = "folder=$1; shift; \"$@\" >\"$folder/log\" 2>&1 </dev/null & server=$!; cat >/dev/null; kill -QUIT $server";
        let mut keeper: Command = ordinary("/bin/sh".as_ref());
        keeper
            .args(["-c", script, "sh"])
            .arg(&folder)
            .arg(bin.join("postgres"))
            .arg("-D")
            .arg(&folder);
        // A standby needs as many connections as its primary has (`cluster`).
        keeper
            .args([
                "-c",
                "max_connections=200",
                "-c",
                "cluster_name=standby",
                "-c",
                "listen_addresses=",
                "-c",
            ])
            .arg(format!("unix_socket_directories={}", folder.display()));
        let keeper = keeper
            .current_dir("/")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        until(
            cluster,
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'",
            "1",
        );
        Self { _keeper: keeper }
    }

    /// Has every commit wait for the standby, or none.
    pub(crate) fn is_waited_for(&self, cluster: &Cluster, waited: bool) {
        let (names, synchronous) = if waited { ("standby", "1") } else { ("", "0") };
        cluster
            .psql(
                "postgres",
                &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"),
            )
            .unwrap();
        cluster.psql("postgres", "SELECT pg_reload_conf()").unwrap();
        // The server reads its settings a moment after the reload was asked for.
        until(
            cluster,
            "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'",
            synchronous,
        );
    }
}

fn until(cluster: &Cluster, sql: &str, result: &str) {
    let begun = Instant::now();
    while cluster.psql("postgres", sql).unwrap() != result {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{sql} is not {result}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

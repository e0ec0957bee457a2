//! A network of a test's own: the database behind a router that can drop everything, as a broken cable does. Both ends keep their
//! links and hear nothing; connections are neither refused nor closed.
//!
//! Made of network namespaces, which end with the value; `None` where that is not permitted.
#![expect(clippy::expect_used, reason = "a test ends at the first surprise")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sched::{CloneFlags, setns};

/// Each has a name of its own.
static MADE: AtomicUsize = AtomicUsize::new(0);
/// The server's address.
pub(crate) const SERVER: &str = "10.77.2.2";

/// Those of two further machines in the server's network.
pub(crate) const MACHINES: [&str; 3] = [SERVER, "10.77.2.3", "10.77.2.4"];

/// Three namespaces in a row: the gateway's, the router's, the server's.
pub(crate) struct Network {
    name: String,
}

impl Network {
    pub(crate) fn start() -> Option<Self> {
        let network = Self {
            name: format!(
                "f{}{}",
                std::process::id() % 1_000_000,
                MADE.fetch_add(1, Ordering::Relaxed)
            ),
        };
        let [gateway, router, server] = network.spaces();
        let name = &network.name;
        let lines = [
            format!("netns add {gateway}"),
            format!("netns add {router}"),
            format!("netns add {server}"),
            format!("link add {name}a netns {gateway} type veth peer name {name}b netns {router}"),
            format!("link add {name}c netns {router} type veth peer name {name}d netns {server}"),
            format!("-n {gateway} addr add 10.77.1.2/24 dev {name}a"),
            format!("-n {router} addr add 10.77.1.1/24 dev {name}b"),
            format!("-n {router} addr add 10.77.2.1/24 dev {name}c"),
            format!("-n {server} addr add {SERVER}/24 dev {name}d"),
            format!("-n {server} addr add {}/24 dev {name}d", MACHINES[1]),
            format!("-n {server} addr add {}/24 dev {name}d", MACHINES[2]),
            format!("-n {gateway} link set lo up"),
            format!("-n {server} link set lo up"),
            format!("-n {gateway} link set {name}a up"),
            format!("-n {router} link set {name}b up"),
            format!("-n {router} link set {name}c up"),
            format!("-n {server} link set {name}d up"),
            format!("-n {gateway} route add default via 10.77.1.1"),
            format!("-n {server} route add default via 10.77.2.1"),
        ];
        let made = lines.iter().all(|line| ip(line)) && network.forward("1");
        made.then_some(network)
    }

    fn spaces(&self) -> [String; 3] {
        ["gw", "rt", "db"].map(|end| format!("{}-{end}", self.name))
    }

    fn forward(&self, value: &str) -> bool {
        let [_, router, _] = self.spaces();
        ip(&format!(
            "netns exec {router} sysctl -q -w net.ipv4.ip_forward={value}"
        ))
    }

    /// From now on the router drops every packet.
    pub(crate) fn cut(&self) {
        assert!(self.forward("0"), "the router can be told to drop");
    }

    /// From now on nothing comes from this machine, as when its power is cut.
    pub(crate) fn silence(&self, machine: &str) {
        let [_, router, _] = self.spaces();
        assert!(
            ip(&format!("-n {router} route add blackhole {machine}/32")),
            "the router can be told to drop"
        );
    }

    /// The router passes packets on again.
    pub(crate) fn mend(&self) {
        assert!(self.forward("1"), "the router can be told to pass");
    }

    /// Runs something at the gateway's end: this thread, and every thread and process that it starts.
    pub(crate) fn at_the_gateway<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let [gateway, ..] = self.spaces();
        within(&gateway, work)
    }

    /// Runs something at the server's end.
    pub(crate) fn at_the_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let [.., server] = self.spaces();
        within(&server, work)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in self.spaces() {
            let _ = ip(&format!("netns del {space}"));
        }
    }
}

fn ip(line: &str) -> bool {
    let mut ip = Command::new("ip");
    ip.args(line.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    ip.status().is_ok_and(|status| status.success())
}

/// A thread of its own enters the namespace, because a thread that has entered one does not come back.
fn within<T: Send>(space: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(PathBuf::from("/run/netns").join(space)).expect("the namespace is there");
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET).expect("root may enter it");
            work()
        });
        inside
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

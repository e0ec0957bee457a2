//! The proxies of `deploy/`, started with their shipped files.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Loopback addresses that nothing else uses, so that nobody takes a port before the proxy does.
const NGINX: [u8; 4] = [127, 0, 8, 2];
const CADDY: [u8; 4] = [127, 0, 8, 3];

/// The gateways in the files for a fleet …
const FLEET: [&str; 3] = ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"];
/// … and where nobody listens in place of two of them.
const AWAY: [(&str, &str); 2] = [(FLEET[1], "127.0.8.4:9"), (FLEET[2], "127.0.8.5:9")];

/// A file of `deploy/`.
pub(crate) fn shipped(name: &str) -> String {
    fs::read_to_string(Path::new(crate::support::HOME).join("deploy").join(name)).unwrap()
}

fn free_port(at: [u8; 4]) -> SocketAddr {
    TcpListener::bind(SocketAddr::from((at, 0)))
        .unwrap()
        .local_addr()
        .unwrap()
}

/// A running proxy. Dropping it stops it.
pub(crate) struct Proxy {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How clients reach nginx.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Proxy {
    /// nginx before the gateway at this address. It may have as many connections as `connections` says, and as many descriptors.
    pub(crate) fn nginx(folder: &Path, gateway: &str, scheme: Scheme, connections: u32) -> Self {
        let site = shipped("nginx.conf").replace("127.0.0.1:8080", gateway);
        Self::nginx_with(folder, site, scheme, connections)
    }

    /// nginx before the shop at this address.
    pub(crate) fn nginx_of_shop(folder: &Path, shop: &str) -> Self {
        let site = shipped("nginx-shop.conf")
            .replace("127.0.0.1:8090", shop)
            .replace("live/shop.example", "live/api.example.com");
        Self::nginx_with(folder, site, Scheme::Http, 512)
    }

    /// nginx before a fleet of which this gateway alone is up.
    pub(crate) fn nginx_of_fleet(folder: &Path, gateway: &str, connections: u32) -> Self {
        let site = AWAY.iter().fold(
            shipped("nginx-fleet.conf").replace(FLEET[0], gateway),
            |site, (shipped, away)| site.replace(shipped, away),
        );
        Self::nginx_with(folder, site, Scheme::Http, connections)
    }

    fn nginx_with(folder: &Path, site: String, scheme: Scheme, connections: u32) -> Self {
        let (address, here) = (free_port(NGINX), folder.display().to_string());
        let tls = Path::new(crate::support::HOME).join("tests/tls");
        let mut site = site
            .replace("[::]:443", &format!("[::1]:{}", address.port()))
            .replace("listen 443", &format!("listen {address}"))
            .replace("/var/lib/nginx/farebox", &format!("{here}/bodies"))
            .replace(
                "/etc/letsencrypt/live/api.example.com/fullchain.pem",
                &tls.join("first.crt").display().to_string(),
            )
            .replace(
                "/etc/letsencrypt/live/api.example.com/privkey.pem",
                &tls.join("first.key").display().to_string(),
            );
        if scheme == Scheme::Http {
            site = site.replace(" ssl http2;", ";");
        }
        fs::write(folder.join("site.conf"), site).unwrap();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {here}/{name};\n"))
            .concat();
        let whole = format!(
            "pid {here}/pid;\nerror_log stderr;\nevents {{ worker_connections {connections}; }}\n\
             http {{\naccess_log off;\n{temporary}include {here}/site.conf;\n}}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, whole).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = Command::new("nginx");
            command
                .args(["-e", "stderr", "-p", &here, "-c"])
                .arg(&file)
                .args(arguments)
                .stdin(Stdio::null());
            command
        };
        let checked = run(&["-t"]).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{said}");
        let mut command = run(&["-g", "daemon off; master_process off;"]);
        let process = command.stderr(Stdio::null()).spawn().unwrap();
        Self { process, address }
    }

    /// Bytes of bodies that it keeps in files. They have no names, only descriptors.
    pub(crate) fn bodies_on_disk(&self) -> u64 {
        let open = fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap();
        let sizes = open.flatten().filter_map(|open| {
            let file = fs::read_link(open.path()).ok()?;
            let is_body = ["/bodies/", "/client_body/"]
                .iter()
                .any(|folder| file.to_string_lossy().contains(folder));
            is_body.then(|| fs::metadata(open.path()).map_or(0, |facts| facts.len()))
        });
        sizes.sum()
    }

    /// Caddy before the gateway at this address. A test has no public name to get a certificate for: plain HTTP, the rest as shipped.
    pub(crate) fn caddy(folder: &Path, gateway: &str) -> Self {
        Self::caddy_with(
            folder,
            shipped("Caddyfile").replace("127.0.0.1:8080", gateway),
        )
    }

    /// Caddy before the shop at this address.
    pub(crate) fn caddy_of_shop(folder: &Path, shop: &str) -> Self {
        let site = shipped("Caddyfile.shop")
            .replace("127.0.0.1:8090", shop)
            .replace("shop.example {", "api.example.com {");
        Self::caddy_with(folder, site)
    }

    /// Caddy before a fleet of which this gateway alone is up; `admin` is where it says so.
    pub(crate) fn caddy_of_fleet(folder: &Path, gateway: &str, admin: &str) -> Self {
        let port = admin.rsplit(':').next().unwrap();
        let site = AWAY.iter().fold(
            shipped("Caddyfile.fleet")
                .replace(FLEET[0], gateway)
                .replace("health_port 9090", &format!("health_port {port}")),
            |site, (shipped, away)| site.replace(shipped, away),
        );
        Self::caddy_with(folder, site)
    }

    fn caddy_with(folder: &Path, site: String) -> Self {
        let address = free_port(CADDY);
        let mut site = site
            // On this address alone: on all of them the port may be taken.
            .replace(
                "api.example.com {",
                &format!("http://{address} {{\n\tbind {}", address.ip()),
            )
            .replacen(
                "{\n\tservers",
                "{\n\tadmin off\n\tauto_https off\n\tservers",
                1,
            );
        let version = Command::new("caddy").arg("version").output().unwrap();
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        if version.trim_start_matches('v').starts_with("2.6.2") {
            // As the file says.
            site = site.replace(
                "request_buffers 256KB",
                "buffer_requests\n\t\t\tmax_buffer_size 256KB",
            );
        }
        let file = folder.join("Caddyfile");
        fs::write(&file, site).unwrap();
        let mut command = Command::new("caddy");
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&file)
            .env("HOME", folder)
            .env("XDG_DATA_HOME", folder)
            .env("XDG_CONFIG_HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().unwrap();
        Self { process, address }
    }
}

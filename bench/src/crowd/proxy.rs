//! The shipped proxies before the gateway and before the shop, each with its file of `deploy/`, in plain HTTP.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::attackers::{ShippedProxy, Victim};
use crate::machine;
use crate::subjects::{Programs, free_address};

/// The shipped files, which are measured with gateway and shop.
const NGINX: &str = include_str!("../../../deploy/nginx.conf");
const NGINX_OF_SHOP: &str = include_str!("../../../deploy/nginx-shop.conf");
const CADDY: &str = include_str!("../../../deploy/Caddyfile");
const CADDY_OF_SHOP: &str = include_str!("../../../deploy/Caddyfile.shop");

/// A proxy that runs. Dropping it ends it.
pub(super) struct RunningProxy {
    child: Child,
    pub(super) address: SocketAddr,
}

impl RunningProxy {
    /// Starts one before a program at this address.
    pub(super) fn start(
        through: ShippedProxy,
        before: Victim,
        (programs, folder): (&Programs, &Path),
        program: SocketAddr,
    ) -> Result<Self, String> {
        let folder = folder.join(format!("proxy-{before:?}"));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        match (through, before) {
            (ShippedProxy::Nginx, Victim::Gateway) => {
                Self::nginx(programs, &folder, NGINX, ("127.0.0.1:8080", program))
            }
            (ShippedProxy::Nginx, Victim::Shop) => Self::nginx(
                programs,
                &folder,
                NGINX_OF_SHOP,
                ("127.0.0.1:8090", program),
            ),
            (ShippedProxy::Caddy, Victim::Gateway) => {
                let site = CADDY.replace("127.0.0.1:8080", &program.to_string());
                Self::caddy(&folder, &site, "\napi.example.com {")
            }
            (ShippedProxy::Caddy, Victim::Shop) => {
                let site = CADDY_OF_SHOP.replace("127.0.0.1:8090", &program.to_string());
                Self::caddy(&folder, &site, "\nshop.example {")
            }
        }
    }

    /// Its processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        machine::tree(self.child.id())
    }

    fn nginx(
        programs: &Programs,
        folder: &Path,
        site: &str,
        (shipped, program): (&str, SocketAddr),
    ) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("nginx: {error}");
        let (address, here) = (free_address().map_err(fault)?, folder.display());
        let ours = |line: &&str| !line.contains("ssl_certificate") && !line.contains("[::]:443");
        let site: Vec<&str> = site.lines().filter(ours).collect();
        let site = site
            .join("\n")
            .replace(shipped, &program.to_string())
            .replace("/var/lib/nginx/farebox", &format!("{here}/bodies"))
            .replace(
                "listen 443 ssl http2",
                &format!("listen {address} backlog=4096"),
            );
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {here}/{name};\n"))
            .concat();
        let whole = format!(
            "daemon off; worker_processes 1; worker_rlimit_nofile 16384; error_log stderr crit; pid {here}/pid;\n\
             events {{ worker_connections 8192; }}\nhttp {{ access_log off;\n{temporary}{site}\n}}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, whole).map_err(fault)?;
        let mut command = Command::new(&programs.nginx);
        command
            .args(["-e", "stderr", "-p"])
            .arg(folder)
            .arg("-c")
            .arg(file);
        Self::running(&mut command, "nginx", address)
    }

    fn caddy(folder: &Path, site: &str, host: &str) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("caddy: {error}");
        let address = free_address().map_err(fault)?;
        let version = Command::new("caddy")
            .arg("version")
            .output()
            .map_err(fault)?;
        let old = String::from_utf8_lossy(&version.stdout)
            .trim_start_matches('v')
            .starts_with("2.6.2");
        // For every host, as the only site on its port; by name it would answer others with nothing.
        let plain = format!("\nhttp://:{} {{\n\tbind {}", address.port(), address.ip());
        let mut site = site.replace(host, &plain).replacen(
            "{\n\tservers",
            "{\n\tadmin off\n\tauto_https off\n\tservers",
            1,
        );
        if old {
            // As the file says.
            site = site.replace(
                "request_buffers 256KB",
                "buffer_requests\n\t\t\tmax_buffer_size 256KB",
            );
        }
        let file = folder.join("Caddyfile");
        fs::write(&file, site).map_err(fault)?;
        let mut command = Command::new("caddy");
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(file);
        for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, folder);
        }
        Self::running(command.stderr(Stdio::null()), "caddy", address)
    }

    fn running(command: &mut Command, name: &str, address: SocketAddr) -> Result<Self, String> {
        // To nginx this variable is a list of sockets.
        let child = command.env_remove("NGINX").stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("{name}: {error}"))?;
        let proxy = Self { child, address };
        let begun = Instant::now();
        while std::net::TcpStream::connect(address).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err(format!("{name} does not answer"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(proxy)
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        // Its workers end with it only when it is asked to stop.
        if let Some(process) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

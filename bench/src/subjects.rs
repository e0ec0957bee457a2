//! The subjects: how each is configured, started on its own CPU, and stopped.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::answers::{BenchFamily, PRICES, SLUG, UPSTREAM_MODEL};
use crate::books::{self, BenchBooks};
use crate::machine::{BOTH, SUBJECTS, tree};

/// How long a subject may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// One row of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nobody: the generator asks the upstream itself.
    Direct,
    Nginx,
    Bare,
    Onwards,
    /// As it is installed, but without a line in the log for each request: nobody else here writes one.
    Farebox,
    /// The same, built by how often its functions run.
    Profiled,
    /// The same as [`Subject::Farebox`] with `--durability strict`.
    Strict,
    /// The same as [`Subject::Farebox`] with its log.
    Logging,
    /// The same as [`Subject::Farebox`] for half a minute.
    Lasting,
    /// The same with two workers on both CPUs, one of them the generator's.
    TwoWorkers,
}

impl Subject {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Bare => "bare",
            Self::Onwards => "onwards",
            Self::Farebox => "farebox",
            Self::Profiled => "farebox with a profile",
            Self::Strict => "farebox strict",
            Self::Logging => "farebox with log",
            Self::Lasting => "farebox for 30 s",
            Self::TwoWorkers => "farebox on two CPUs",
        }
    }

    pub(crate) const fn is_farebox(self) -> bool {
        matches!(
            self,
            Self::Farebox
                | Self::Profiled
                | Self::Strict
                | Self::Logging
                | Self::Lasting
                | Self::TwoWorkers
        )
    }

    /// The CPUs that it gets.
    const fn cpus(self) -> &'static str {
        match self {
            Self::TwoWorkers => BOTH,
            _ => SUBJECTS,
        }
    }

    /// Where it serves a family, if it does.
    pub(crate) const fn path(self, family: BenchFamily) -> Option<&'static str> {
        match family {
            BenchFamily::Messages | BenchFamily::Embeddings if matches!(self, Self::Onwards) => {
                None
            }
            BenchFamily::Messages if self.is_farebox() => Some("/native/v1/messages"),
            _ => Some(family.path()),
        }
    }

    /// The model's name in its answers: a gateway that renames puts the customers' name back.
    pub(crate) const fn answers_as(self, family: BenchFamily) -> &'static str {
        if self.is_farebox() {
            family.slug()
        } else {
            family.upstream_model()
        }
    }
}

/// The programs, and a folder for files.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) folder: PathBuf,
    pub(crate) nginx: PathBuf,
    pub(crate) onwards: Option<PathBuf>,
    pub(crate) farebox: PathBuf,
    pub(crate) profiled: Option<PathBuf>,
    pub(crate) upstream: SocketAddr,
    /// A ledger with funded keys, copied for each start.
    pub(crate) ledger: PathBuf,
}

/// A subject that runs. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct RunningSubject {
    name: &'static str,
    pub(crate) address: SocketAddr,
    /// Its processes.
    pub(crate) processes: Vec<u32>,
    pub(crate) books: Option<BenchBooks>,
    log: PathBuf,
    child: Option<Child>,
}

impl Programs {
    /// Whether a subject is installed.
    pub(crate) const fn have(&self, subject: Subject) -> bool {
        match subject {
            Subject::Onwards => self.onwards.is_some(),
            Subject::Profiled => self.profiled.is_some(),
            Subject::Direct
            | Subject::Nginx
            | Subject::Bare
            | Subject::Farebox
            | Subject::Strict
            | Subject::Logging
            | Subject::Lasting
            | Subject::TwoWorkers => true,
        }
    }

    /// Starts a subject afresh and waits until it answers.
    pub(crate) fn start(&self, subject: Subject, keys: usize) -> Result<RunningSubject, String> {
        if subject == Subject::Direct {
            let (address, log) = (self.upstream, PathBuf::new());
            return Ok(RunningSubject {
                name: subject.name(),
                address,
                processes: Vec::new(),
                books: None,
                log,
                child: None,
            });
        }
        let folder = self.folder.join(subject.name().replace(' ', "-"));
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        let prepared = self.prepare(subject, &folder, address);
        let command = prepared.map_err(|error| format!("{}: {error}", folder.display()))?;
        let books = subject.is_farebox().then(|| BenchBooks {
            ledger: folder.join("farebox.db"),
            answers: vec![0; keys],
        });
        let mut running = spawn(command, subject.cpus(), &folder, subject.name(), address)?;
        running.books = books;
        running.wait_until_it_answers()?;
        Ok(running)
    }

    /// The gateway of a row.
    fn program(&self, subject: Subject) -> &Path {
        let profiled = self.profiled.as_ref();
        profiled
            .filter(|_| subject == Subject::Profiled)
            .unwrap_or(&self.farebox)
    }

    /// A new folder with its files, and the command that serves at this address.
    fn prepare(&self, subject: Subject, folder: &Path, address: SocketAddr) -> io::Result<Command> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        match subject {
            Subject::Direct | Subject::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["bare", &address.to_string(), &self.upstream.to_string()]);
                Ok(command)
            }
            Subject::Nginx => {
                fs::write(
                    folder.join("nginx.conf"),
                    nginx_conf(address, self.upstream),
                )?;
                let mut command = Command::new(&self.nginx);
                command
                    .arg("-p")
                    .arg(folder)
                    .args(["-e", "stderr", "-c", "nginx.conf"]);
                // Else glibc gives the memory of large bodies back after each request, in some starts and not in others.
                command
                    .env("MALLOC_MMAP_THRESHOLD_", "33554432")
                    .env("MALLOC_TRIM_THRESHOLD_", "1073741824");
                command.env("MALLOC_TOP_PAD_", "16777216");
                Ok(command)
            }
            Subject::Onwards => {
                let target = json!({"url": format!("http://{}", self.upstream), "onwards_model": UPSTREAM_MODEL});
                let config =
                    json!({"targets": {SLUG: target}, "http_pool": {"max_idle_per_host": 2_000}});
                fs::write(folder.join("config.json"), config.to_string())?;
                let mut command =
                    Command::new(self.onwards.as_deref().unwrap_or(Path::new("onwards")));
                command
                    .arg("-f")
                    .arg(folder.join("config.json"))
                    .args(["-p", &address.port().to_string()]);
                command.args([
                    "--metrics-port",
                    &free_address()?.port().to_string(),
                    "--shutdown-delay-secs",
                    "0",
                ]);
                command.args(["--shutdown-timeout-secs", "1"]);
                Ok(command)
            }
            Subject::Farebox
            | Subject::Profiled
            | Subject::Strict
            | Subject::Logging
            | Subject::Lasting
            | Subject::TwoWorkers => {
                let ledger = folder.join("farebox.db");
                books::copy(&self.ledger, &ledger).map_err(io::Error::other)?;
                let addresses = (address, free_address()?);
                let mut command =
                    self.gateway(self.program(subject), folder, &ledger, addresses)?;
                let strict = subject == Subject::Strict;
                command.args(["--durability", if strict { "strict" } else { "prompt" }]);
                if subject != Subject::Logging {
                    command.env("FAREBOX_LOG", "warn");
                }
                Ok(command)
            }
        }
    }

    /// `farebox serve` for this ledger. Its files are in a directory of their own, as the systemd unit has them.
    pub(crate) fn farebox(
        &self,
        folder: &Path,
        ledger: &Path,
        address: SocketAddr,
        admin: SocketAddr,
    ) -> io::Result<Command> {
        self.gateway(&self.farebox, folder, ledger, (address, admin))
    }

    fn gateway(
        &self,
        program: &Path,
        folder: &Path,
        ledger: &Path,
        (address, admin): (SocketAddr, SocketAddr),
    ) -> io::Result<Command> {
        let config = folder.join("config");
        fs::create_dir_all(&config)?;
        let (catalog, routes) = (config.join("catalog.toml"), config.join("routes.toml"));
        fs::write(&catalog, catalog_toml())?;
        fs::write(&routes, routes_toml(self.upstream))?;
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg("--catalog")
            .arg(catalog)
            .arg("--routes")
            .arg(routes)
            .arg("--ledger")
            .arg(ledger);
        command.args([
            "--listen",
            &address.to_string(),
            "--admin-listen",
            &admin.to_string(),
        ]);
        Ok(command)
    }

    /// Has the gateway's own command recompute every balance, charge and chain.
    pub(crate) fn verify(&self, ledger: &Path) -> Result<(), String> {
        let output = Command::new(&self.farebox)
            .arg("--ledger")
            .arg(ledger)
            .args(["ledger", "verify"])
            .env_clear()
            .output();
        let output = output.map_err(|error| format!("{}: {error}", self.farebox.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(format!(
            "farebox ledger verify: {}\n{}",
            output.status,
            String::from_utf8_lossy(&said)
        ))
    }
}

/// Starts a program on these CPUs. The kernel ends it when this process ends, for whatever reason.
pub(crate) fn spawn(
    command: Command,
    cpus: &str,
    folder: &Path,
    name: &'static str,
    address: SocketAddr,
) -> Result<RunningSubject, String> {
    let log = folder.join("log");
    let program = command.get_program().to_owned();
    let started = || -> io::Result<Child> {
        let file = File::create(&log)?;
        let mut pinned = Command::new("taskset");
        pinned
            .args(["-c", cpus, "setpriv", "--pdeathsig", "TERM"])
            .arg(&program)
            .args(command.get_args());
        pinned
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("RUST_LOG", "warn");
        pinned.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        pinned
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
    };
    let child =
        started().map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    let processes = vec![child.id()];
    Ok(RunningSubject {
        name,
        address,
        processes,
        books: None,
        log,
        child: Some(child),
    })
}

impl RunningSubject {
    /// Waits until it answers, whatever it says: one process may listen before another is there to serve.
    pub(crate) fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        while !answers(self.address) {
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || begun.elapsed() > PATIENCE {
                return Err(self.explain(&format!("does not serve ({ended:?})")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.processes = self
            .child
            .iter()
            .flat_map(|child| tree(child.id()))
            .collect();
        Ok(())
    }

    /// A fault with whose it is, and what it said last.
    pub(crate) fn explain(&self, fault: &str) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines
            .get(lines.len().saturating_sub(12)..)
            .unwrap_or_default()
            .join("\n  ");
        format!("{}: {fault}\nits log ends:\n  {last}", self.name)
    }

    /// Remembers answers that its customers got.
    pub(crate) fn count(&mut self, answers: &[u64]) {
        for (sum, more) in self
            .books
            .iter_mut()
            .flat_map(|books| &mut books.answers)
            .zip(answers)
        {
            *sum += more;
        }
    }

    /// Ends it in order.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(_)) => return Ok(()),
                Ok(None) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(2))
                }
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(self.explain("does not end"));
                }
            }
        }
    }
}

impl Drop for RunningSubject {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let patience = stream.set_read_timeout(Some(PATIENCE));
    let asked = patience
        .and_then(|()| stream.write_all(b"GET /bench/served HTTP/1.1\r\nhost: bench\r\n\r\n"));
    asked.and_then(|()| stream.read_exact(&mut [0; 8])).is_ok()
}

/// An address nobody listens on now.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn nginx_conf(address: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "daemon off; worker_processes 1; worker_rlimit_nofile 16384; error_log stderr warn; pid nginx.pid;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_buffer_size 16m; proxy_max_temp_file_size 0; client_max_body_size 32m;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  keepalive_requests 1000000000;
  upstream bench {{ server {upstream}; keepalive 2048; keepalive_requests 1000000000; }}
  server {{
    listen {address} backlog=4096;
    location / {{
      proxy_pass http://bench; proxy_http_version 1.1; proxy_set_header Connection \"\";
    }}
  }}
}}
"
    )
}

fn catalog_toml() -> String {
    let prices: Vec<String> = PRICES
        .iter()
        .map(|(kind, price)| format!("{kind} = \"{price}\""))
        .collect();
    let vectors = BenchFamily::Embeddings.slug();
    format!(
        "[[model]]
model = \"Bench\"
slug = \"{SLUG}\"
provider = \"Bench\"
best_path = \"chat\"
best_environments = [\"benchmarks\"]
price = {{ {} }}
capabilities = [\"vision\", \"tools\", \"streaming\"]
limits = {{ context = 2_000_000, max_output = 64_000 }}

[[model]]
model = \"Bench vectors\"
slug = \"{vectors}\"
provider = \"Bench\"
best_path = \"embeddings\"
best_environments = [\"benchmarks\"]
price = {{ {} }}
capabilities = [\"embeddings\"]
limits = {{ context = 8_192 }}
",
        prices.join(", "),
        prices[0]
    )
}

fn routes_toml(upstream: SocketAddr) -> String {
    let vectors = BenchFamily::Embeddings;
    format!(
        "[provider.bench]
base_url = \"http://{upstream}/v1\"
speaks = [\"chat\", \"messages\", \"embeddings\"]

[[route]]
slug = \"{SLUG}\"
targets = [ {{ provider = \"bench\", model = \"{UPSTREAM_MODEL}\" }} ]

[[route]]
slug = \"{}\"
targets = [ {{ provider = \"bench\", model = \"{}\" }} ]
",
        vectors.slug(),
        vectors.upstream_model()
    )
}

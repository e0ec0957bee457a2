//! What `deploy/package` makes of the programs under test: what is in the packages, and how they are installed, started, upgraded and
//! removed, in a folder that stands for the machine.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::process::Served;
use crate::support::skip::{installed, list};

const VERSION: &str = env!("CARGO_PKG_VERSION");
use crate::support::HOME;

/// What a command printed; it must succeed.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

fn at(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the file, from this folder on, that begins and ends so.
fn named(folder: &Path, begin: &str, end: &str) -> PathBuf {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let wanted = |name: &str| name.starts_with(begin) && name.ends_with(end);
    let mut found = names.filter(|file| wanted(file.file_name().to_str().unwrap()));
    found
        .next()
        .unwrap_or_else(|| panic!("no {begin}…{end}"))
        .path()
}

/// Makes the packages, without compressing what is read once.
fn make(folder: &Path) {
    let programs = Path::new(env!("CARGO_BIN_EXE_farebox")).parent().unwrap();
    let mut package = at(Path::new(HOME), "deploy/package");
    package.arg("--binaries").arg(programs);
    package.arg("--to").arg(folder);
    said(package.env("DPKG_DEB_COMPRESSOR_TYPE", "none"));
    said(at(folder, "sha256sum").args(["--check", "--strict", "SHA256SUMS"]));
}

/// Whether this machine can make packages, and install them for nobody but a test.
fn possible() -> bool {
    let beside = |program: &str| Path::new(env!("CARGO_BIN_EXE_farebox")).with_file_name(program);
    let built = ["farebox-console", "farebox-shop"]
        .iter()
        .all(|program| beside(program).exists());
    if !built {
        list("packages: cargo build makes the console and the shop");
    }
    built
        && ["dpkg-deb", "objdump", "systemd-sysusers"]
            .iter()
            .all(|program| installed(program, "packages"))
}

/// The programs, their manual and completions, the unit and the samples, below any folder.
fn the_tarball_is_whole(folder: &Path) -> PathBuf {
    let place = folder.join("local");
    fs::create_dir(&place).unwrap();
    let archive = named(folder, &format!("farebox-{VERSION}-"), "-linux.tar.gz");
    let archive = archive.to_str().unwrap();
    said(at(&place, "tar").args(["--strip-components=1", "-xzf", archive]));
    for program in ["farebox", "farebox-console", "farebox-shop"] {
        let version = said(Command::new(place.join("bin").join(program)).arg("--version"));
        assert!(
            version.starts_with(&format!("{program} {VERSION}")),
            "{version}"
        );
    }
    let share = place.join("share");
    for (page, word) in [
        ("farebox", "FAREBOX_LEDGER"),
        ("farebox-keys-create", "reference"),
        ("farebox-ledger-backup", "verified copy"),
        ("farebox-console", "read\\-only"),
        ("farebox-shop", "sell token"),
    ] {
        let page = said(at(&share, "zcat").arg(format!("man/man1/{page}.1.gz")));
        assert!(
            page.contains(".TH farebox") && page.contains(word),
            "{page}"
        );
        assert!(!page.contains("manual FOLDER"), "{page}");
    }
    for file in [
        "bash-completion/completions/farebox",
        "zsh/site-functions/_farebox-console",
        "fish/vendor_completions.d/farebox.fish",
        "doc/farebox/examples/Caddyfile",
        "doc/farebox/examples/shop.toml",
        "doc/farebox/operations.md",
    ] {
        assert!(!text(share.join(file)).is_empty(), "{file}");
    }
    let unit = text(place.join("lib/systemd/system/farebox.service"));
    assert!(unit.starts_with("[Unit]\n") && unit.contains("\nExecStart=/usr/local/bin/farebox "));
    place
}

/// Each crate in the programs, with what it may be checked by.
fn the_bill_of_materials_names_every_crate(folder: &Path) {
    let written = text(named(folder, "farebox-", ".cdx.json"));
    let document: Value = serde_json::from_str(&written).unwrap();
    let lock: toml::Table = toml::from_str(&text(Path::new(HOME).join("Cargo.lock"))).unwrap();
    let locked = lock["package"].as_array().unwrap();
    let components = document["components"].as_array().unwrap();
    for component in components {
        let licence = component["licenses"][0]["expression"].as_str().unwrap();
        assert!(!licence.is_empty() && !licence.contains('/'), "{component}");
        let is_locked = locked.iter().any(|package| {
            let sum = package.get("checksum").and_then(toml::Value::as_str);
            package["name"].as_str() == component["name"].as_str()
                && package["version"].as_str() == component["version"].as_str()
                && sum == component["hashes"][0]["content"].as_str()
        });
        assert!(is_locked, "{component}");
    }
    let has = |name: &str| components.iter().any(|component| component["name"] == name);
    assert!(
        ["tokio", "libsqlite3-sys", "ratatui", "farebox-ledger"]
            .iter()
            .all(|name| has(name))
    );
    assert!(!has("proptest"), "what only tests use is not shipped");
}

/// A folder that stands for a Debian machine.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn new(root: PathBuf) -> Self {
        for folder in ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.trim_start_matches('/'))
    }

    /// Debian's own installer, on this folder: its scripts get the folder as `DPKG_ROOT`.
    fn dpkg(&self, arguments: &[&str]) -> String {
        let mut dpkg = Command::new("dpkg");
        dpkg.env_clear()
            .env("LC_ALL", "C")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        dpkg.arg("--root").arg(&self.root);
        said(
            dpkg.args([
                "--log=/dev/null",
                "--force-script-chrootless",
                "--force-depends",
            ])
            .args(arguments),
        )
    }

    /// User and group of the gateway, as the package made them.
    fn user(&self) -> (u32, u32) {
        let passwd = text(self.path("etc/passwd"));
        let line = passwd.lines().find(|line| line.starts_with("farebox:"));
        let fields: Vec<&str> = line
            .expect("the package makes the user")
            .split(':')
            .collect();
        (fields[2].parse().unwrap(), fields[3].parse().unwrap())
    }

    /// The program with the unit's settings, as the unit's user; their paths are those of the folder.
    fn program(&self, arguments: &[&str]) -> Command {
        let (user, group) = self.user();
        let mut program = Command::new(self.path("usr/bin/farebox"));
        program.env_clear().uid(user).gid(group).args(arguments);
        program.current_dir(self.path(&self.of_unit("WorkingDirectory")));
        for line in text(self.path(&self.of_unit("EnvironmentFile"))).lines() {
            match line.split_once('=') {
                Some((name, value)) if !line.starts_with('#') && value.starts_with('/') => {
                    program.env(name, self.path(value));
                }
                Some((name, value)) if !line.starts_with('#') => {
                    program.env(name, value);
                }
                _ => {}
            }
        }
        program
    }

    fn of_unit(&self, name: &str) -> String {
        let unit = text(self.path("usr/lib/systemd/system/farebox.service"));
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap().to_owned()
    }

    /// The unit's command, with a service manager that listens.
    fn start(&self) -> Served {
        let command = self.of_unit("ExecStart");
        let mut words = command.split(' ');
        assert_eq!(words.next(), Some("/usr/bin/farebox"));
        let shop = self.path("usr/share/doc/farebox/examples/farebox-shop.service");
        assert!(text(shop).contains("\nExecStart=/usr/bin/farebox-shop "));
        let (user, group) = self.user();
        let socket = self.path("notify");
        let _ = fs::remove_file(&socket);
        let manager = UnixDatagram::bind(&socket).unwrap();
        chown(&socket, Some(user), Some(group)).unwrap();
        let mut program = self.program(&words.collect::<Vec<_>>());
        let served = Served::start_or_end(program.env("NOTIFY_SOCKET", socket)).unwrap();
        let mut told = [0; 64];
        let length = manager.recv(&mut told).unwrap();
        assert!(told[..length].starts_with(b"READY=1"));
        served
    }
}

/// From an empty machine to a paid answer, a newer package under a gateway that runs, and away again.
async fn the_debian_package_lives(folder: &Path) {
    let machine = Machine::new(folder.join("machine"));
    let package = named(folder, &format!("farebox_{VERSION}_"), ".deb");
    let said_first = machine.dpkg(&["--install", package.to_str().unwrap()]);
    assert!(
        said_first.contains("farebox init") && said_first.contains("--new-ledger"),
        "{said_first}"
    );
    let (user, group) = machine.user();
    for (path, mode, owner) in [
        ("etc/farebox", 0o750, 0),
        ("etc/farebox/secrets", 0o750, 0),
        ("etc/farebox/farebox.env", 0o640, 0),
        ("var/lib/farebox", 0o700, user),
    ] {
        let found = fs::metadata(machine.path(path)).unwrap();
        let found = (found.mode() & 0o777, found.uid(), found.gid());
        assert_eq!(found, (mode, owner, group), "{path}");
    }
    said(at(&machine.path("etc/farebox"), env!("CARGO_BIN_EXE_farebox")).arg("init"));
    let command = machine.of_unit("ExecStart");
    let command: Vec<&str> = command.split(' ').skip(1).collect();
    let refused = machine.program(&command).output().unwrap();
    assert_eq!(refused.status.code(), Some(78), "there is no ledger yet");
    let create = [
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "t",
        "--balance",
        "5",
    ];
    let made = said(
        machine
            .program(&create)
            .args(["--reference", "r", "--json"]),
    );
    let made: Value = serde_json::from_str(&made).unwrap();
    let secret = made["secret"].as_str().unwrap();
    let settings = machine.path("etc/farebox/farebox.env");
    let edited = text(settings.clone()).replace("FAREBOX_PUBLIC_URL=", "#FAREBOX_PUBLIC_URL=");
    fs::write(&settings, &edited).unwrap();

    let mut served = machine.start();
    served.ask("sim-chat", secret).await.unwrap();
    let newer = newer(folder, &package);
    machine.dpkg(&["--install", newer.to_str().unwrap()]);
    assert!(
        machine
            .dpkg(&["--status", "farebox"])
            .contains("\nVersion: 99\n")
    );
    assert_eq!(
        text(settings.clone()),
        edited,
        "the operator's settings stay"
    );
    served.ask("sim-chat", secret).await.unwrap();
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    let mut served = machine.start();
    served.ask("sim-chat", secret).await.unwrap();
    served.signal("TERM");
    served.ended();

    machine.dpkg(&["--remove", "farebox"]);
    assert!(!machine.path("usr/bin/farebox").exists() && settings.exists());
    let said_last = machine.dpkg(&["--purge", "farebox"]);
    assert!(said_last.contains("the ledger stays"), "{said_last}");
    assert!(!settings.exists());
    assert!(machine.path("var/lib/farebox/farebox.db").exists());
    assert!(machine.path("etc/farebox/routes.toml").exists());
}

/// The same package under a later version.
fn newer(folder: &Path, package: &Path) -> PathBuf {
    let (tree, newer) = (folder.join("tree"), folder.join("newer.deb"));
    said(
        Command::new("dpkg-deb")
            .arg("--raw-extract")
            .args([package, &tree]),
    );
    let control = tree.join("DEBIAN/control");
    let older = text(control.clone());
    fs::write(
        control,
        older.replace(&format!("Version: {VERSION}\n"), "Version: 99\n"),
    )
    .unwrap();
    let mut build = Command::new("dpkg-deb");
    build.args(["-Znone", "--root-owner-group", "--build"]);
    said(build.args([&tree, &newer]));
    newer
}

#[tokio::test]
async fn packages_are_made_installed_started_upgraded_and_removed() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Others than its owner pass through it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    make(folder.path());
    the_bill_of_materials_names_every_crate(folder.path());
    let local = the_tarball_is_whole(folder.path());
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return list("the installation of packages: only root installs them");
    }
    the_debian_package_lives(folder.path()).await;
    the_container_serves(folder.path(), &local).await;
}

/// What the container file says, run where nothing is but the programs, their libraries and their folders.
async fn the_container_serves(folder: &Path, local: &Path) {
    let container = Container::new(folder.join("container"), local);
    let command: Vec<String> = container.of_file("CMD ");
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let refused = container.command(&command).output().unwrap();
    assert_eq!(refused.status.code(), Some(78), "there is no ledger yet");
    let made = container.command(&["keys", "create", "--new-ledger", "--label", "t"]);
    let mut made = made;
    said(made.args(["--balance", "5", "--reference", "r"]));
    let mut served = Served::start_or_end(&mut container.command(&command)).unwrap();
    let port = served.admin.rsplit(':').next().unwrap().to_owned();
    let check = container.of_file("HEALTHCHECK ");
    let asked = || {
        let mut asked = container.command(&[]);
        // Behind the entry point's program, which Docker does not put before a health command.
        asked
            .args(&check[1..])
            .env("FAREBOX_ADMIN_LISTEN", format!("0.0.0.0:{port}"));
        asked.output().unwrap()
    };
    assert_eq!(check[0], "/usr/local/bin/farebox");
    assert_eq!(asked().status.code(), Some(0));
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    let health = asked();
    let said = String::from_utf8_lossy(&health.stderr).into_owned();
    assert!(
        health.status.code() == Some(1) && said.contains("no gateway answers"),
        "{said}"
    );
}

struct Container {
    root: PathBuf,
    file: String,
}

impl Container {
    fn new(root: PathBuf, local: &Path) -> Self {
        let file = text(Path::new(HOME).join("deploy/Dockerfile"));
        for folder in ["usr/local", "etc/farebox", "var/lib/farebox", "tmp"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        chown(root.join("var/lib/farebox"), Some(65_532), Some(65_532)).unwrap();
        fs::rename(local.join("bin"), root.join("usr/local/bin")).unwrap();
        for name in ["catalog.toml", "routes.toml"] {
            fs::copy(
                Path::new(HOME).join(name),
                root.join("etc/farebox").join(name),
            )
            .unwrap();
        }
        let libraries = said(Command::new("ldd").arg(root.join("usr/local/bin/farebox")));
        for library in libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            let place = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(library, place).unwrap();
        }
        Self { root, file }
    }

    /// The words of an instruction that ends with a list of them.
    fn of_file(&self, instruction: &str) -> Vec<String> {
        let line = self
            .file
            .lines()
            .rfind(|line| line.starts_with(instruction));
        let list = line.unwrap().split_once('[').unwrap().1;
        serde_json::from_str(&format!("[{list}")).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("/usr/sbin/chroot");
        let user = self
            .file
            .lines()
            .find_map(|line| line.strip_prefix("USER "))
            .unwrap();
        command
            .env_clear()
            .arg(format!("--userspec={user}"))
            .arg(&self.root);
        command.args(self.of_file("ENTRYPOINT ")).args(arguments);
        let words = self.file.split_whitespace();
        let settings = words.filter_map(|word| word.split_once('='));
        command.envs(settings.filter(|(name, _)| name.starts_with("FAREBOX_")));
        command
    }
}

/// The tree as git knows it, with what is not committed yet.
fn copy_tree(place: &Path) {
    fs::create_dir_all(place).unwrap();
    let copy = format!("git -C '{HOME}' ls-files -z | tar -C '{HOME}' --null -T - -c | tar -x");
    said(at(place, "bash").args(["-o", "pipefail", "-c", &copy]));
}

/// Two builds in different places, from nothing, with the real profile: half an hour on two CPUs.
#[test]
fn the_same_commit_gives_the_same_bytes() {
    if std::env::var_os("FAREBOX_FULL").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sums = ["here", "some/where/else"].map(|place| {
        let place = folder.path().join(place);
        copy_tree(&place);
        let mut package = at(&place, "deploy/package");
        package
            .env("FAREBOX_COMMIT", "0123456789ab")
            .env("SOURCE_DATE_EPOCH", "1700000000");
        said(&mut package);
        let program = place.join("target/package/build/programs/farebox");
        let version = said(at(&place, program.to_str().unwrap()).arg("--version"));
        assert_eq!(version, format!("farebox {VERSION} (0123456789ab)\n"));
        text(place.join("target/package/SHA256SUMS"))
    });
    assert_eq!(sums[0], sums[1]);
}

/// What `cli/build.rs` tells about a folder, in a profile, with these settings.
fn version(script: &Path, folder: &Path, profile: &str, commit: &str) -> String {
    let mut built = at(folder, script.to_str().unwrap());
    built
        .env("CARGO_MANIFEST_DIR", folder)
        .env("CARGO_PKG_VERSION", "1.2.3");
    built.env("PROFILE", profile).env("FAREBOX_COMMIT", commit);
    let told = said(&mut built);
    let version = told
        .lines()
        .find_map(|line| line.strip_prefix("cargo:rustc-env=FAREBOX_VERSION="));
    version.unwrap().to_owned()
}

#[test]
fn a_release_names_the_commit_that_it_is_built_from() {
    if !installed("git", "the commit in the version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (script, tree) = (folder.path().join("script"), folder.path().join("tree"));
    said(
        at(Path::new(HOME), "rustc")
            .args(["--edition=2024", "cli/build.rs", "-o"])
            .arg(&script),
    );
    fs::create_dir_all(tree.join("inner")).unwrap();
    for file in ["Cargo.lock", "inner/Cargo.lock"] {
        fs::write(tree.join(file), "").unwrap();
    }
    assert_eq!(
        version(&script, &tree, "release", ""),
        "1.2.3",
        "without git"
    );
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        said(at(&tree, "git").args(who).args(arguments))
            .trim()
            .to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message=first"]);
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let clean = format!("1.2.3 ({commit})");
    assert_eq!(version(&script, &tree, "release", ""), clean);
    assert_eq!(version(&script, &tree, "release", "named"), "1.2.3 (named)");
    assert_eq!(version(&script, &tree, "debug", ""), "1.2.3");
    let inner = tree.join("inner");
    assert_eq!(
        version(&script, &inner, "release", ""),
        "1.2.3",
        "another's history"
    );
    fs::write(tree.join("Cargo.lock"), "changed").unwrap();
    assert_eq!(
        version(&script, &tree, "release", ""),
        format!("1.2.3 ({commit}-dirty)")
    );
}

//! What an attacker meets: a gateway of its own, the shop where that is attacked, and the proxy in front of each.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::attackers::{Attacker, Victim};
use super::proxy::RunningProxy;
use super::{KEYS, funds, liar, shop, start};
use crate::books;
use crate::subjects::{Programs, RunningSubject};

/// The programs, until they are dropped.
pub(super) struct Scene {
    gateway: RunningSubject,
    shop: Option<RunningSubject>,
    proxies: Vec<RunningProxy>,
    /// Where customers reach the gateway, and the processor its shop.
    pub(super) of_gateway: SocketAddr,
    pub(super) of_shop: Option<SocketAddr>,
    /// Of the good customer, and of all others.
    pub(super) secrets: Vec<String>,
    ledger: PathBuf,
    programs: Programs,
}

impl Scene {
    /// Starts what this attacker meets.
    pub(super) fn open(programs: &Programs, attacker: &Attacker) -> Result<Self, String> {
        // nginx takes relative paths for relative to its own folder.
        let folder = std::path::absolute(programs.folder.join("attackers"))
            .map_err(|error| error.to_string())?;
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let ledger = folder.join("farebox.db");
        books::make_with(&ledger, KEYS, funds)?;
        let upstream = liar::start().map_err(|error| format!("the upstream: {error}"))?;
        let programs = Programs {
            upstream,
            ..programs.clone()
        };
        let trusted: &[&str] = attacker
            .through
            .map_or(&[], |_| &["--trusted-proxy", "127.0.0.1"]);
        let (gateway, admin) = start(&programs, &folder, &ledger, trusted)?;
        let shop = match attacker.victim {
            Victim::Gateway => None,
            Victim::Shop => Some(shop::start(&programs, &folder, admin, &ledger)?),
        };
        let mut proxies = Vec::new();
        let mut front = |victim, address: SocketAddr| {
            let Some(through) = attacker.through else {
                return Ok::<_, String>(address);
            };
            let proxy = RunningProxy::start(through, victim, (&programs, &folder), address)?;
            let front = proxy.address;
            proxies.push(proxy);
            Ok(front)
        };
        let of_gateway = front(Victim::Gateway, gateway.address)?;
        let shop_at = shop.as_ref().map(|shop| front(Victim::Shop, shop.address));
        Ok(Self {
            of_gateway,
            of_shop: shop_at.transpose()?,
            gateway,
            shop,
            proxies,
            secrets: books::secrets(KEYS),
            ledger,
            programs,
        })
    }

    /// What is attacked, and the page that its forms come from.
    pub(super) fn target(&self) -> (SocketAddr, SocketAddr) {
        let attacked = self.shop.as_ref().unwrap_or(&self.gateway);
        (self.of_shop.unwrap_or(self.of_gateway), attacked.address)
    }

    /// All of its processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        let programs = self.shop.iter().chain([&self.gateway]);
        let programs = programs.flat_map(|program| program.processes.clone());
        let proxies = self.proxies.iter().flat_map(RunningProxy::processes);
        programs.chain(proxies).collect()
    }

    /// Ends all of them, and has the books verified.
    pub(super) fn close(mut self) -> Result<(), String> {
        self.proxies.clear();
        for program in self.shop.iter_mut().chain([&mut self.gateway]) {
            program.stop()?;
        }
        self.programs.verify(&self.ledger)
    }
}

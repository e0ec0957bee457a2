//! The shop of a Farebox gateway: from a stranger with a card to a working key.
//!
//! A program of its own that holds one sell token and keeps nothing: what it must remember travels with the checkout, or is in the
//! ledger under the payment's own name. `file` reads `shop.toml` to `settings`, and `reload` does it again when it is saved; `desk` has the paths and `pages` what they show; `processor` is
//! what is asked of whoever charges cards, and `stripe` and `simulator` are two of them; `preflight` asks both sides before anybody pays, and
//! `reservation` keeps credit for a checkout, and `wishes` answers automatic top-ups and ends of plans; `booking` is what their callbacks do, through
//! `gateway`, the admin API. `docs/selling.md` says how to run it.

mod answer;
mod booking;
mod buyer;
mod checkout;
mod client;
mod currency;
mod desk;
mod file;
mod gateway;
mod lookups;
mod pages;
mod plan_row;
mod preflight;
mod processor;
mod receipts;
mod reload;
mod reservation;
mod settings;
mod signature;
mod simulator;
mod stripe;
mod wishes;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use farebox_door::DoorPath;
use salvo::conn::tcp::TcpAcceptor;
use salvo::fuse::FuseConfig;
use salvo::prelude::{CatchPanic, Server};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use desk::ShopDesk;
use farebox_toml::Diagnostics;
pub use farebox_toml::HiddenText;
pub use file::load;
use gateway::GatewayApi;
pub use preflight::may_open;
use processor::Processor;
use reload::FileWatch;
pub use settings::{CreditOffer, ProcessorSettings, ShopSettings, Storefront};
use simulator::SimulatedProcessor;
use stripe::Stripe;

/// How long running answers get to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest gap in a head or a body, and how long an idle connection lives.
const IDLE: Duration = Duration::from_secs(30);

/// A shop that is bound to its address.
pub struct OpenShop {
    listener: TcpListener,
    desk: Arc<ShopDesk>,
    /// The file whose offers and texts it follows, if it has one.
    watch: Option<FileWatch>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl OpenShop {
    /// Binds the address and prepares everything; nothing is asked of anybody yet. The file that the settings are from is followed.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start(settings: ShopSettings, file: &Path) -> Result<Self, String> {
        let listener = std::net::TcpListener::bind(settings.listen)
            .map_err(|error| format!("cannot listen on {}: {error}", settings.listen))?;
        let watch = FileWatch {
            path: file.to_owned(),
            started: settings.clone(),
        };
        let mut shop = Self::on(listener, settings)?;
        shop.watch = Some(watch);
        Ok(shop)
    }

    /// On an address that is bound already, without a file. Needs a runtime.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn on(listener: std::net::TcpListener, settings: ShopSettings) -> Result<Self, String> {
        let listener = listener
            .set_nonblocking(true)
            .and_then(|()| TcpListener::from_std(listener))
            .map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (id, public_url) = settings.names(address.port());
        let client = client::client()?;
        let api = gateway_of(&client, &settings);
        let processor = processor_of(&client, &settings, (&id, &public_url), address);
        let secret = derived("purchase", &settings.token);
        let desk = ShopDesk::new(settings, (id, public_url), api, processor, secret);
        Ok(Self {
            listener,
            desk: Arc::new(desk),
            watch: None,
            address,
        })
    }

    /// Where buyers reach it.
    pub fn public_url(&self) -> &str {
        &self.desk.public_url
    }

    /// Serves until `stop` ends; running answers end first.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> std::io::Result<()> {
        let acceptor = TcpAcceptor::try_from(self.listener)?;
        let fuse = FuseConfig::default()
            .with_http1_header_timeout(IDLE)
            .with_write_stall_timeout(IDLE)
            .with_request_body_timeout(IDLE);
        let server = Server::new(acceptor).fuse_config(fuse);
        let handle = server.handle();
        let service = desk::door(&self.desk).service().hoop(CatchPanic::new());
        let serving = server.try_serve(service);
        let following = async {
            match self.watch {
                Some(watch) => watch.follow(&self.desk).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(serving);
        tokio::select! {
            ended = &mut serving => ended,
            () = following => Ok(()),
            () = wishes::follow(&self.desk) => Ok(()),
            () = stop => {
                handle.stop_graceful(Some(PATIENCE));
                serving.await
            }
        }
    }
}

/// What is wrong at the gateway and at the processor, and whether the shop that runs already knows its webhook's secret.
///
/// # Errors
/// Why nobody can be asked.
pub async fn ask(settings: &ShopSettings) -> Result<Diagnostics, String> {
    let client = client::client()?;
    let (id, public_url) = settings.names(settings.listen.port());
    let processor = processor_of(&client, settings, (&id, &public_url), settings.listen);
    let api = gateway_of(&client, settings);
    let urls = (settings.gateway_url.as_str(), public_url.as_str());
    let mut found = preflight::findings(&api, &*processor, &settings.storefront, urls).await;
    if settings.processor != ProcessorSettings::Simulated {
        found
            .0
            .extend(preflight::proof(&client, settings.listen).await);
    }
    Ok(found)
}

fn gateway_of(client: &reqwest::Client, settings: &ShopSettings) -> GatewayApi {
    GatewayApi {
        client: client.clone(),
        base: settings.api.clone(),
        token: settings.token.clone(),
    }
}

fn processor_of(
    client: &reqwest::Client,
    settings: &ShopSettings,
    (id, public_url): (&str, &str),
    listens: SocketAddr,
) -> Box<dyn Processor> {
    let client = client.clone();
    match &settings.processor {
        ProcessorSettings::Simulated => Box::new(Arc::new(SimulatedProcessor {
            client,
            secret: derived("simulated processor", &settings.token),
            public_url: public_url.to_owned(),
            webhook: format!("http://{listens}/webhook"),
            subscriptions: std::sync::Mutex::default(),
        })),
        ProcessorSettings::Stripe { api, key, webhook } => Box::new(Stripe {
            client,
            api: api.clone(),
            key: key.clone(),
            webhook: webhook.clone(),
            shop: id.to_owned(),
        }),
    }
}

/// Every path of a shop, with what it takes; the last ones are the simulated processor's.
pub fn paths() -> Vec<DoorPath> {
    let desk = desk::PATHS.iter().map(|(path, _)| *path);
    desk.chain(simulator::PATHS).collect()
}

/// A secret for one purpose: known to nobody else, and the same after a restart.
fn derived(purpose: &str, token: &HiddenText) -> HiddenText {
    let text = format!("farebox {purpose} {}", token.reveal());
    HiddenText::new(hex::encode(Sha256::digest(text.as_bytes())))
}

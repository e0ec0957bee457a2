//! `farebox demo`: the whole product on this machine, without a network: the shipped catalog on simulated models, a temporary
//! ledger, a funded key, and one small paid request on each path family.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use farebox_ledger::{Amount, Key, KeySettings, Ledger, Membership, NewKey, Perform, Secret};
use farebox_protocol::{Classes, Family, RequestRegion, ServiceTier};
use serde_json::Value;

use super::{demo_shop, serve};
use crate::app::{App, Settings};
use crate::args::{Args, DemoOptions};
use crate::output::{self, CommandFailed};
use crate::publish::init;
use crate::{books, http};
use farebox::clock;
use farebox::config::{self, Config, Model, ProcessSecrets, Source};

pub(crate) async fn run(args: &Args, options: &DemoOptions) -> Result<(), CommandFailed> {
    let log = serve::start_logging("warn");
    let place = options.shop.then(demo_shop::place).transpose();
    let place = place.map_err(CommandFailed::refused)?;
    let config = match &place {
        Some((_, at)) => shipped(&demo_shop::catalog(*at)),
        None => shipped(init::CATALOG),
    }?;
    let samples = samples(&config);
    let folder = tempfile::tempdir().map_err(|error| {
        CommandFailed::refused(format!("cannot make a temporary folder: {error}"))
    })?;
    let settings = Settings {
        new_ledger: true,
        durability: args.durability.into(),
        admin_listen: place.as_ref().map(|(_, at)| SocketAddr::new(at.ip(), 0)),
        ..Settings::new(folder.path().join("farebox.db"), free_address(args.listen))
    };
    let app = App::start(&settings, config, Arc::new(log.requests())).await?;
    let (key, secret) = funded_key(args, app.ledger.as_ref(), options.balance.0).await?;
    let (address, base) = (app.address(), app.front.public_url.clone());
    let ledger = Arc::clone(&app.ledger);
    let shop = match place.zip(app.admin_address()) {
        Some((place, admin)) => {
            let shop = demo_shop::open(books::act(args), ledger.as_ref(), place, admin, &base);
            Some(shop.await.map_err(CommandFailed::refused)?)
        }
        None => None,
    };
    let serving = tokio::spawn(app.serve(serve::stop_signal()));

    output::print(&format!(
        "Farebox demo at {base}\nAnswers are simulated; nothing leaves this machine.\n\nKey {} with {} USD.\n",
        key.id, options.balance.0
    ));
    let mut balance = key.customer.account.balance();
    let slugs: Vec<String> = samples.iter().map(|sample| sample.slug.clone()).collect();
    for Sample {
        family,
        slug,
        class,
    } in samples
    {
        let answer = ask(address, family, &slug, &secret, class).await?;
        let after = ledger
            .find_key(key.id)
            .await?
            .map_or(balance, |key| key.customer.account.balance());
        let path = family.protocol().public_path;
        let class = class.map_or_else(String::new, |class| format!("  service_tier {class}"));
        output::print(&format!(
            "POST {path}  {slug}{class}\n  answer   {answer}\n  balance  {balance} → {after} USD"
        ));
        balance = after;
    }
    if let Some(shop) = shop {
        output::print(&demo_shop::way(shop.public_url()));
        tokio::spawn(shop.serve(serve::stop_signal()));
    }
    output::print(&ready_to_paste(&base, secret.reveal(), &slugs));
    serving
        .await
        .map_err(|error| CommandFailed::refused(error.to_string()))?
        .map_err(CommandFailed::refused)
}

/// The address asked for, or a free port if it is taken: a demo should not fail because another program uses the port.
fn free_address(wanted: SocketAddr) -> SocketAddr {
    if TcpListener::bind(wanted).is_ok() {
        return wanted;
    }
    output::note(&format!("{wanted} is in use; taking a free port instead."));
    SocketAddr::new(wanted.ip(), 0)
}

/// This catalog with the routes of this repository, as they were built in.
fn shipped(catalog: &str) -> Result<Config, CommandFailed> {
    let catalog = Source::new("catalog.toml", catalog);
    let routes = Source::new("routes.toml", init::ROUTES);
    config::load(&catalog, &routes, &ProcessSecrets { lenient: false })
        .0
        .ok_or_else(|| CommandFailed::configuration("the shipped files have mistakes"))
}

/// A request of the demo.
struct Sample {
    family: Family,
    slug: String,
    class: Option<&'static str>,
}

impl Sample {
    fn of(model: &Model, class: Option<&'static str>) -> Option<Self> {
        Some(Self {
            family: model.best_path.family()?,
            slug: model.slug.clone(),
            class,
        })
    }
}

/// For each family, the slug served best on its path; and one request in a class, if a model sells it.
fn samples(config: &Config) -> Vec<Sample> {
    let models = &config.catalog.models;
    let best = |family| {
        let mut models = models.iter();
        models.find(|model| model.best_path.family() == Some(family))
    };
    let best = Family::ALL.into_iter().filter_map(best);
    let flex = Classes::of(ServiceTier::Flex, RequestRegion::Global);
    let in_a_class = models
        .iter()
        .find(|model| model.price.class(flex).is_some());
    best.filter_map(|model| Sample::of(model, None))
        .chain(in_a_class.and_then(|model| Sample::of(model, Some("flex"))))
        .collect()
}

async fn funded_key(
    args: &Args,
    ledger: &dyn Ledger,
    balance: Amount,
) -> Result<(Key, Secret), CommandFailed> {
    let id = clock::key_id();
    let secret = Secret::generate(id, clock::random());
    let settings = KeySettings {
        label: "demo".to_owned(),
        ..KeySettings::default()
    };
    let first_credit = Some((balance, "demo".to_owned()));
    let key = ledger
        .perform(NewKey {
            within: Membership::default(),
            id,
            secret: secret.hash(),
            settings,
            first_credit,
            purse: None,
            act: books::act(args),
        })
        .await?;
    Ok((key, secret))
}

/// One small request over a real socket, as a customer would send it.
async fn ask(
    address: SocketAddr,
    family: Family,
    slug: &str,
    secret: &Secret,
    class: Option<&str>,
) -> Result<String, CommandFailed> {
    let protocol = family.protocol();
    let mut body = protocol.write_question(slug, "Say hello to Farebox", 64);
    if let Some(class) = class {
        body = body.replacen('{', &format!("{{\"service_tier\":\"{class}\","), 1);
    }
    let answer = http::post(address, protocol.public_path, Some(secret.reveal()), &body)
        .await
        .map_err(|error| CommandFailed::refused(format!("the gateway did not answer: {error}")))?;
    serde_json::from_str(&answer.body)
        .ok()
        .and_then(|answer: Value| protocol.first_text(&answer).map(str::to_owned))
        .ok_or_else(|| {
            CommandFailed::refused(format!(
                "unexpected answer {}: {}",
                answer.status, answer.body
            ))
        })
}

fn ready_to_paste(base: &str, secret: &str, slugs: &[String]) -> String {
    let usual = |family: usize| slugs.get(family).map(String::as_str).unwrap_or_default();
    let (chat, responses, native) = (usual(0), usual(1), usual(2));
    format!(
        "
Try it (the key lives as long as this demo):

  curl {base}/v1/models -H 'Authorization: Bearer {secret}'

OpenAI-style clients; models {chat} (chat) and {responses} (responses):

  export OPENAI_BASE_URL={base}/v1
  export OPENAI_API_KEY={secret}
  export OPENAI_MODEL={chat}

Native coding clients:

  export ANTHROPIC_BASE_URL={base}/native
  export ANTHROPIC_AUTH_TOKEN={secret}
  export ANTHROPIC_MODEL={native}
  export ANTHROPIC_DEFAULT_OPUS_MODEL={native}
  export ANTHROPIC_DEFAULT_SONNET_MODEL={native}
  export ANTHROPIC_DEFAULT_HAIKU_MODEL={native}

Every other client: farebox setup CLIENT --base-url {base} --key {secret} --model {chat}

  {base}/dashboard shows balance and requests as they change; sign in with the key.

Ctrl-c ends the demo and removes its ledger."
    )
}

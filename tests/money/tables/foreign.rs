//! The same agents at other gateways with budgets: LiteLLM's proxy and `hardcap`, in a Python environment that `FAREBOX_OTHERS` names.
//!
//! `python3 -m venv others && others/bin/pip install 'litellm[proxy]' hardcap 'fakeredis[lua]'`. What they cannot do is said on the page:
//! `hardcap` counts tokens and no dollars; budgets of LiteLLM's keys need its own database, so its budget here is that of a provider.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::world::World;
use crate::support::process::client;

/// How long they may take to start: they are large.
const PATIENCE: Duration = Duration::from_secs(180);

/// Another gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    LiteLlm,
    Hardcap,
}

/// One that runs. Dropping it ends it.
pub(super) struct Foreign {
    pub(super) base: String,
    programs: Vec<Child>,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// What their callers show.
pub(super) const KEY: &str = "sk-of-the-agents";
/// Tokens that a dollar buys in the mix of the agents: measured, 226,000 to 270,000 in four seeds.
const TOKENS_A_DOLLAR: u64 = 243_000;

fn port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Where they are installed, if they are.
pub(super) fn installed() -> Option<PathBuf> {
    std::env::var_os("FAREBOX_OTHERS").map(PathBuf::from)
}

fn litellm(upstream: &str, dollars: u64) -> String {
    let model = |slug: &str| {
        format!(
            "- model_name: {slug}\n  litellm_params:\n    model: openai/upstream-{slug}\n    api_base: {upstream}\n    api_key: x\n    \
             input_cost_per_token: 0.000003\n    output_cost_per_token: 0.000015\n    cache_read_input_token_cost: 0.0000003\n"
        )
    };
    format!(
        "model_list:\n{}{}router_settings:\n  num_retries: 0\n  provider_budget_config:\n    openai:\n      budget_limit: {dollars}\n      \
         time_period: 10d\ngeneral_settings:\n  master_key: {KEY}\n",
        model("plain"),
        model("reasons")
    )
}

fn hardcap(upstream: &str, redis: u16, dollars: u64) -> String {
    let upstream = upstream.trim_end_matches("/v1");
    let total = dollars * TOKENS_A_DOLLAR;
    let route =
        |slug: &str| format!("  {slug}: {{targets: [{{upstream: up, model: upstream-{slug}}}]}}\n");
    format!(
        "redis_url: redis://127.0.0.1:{redis}/0\nforward_tenant_header: false\nupstreams:\n  up: {{kind: openai, api_key_env: UPSTREAM_KEY, base_url: \"{upstream}\", \
         read_timeout_s: 600}}\nroutes:\n{}{}tenants:\n  agents: {{api_keys: [{KEY}], budget: {{window_s: 100000000, total: {total}}}}}\n",
        route("plain"),
        route("reasons")
    )
}

impl Other {
    /// Starts it before the first provider of a world, in that world's time.
    pub(super) async fn start(self, world: &World, venv: &Path, dollars: u64) -> Foreign {
        let (folder, upstream) = (world.folder(), world.providers[0].upstream.base_url());
        let (own, redis) = (port(), port());
        let (text, name) = match self {
            Self::LiteLlm => (litellm(&upstream, dollars), "litellm"),
            Self::Hardcap => (hardcap(&upstream, redis, dollars), "hardcap"),
        };
        let config = folder.join(format!("{name}.yaml"));
        std::fs::write(&config, text).unwrap();
        let mut programs = Vec::new();
        let quiet = |command: &mut Command| {
            let log = std::fs::File::create(folder.join(format!("{name}.log"))).unwrap();
            let errors = log.try_clone().unwrap();
            command
                .stdin(Stdio::null())
                .stdout(log)
                .stderr(errors)
                .spawn()
                .unwrap()
        };
        if self == Self::Hardcap {
            let serve = format!(
                "from fakeredis import TcpFakeServer; TcpFakeServer(('127.0.0.1', {redis}), server_type='redis').serve_forever()"
            );
            programs.push(quiet(
                Command::new(venv.join("bin/python")).args(["-c", &serve]),
            ));
        }
        let mut command = Command::new(venv.join("bin").join(name));
        match self {
            Self::LiteLlm => command.arg("--config"),
            Self::Hardcap => command.args(["serve", "--host", "127.0.0.1", "-c"]),
        };
        command.arg(&config).args(["--port", &own.to_string()]);
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        command.env("UPSTREAM_KEY", "x").envs(world.machine());
        programs.push(quiet(&mut command));
        let foreign = Foreign {
            base: format!("http://127.0.0.1:{own}/v1"),
            programs,
        };
        let ready = match self {
            Self::LiteLlm => format!("http://127.0.0.1:{own}/health/liveliness"),
            Self::Hardcap => format!("http://127.0.0.1:{own}/healthz"),
        };
        let begun = Instant::now();
        while !client()
            .get(&ready)
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            let log = folder.join(format!("{name}.log"));
            assert!(
                begun.elapsed() < PATIENCE,
                "{name} does not start: {}",
                std::fs::read_to_string(log).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        foreign
    }

    /// Its refusals in our words: whether money is gone, or only in use.
    pub(super) fn code(self, text: &str) -> &'static str {
        match self {
            Self::Hardcap if text.contains("budget_busy") => "balance_in_use",
            Self::Hardcap if text.contains("budget_exceeded") => "insufficient_quota",
            Self::LiteLlm if text.to_lowercase().contains("budget") => "insufficient_quota",
            Self::LiteLlm | Self::Hardcap => "",
        }
    }
}

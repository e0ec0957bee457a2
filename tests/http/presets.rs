//! Every preset as `farebox init` writes it, before the strict double of its vendor: callers of all three families in every shape.
//!
//! The outcomes stand in `docs/results/presets.md`; `FAREBOX_BLESS=1 cargo test --test blackbox -- presets` writes the page.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox::config;
use farebox_doubles::{Vendor, VendorRefusal, WIRES, breaking, oddly};
use farebox_protocol::{Family, ReportedUsage};
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::support::answers::{self, folded, take};
use crate::support::pdf::pdf;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{Gateway, TestKey, path, speech_for};

#[path = "preset_shapes.rs"]
mod shapes;

use shapes::{SHAPES, Shape, list};

const WORDS: &str = "one two three";

/// The vendor behind each preset.
const VENDORS: [(&str, Vendor); 19] = [
    ("openai", Vendor::OpenAi),
    ("anthropic", Vendor::Anthropic),
    ("openrouter", Vendor::OpenRouter),
    ("gemini", Vendor::Gemini),
    ("mistral", Vendor::Mistral),
    ("groq", Vendor::Groq),
    ("vllm", Vendor::Vllm),
    ("llama.cpp", Vendor::LlamaCpp),
    ("ollama", Vendor::Ollama),
    ("azure", Vendor::Azure),
    ("deepseek", Vendor::DeepSeek),
    ("xai", Vendor::XAi),
    ("together", Vendor::Together),
    ("fireworks", Vendor::Fireworks),
    ("cerebras", Vendor::Cerebras),
    ("moonshot", Vendor::Moonshot),
    ("qwen", Vendor::Qwen),
    ("lm-studio", Vendor::LmStudio),
    ("sglang", Vendor::SgLang),
];

/// A `kind` names the reference by which its double judges.
#[test]
fn every_preset_cites_what_its_double_cites() {
    for (name, vendor) in VENDORS {
        let reference = &config::preset(name).expect("a preset").reference;
        let wires = WIRES.iter().filter(|wire| wire.vendor == vendor);
        let mut sources = wires
            .flat_map(|wire| wire.all_rules())
            .map(|rule| rule.source);
        assert!(
            sources.any(|source| source.contains(reference.as_str())),
            "{name}: {reference}"
        );
    }
}

/// One service and its files.
struct Service {
    name: &'static str,
    vendor: Vendor,
    slug: String,
    catalog: String,
    routes: String,
}

/// The files of `farebox init`, with the double's address.
fn services(base_url: &str) -> Vec<Service> {
    let placed = |routes: &str| {
        let kept = routes.lines().filter(|line| !line.starts_with("base_url"));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        let (head, tail) = kept.split_once("kind     =").expect("a kind");
        let (kind, tail) = tail.split_once('\n').expect("a line");
        format!("{head}kind     ={kind}\nbase_url = \"{base_url}\"\n{tail}")
    };
    let presets = config::presets().iter().map(|preset| {
        let double = VENDORS.iter().find(|(name, _)| *name == preset.name);
        let (_, vendor) = double.unwrap_or_else(|| panic!("no double of {}", preset.name));
        Service {
            name: &preset.name,
            vendor: *vendor,
            slug: preset.model.slug.clone(),
            catalog: preset.starter_catalog(),
            routes: placed(&preset.starter_routes()),
        }
    });
    presets.collect()
}

/// Answers as this vendor does; an unusual ending is played by the shape's own script.
fn answering(vendor: Vendor) -> Script {
    Script::by(move |seen, _| {
        let reply = speech_for(seen, WORDS);
        if seen.path.ends_with("/chat/completions") && seen.json()["stream"] == true {
            return Reply::events(oddly(vendor, reply.texts())).with_usage(ReportedUsage {
                input: 10,
                output: 3,
                ..ReportedUsage::default()
            });
        }
        reply
    })
}

fn refusing(vendor: Vendor) -> Script {
    let why = "This model's maximum context length is 1000 tokens. However, your messages resulted in 2000 tokens.";
    let refusal = VendorRefusal::said(vendor, 400, why);
    Reply::whole(400, "application/json", refusal.body).into()
}

/// A stream that never ends by itself.
fn endless(vendor: Vendor) -> Script {
    Script::by(move |seen: &Seen, _| {
        let reply = speech_for(seen, &"word ".repeat(50));
        let frames = reply.texts();
        let kept = frames.len() / 2;
        if seen.path.ends_with("/chat/completions") {
            return Reply::events(oddly(vendor, frames)).stall_after(kept);
        }
        Reply::events(frames).stall_after(kept)
    })
}

/// What became of one request, in the words of the page; `Err`: what the real service would have refused, or worse.
async fn outcome(
    gateway: &Gateway,
    upstream: &ScriptedUpstream,
    service: &Service,
    family: Family,
    shape: &Shape,
) -> Result<String, String> {
    let key = gateway.key("5.00").await;
    let body = shape.body(family, &service.slug);
    if let Some(calls) = shape.calls() {
        let asking = Asking {
            gateway,
            upstream,
            service,
            family,
            key: &key,
        };
        return asking.two_turns(shape, body, calls).await;
    }
    let before = upstream.requests().len();
    upstream.follow(match shape.name {
        "left" if stops(gateway) => endless(service.vendor),
        "refused" => refusing(service.vendor),
        _ => answering(service.vendor),
    });
    if shape.name == "left" {
        if let Err(fault) = leave(gateway, &key, family, &body, upstream, before).await {
            return Err(format!("{} {family} left: {fault}", service.name));
        }
        let word = if stops(gateway) {
            "left and charged"
        } else {
            "left, read and charged"
        };
        return Ok(charged(gateway, &key, word).await);
    }
    let answer = gateway.post(path(family), &key, &body).await;
    gateway.settled().await;
    let asked = upstream.requests().len() - before;
    let place = || {
        format!(
            "{} {family} {}: {} {}",
            service.name, shape.name, answer.status, answer.text
        )
    };
    if answer.status == 400 && asked == 0 {
        let error = answer.json()["error"].clone();
        assert!(gateway.charges(&key).await.is_empty(), "{}", place());
        let param = error["param"].as_str().unwrap_or("?");
        return Ok(format!("refused here: `{param}`"));
    }
    if shape.name == "refused" {
        let told = answer.status == 400 && is_free(gateway, &key).await;
        return if told {
            Ok("its refusal, free".to_owned())
        } else {
            Err(place())
        };
    }
    // Bytes of the target's own family pass unchanged, and so does the service's answer to what it does not have.
    let own = family == Family::Chat && matches!(shape.name, "document" | "structured");
    if answer.status == 400 && own && is_free(gateway, &key).await {
        return Ok("refused there, free".to_owned());
    }
    let said = WORDS.split(' ').all(|word| answer.text.contains(word));
    // What a service refuses is known before, and not only when it says so.
    if answer.status != 200 || !said || asked != 1 {
        return Err(place());
    }
    Ok(charged(gateway, &key, "served").await)
}

/// A caller with a conversation of two turns.
struct Asking<'a> {
    gateway: &'a Gateway,
    upstream: &'a ScriptedUpstream,
    service: &'a Service,
    family: Family,
    key: &'a TestKey,
}

impl Asking<'_> {
    /// The first answer calls, or thinks; it goes back as the caller's library keeps it, and the second turn is served.
    async fn two_turns(
        &self,
        shape: &Shape,
        mut body: Value,
        calls: usize,
    ) -> Result<String, String> {
        let vendor = self.service.vendor;
        self.upstream
            .follow(Script::by(move |seen, _| talking(vendor, seen, calls)));
        let before = self.upstream.requests().len();
        let first = self.turn(shape, &body).await?;
        let Some(first) = first else {
            return Ok("refused here".to_owned());
        };
        let turns = body[list(self.family)].as_array_mut().expect("turns");
        let made = take(self.family, turns, &first, "7 degrees");
        if calls == 0 {
            turns.push(serde_json::json!({"role": "user", "content": "And now?"}));
        }
        if made != calls {
            return Err(self.place(shape, &format!("{made} calls in {first}")));
        }
        let second = self
            .turn(shape, &body)
            .await?
            .unwrap_or_default()
            .to_string();
        // A stream's words stand in pieces.
        if !WORDS.split(' ').all(|word| second.contains(word)) {
            return Err(self.place(shape, &second));
        }
        self.gateway.settled().await;
        let charges = self.gateway.charges(self.key).await;
        assert_eq!(charges.len(), 2, "{}", self.place(shape, "charges"));
        let sent = self.upstream.requests();
        let returned = sealed_in(&sent[before + 1].json(), &first);
        Ok(match (calls, returned) {
            (0, true) => "served, thought returned".to_owned(),
            (0, false) => "served".to_owned(),
            _ => "called, result taken".to_owned(),
        })
    }

    /// One answer; `None`: refused before anything was sent.
    async fn turn(&self, shape: &Shape, body: &Value) -> Result<Option<Value>, String> {
        let before = self.upstream.requests().len();
        let answer = self.gateway.post(path(self.family), self.key, body).await;
        if answer.status == 400 && self.upstream.requests().len() == before {
            return Ok(None);
        }
        if answer.status != 200 || self.upstream.requests().len() != before + 1 {
            return Err(self.place(shape, &answer.text));
        }
        Ok(Some(if body["stream"] == true {
            folded(self.family, &answer.text)
        } else {
            answer.json()
        }))
    }

    fn place(&self, shape: &Shape, what: &str) -> String {
        format!(
            "{} {} {}: {what}",
            self.service.name, self.family, shape.name
        )
    }
}

/// Whether a request has the first answer's thought, as its vendor sealed or showed it.
fn sealed_in(request: &Value, first: &Value) -> bool {
    let seals = [
        "/content/0/signature",
        "/output/0/encrypted_content",
        "/choices/0/message/reasoning_content",
        "/choices/0/message/reasoning",
    ];
    let found = seals
        .iter()
        .find_map(|place| first.pointer(place)?.as_str());
    found.is_some_and(|seal| request.to_string().contains(seal))
}

/// A vendor's answer with calls or thoughts, as a stream if one is asked for.
fn talking(vendor: Vendor, seen: &Seen, calls: usize) -> Reply {
    let path = seen.path.split('?').next().unwrap_or_default();
    let mut families = Family::ALL.into_iter();
    let family = families.find(|family| path.ends_with(family.protocol().path));
    let family = family.expect("a family's path");
    let body = seen.json();
    let whole = answers::answer(vendor, family, &body, calls, WORDS);
    if body["stream"] != true {
        return Reply::json(200, &whole);
    }
    let frames = answers::frames(family, &whole);
    Reply::events(if family == Family::Chat {
        oddly(vendor, frames)
    } else {
        frames
    })
}

async fn is_free(gateway: &Gateway, key: &TestKey) -> bool {
    let charges = gateway.charges(key).await;
    charges.iter().all(|charge| charge.amount.picos() == 0)
}

async fn charged(gateway: &Gateway, key: &TestKey, word: &str) -> String {
    gateway.settled().await;
    let charges = gateway.charges(key).await;
    assert_eq!(charges.len(), 1, "{word}");
    assert_eq!(
        gateway.account(key).await.customer.account.held.picos(),
        0,
        "{word}"
    );
    word.to_owned()
}

/// Whether the service stops what is closed. One that doesn't is read to its usage, so that nothing is closed there.
fn stops(gateway: &Gateway) -> bool {
    let config = gateway.front.proxy.config.current();
    let mut models = config.catalog.models.iter();
    models.all(|model| model.route.targets.iter().all(|target| target.stops))
}

/// Reads the first bytes of a stream and leaves.
async fn leave(
    gateway: &Gateway,
    key: &TestKey,
    family: Family,
    body: &Value,
    upstream: &ScriptedUpstream,
    number: usize,
) -> Result<(), String> {
    let sent = gateway
        .client
        .post(format!("{}{}", gateway.base, path(family)))
        .bearer_auth(&key.secret)
        .json(body)
        .send();
    let sent = sent.await.expect("a head");
    if sent.status() != 200 {
        return Err(sent.text().await.unwrap_or_default());
    }
    let mut stream = sent.bytes_stream();
    stream.next().await.expect("a frame").expect("bytes");
    drop(stream);
    if stops(gateway) {
        upstream.closed_by_peer(number).await;
    }
    Ok(())
}

/// What a cell says where nothing is odd: the page leaves it out.
const USUAL: [&str; 3] = ["served", "called, result taken", "its refusal, free"];

fn page(rows: &[(String, Family, Vec<String>)]) -> String {
    let shapes: Vec<&str> = SHAPES.iter().map(|shape| shape.name).collect();
    let mut out = format!(
        "# Every service, every family of callers, every shape of request\n\n\
        Each service as `farebox init --provider …` writes it, before the strict double of its vendor (`tests/doubles/`), which refuses\n\
        what the real service refuses and streams as oddly. Shapes: {}. A shape that is not named was *served*: a complete\n\
        answer, charged once; its calls came, their results were taken; its refusal was free. `thought returned`: the thought of the\n\
        first turn came back in the second. `refused here`: a 400 before anything is held. `refused there`: the service itself has no\n\
        such thing. `left, read`: the service finishes what is closed, so the gateway reads it to its usage.\n\
        `FAREBOX_BLESS=1 cargo test --test blackbox -- presets` writes this page.\n\n\
        | calls | services | what is not simply served |\n|---|---|---|\n",
        shapes.join("; ")
    );
    for family in Family::ALL {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, _, cells) in rows.iter().filter(|(_, of, _)| *of == family) {
            let odd =
                (shapes.iter().zip(cells)).filter(|(_, cell)| !USUAL.contains(&cell.as_str()));
            let odd: Vec<String> = odd
                .map(|(shape, cell)| format!("{shape}: {cell}"))
                .collect();
            let odd = odd.join("; ");
            match groups.iter_mut().find(|(of, _)| *of == odd) {
                Some((_, names)) => names.push(name),
                None => groups.push((odd, vec![name.as_str()])),
            }
        }
        for (odd, names) in groups {
            out.push_str(&format!("| {family} | {} | {odd} |\n", names.join(", ")));
        }
    }
    out
}

/// What a vendor says in the middle of a stream reaches callers of every family as an error of theirs, and the stream does not end
/// as if it were whole.
#[tokio::test]
async fn a_vendor_s_error_inside_a_stream_is_an_error_for_every_family() {
    for number in 0..services("http://127.0.0.1:9/v1").len() {
        let vendor = services("http://127.0.0.1:9/v1").swap_remove(number).vendor;
        let script = Script::by(move |seen: &Seen, _| {
            let frames = speech_for(seen, &"word ".repeat(20)).texts();
            let kept = frames.len() / 2;
            let mut sent = if seen.path.ends_with("/chat/completions") {
                oddly(vendor, frames)
            } else {
                frames
            };
            sent.truncate(kept);
            sent.push(breaking(vendor, &seen.path));
            Reply::events(sent)
        });
        let upstream = ScriptedUpstream::refusing(vendor, script).await;
        let service = services(&upstream.base_url()).swap_remove(number);
        for family in Family::ALL {
            // A target that breaks off for one caller after the other is given a rest.
            let gateway = Gateway::start(&service.catalog, &service.routes).await;
            let key = gateway.key("5.00").await;
            let body = SHAPES[1].body(family, &service.slug);
            let answer = gateway.post(path(family), &key, &body).await;
            let place = format!("{} {family}: {}", service.name, answer.text);
            assert!(answer.text.contains("word"), "{place}");
            assert!(answer.text.contains("\"error\""), "{place}");
            for whole in ["\"stop\"", "message_stop", "response.completed", "[DONE]"] {
                assert!(!answer.text.contains(whole), "{whole} in {place}");
            }
            gateway.settled().await;
            assert_eq!(gateway.charges(&key).await.len(), 1, "{place}");
            gateway.stop().await;
        }
    }
}

/// Azure without `chat_limit`: a reasoning model refuses `max_tokens`, and an effort beside function tools.
#[tokio::test]
async fn a_service_by_hand_gets_what_its_model_takes() {
    let all = services("http://127.0.0.1:9/v1");
    let number = all
        .iter()
        .position(|one| one.name == "azure")
        .expect("azure");
    let upstream = ScriptedUpstream::refusing(Vendor::Azure, answering(Vendor::Azure)).await;
    let service = services(&upstream.base_url()).swap_remove(number);
    let gateway = Gateway::start(&service.catalog, &service.routes).await;
    let key = gateway.key("5.00").await;
    let mut old = crate::support::ask(Family::Chat, &service.slug, false);
    old.as_object_mut()
        .expect("an object")
        .remove("max_completion_tokens");
    old["max_tokens"] = serde_json::json!(100);
    let answer = gateway.post(path(Family::Chat), &key, &old).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(upstream.requests()[0].json()["max_completion_tokens"], 100);
    for family in [Family::Messages, Family::Responses] {
        let mut body = SHAPES[6].body(family, &service.slug);
        body["tools"] = SHAPES[2].body(family, &service.slug)["tools"].clone();
        let answer = gateway.post(path(family), &key, &body).await;
        assert_eq!(answer.status, 200, "{family}: {}", answer.text);
        assert!(answer.header("x-farebox-lost").is_some(), "{family}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn every_preset_serves_every_family_in_every_shape() {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let count = services("http://127.0.0.1:9/v1").len();
    for number in 0..count {
        let vendor = services("http://127.0.0.1:9/v1").swap_remove(number).vendor;
        let upstream = ScriptedUpstream::refusing(vendor, answering(vendor)).await;
        let service = services(&upstream.base_url()).swap_remove(number);
        let gateway = Gateway::start(&service.catalog, &service.routes).await;
        for family in Family::ALL {
            let mut cells = Vec::new();
            for shape in SHAPES {
                match outcome(&gateway, &upstream, &service, family, shape).await {
                    Ok(word) => cells.push(word),
                    Err(fault) => faults.push(fault),
                }
            }
            rows.push((service.name.to_owned(), family, cells));
        }
        gateway.stop().await;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let path = PathBuf::from(crate::support::HOME).join("docs/results/presets.md");
    let page = page(&rows);
    if std::env::var_os("FAREBOX_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/results/presets.md");
    assert_eq!(
        written, page,
        "write it again: FAREBOX_BLESS=1 cargo test --test blackbox -- presets"
    );
}

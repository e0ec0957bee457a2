//! The provider that bills, in a time of its own: queues, prompt caches, tiers, hidden output, limits that bind or don't, and requests
//! that it finishes although nobody listens.
//!
//! It keeps its own account of every request and shares no code with the gateway. Its time runs `pace` times as fast as the machine's, so
//! that an answer of minutes takes tenths of a second; a gateway before it runs as fast on a [`Machine`](crate::process::bad_machines).
#![cfg(test)]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use farebox_doubles::Vendor;
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::counting::Tokenizer;
use super::frames::{Counts, Showing};
use super::making::{How, Making, Plan, Prices, Prompt, USUAL};
use super::{read, unmarked};
use crate::support::load::Dice;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};

/// Which output its limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binds {
    All,
    /// Reasoning comes beside it.
    Text,
    /// It reads no limit.
    Nothing,
    /// It makes up to twice the limit.
    Twice,
}

/// When the first frame of a stream comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// As soon as the request is there.
    Accepted,
    /// As soon as it leaves the queue.
    Begun,
    /// With the first output that is shown.
    Shown,
}

/// When usage is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    /// At the end; messages say the prompt's at the beginning too.
    AtEnd,
    /// With every chunk, all of it.
    Always,
    /// With every chunk, without what is hidden; all of it at the end.
    AlwaysLess,
    Never,
}

/// What is said in place of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claims {
    Truth,
    /// That nothing was used.
    Zero,
    /// Twice the output.
    Twice,
    /// 10^15 tokens.
    Absurd,
}

/// How prompts are cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caches {
    Nothing,
    /// By itself, in steps of 128 tokens.
    ByItself,
    /// What is marked, at 1.25 times the price.
    Marks,
}

/// Whose rules a provider follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plays {
    /// Those of the vendor who defined the family; a test that breaks them fails.
    Strict,
    /// Nobody's.
    Lenient,
    /// This vendor's, for a test that breaks them.
    Refusing(Vendor),
}

/// Seconds before a request is begun.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Queue {
    Always(f64),
    /// By chance, this in the mean.
    Mean(f64),
}

/// What a provider is like. A gateway knows of it what its two files say, and what it sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Nature {
    /// Output tokens a second of each choice.
    pub(crate) speed: f64,
    pub(crate) queue: Queue,
    /// Tokens of a prompt that it reads in a second; a tenth of the time for a cached one.
    pub(crate) prefill: f64,
    pub(crate) first: First,
    pub(crate) says: Says,
    pub(crate) claims: Claims,
    pub(crate) caches: Caches,
    pub(crate) binds: Binds,
    /// It stops working for who has left.
    pub(crate) stops: bool,
    /// A prompt with more tokens has the prices of the tier.
    pub(crate) tier: Option<u64>,
    pub(crate) tokenizer: Tokenizer,
    /// Thousandths of that count: templates, and vendors whose table nobody has.
    pub(crate) counts: u64,
    /// It refuses a smaller limit.
    pub(crate) least_limit: u64,
    /// It breaks every stream so many seconds after its first token.
    pub(crate) breaks: Option<f64>,
    /// It sends nothing to anybody, and works all the same.
    pub(crate) stuck: bool,
    /// The most tokens of each part of what it says, whatever the plan.
    pub(crate) terse: u64,
    pub(crate) prices: Prices,
    /// What it does with a request that the real vendor would refuse.
    pub(crate) plays: Plays,
}

/// An honest provider of today.
pub(crate) const HONEST: Nature = Nature {
    speed: 80.0,
    queue: Queue::Always(0.3),
    prefill: 8_000.0,
    first: First::Begun,
    says: Says::AtEnd,
    claims: Claims::Truth,
    caches: Caches::Nothing,
    binds: Binds::All,
    stops: true,
    tier: None,
    tokenizer: Tokenizer::O200k,
    counts: 1_000,
    least_limit: 1,
    breaks: None,
    stuck: false,
    terse: u64::MAX,
    prices: USUAL,
    plays: Plays::Strict,
};

/// How long a prompt stays cached.
const LIFETIME: f64 = 300.0;
/// The smallest prompt that is cached.
const SMALLEST_CACHED: u64 = 1_024;
/// Most frames of its streams come this many real milliseconds after one another.
const TICK: f64 = 0.040;

/// One message of a prompt: the hash of all up to it, all tokens up to it, and whether a cache mark is there.
#[derive(Debug, Clone, Copy)]
struct Link {
    hash: u64,
    tokens: u64,
    marked: bool,
}

/// A prompt in the cache.
#[derive(Debug)]
struct Cached {
    links: Vec<Link>,
    ready: f64,
    until: f64,
}

/// One request that was served.
#[derive(Debug, Clone)]
struct Answer {
    number: usize,
    plan: u64,
    making: Making,
    at: Instant,
    finishes: bool,
    limit: Option<u64>,
}

#[derive(Debug)]
struct Books {
    nature: Nature,
    answers: Vec<Answer>,
    cache: Vec<Cached>,
    dice: Dice,
    /// The same body's tokens, by its hash.
    counted: HashMap<u64, u64>,
}

/// The provider, which listens until it is dropped.
pub(crate) struct Provider {
    pub(crate) upstream: ScriptedUpstream,
    books: Arc<Mutex<Books>>,
    pace: f64,
    began: Instant,
}

/// One request's truth, for who judges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    /// Picodollars.
    pub(crate) billed: i64,
    /// Of prompt and output, if it ended.
    pub(crate) tokens: u64,
    /// The limit that arrived.
    pub(crate) limit: Option<u64>,
    /// The limit ended it.
    pub(crate) cut: bool,
}

impl Provider {
    /// Its time runs `pace` times as fast as the machine's.
    pub(crate) async fn start(nature: Nature, pace: f64, seed: u64) -> Self {
        let books = Books {
            nature,
            answers: Vec::new(),
            cache: Vec::new(),
            dice: Dice::new(seed),
            counted: HashMap::new(),
        };
        let (books, began) = (Arc::new(Mutex::new(books)), Instant::now());
        let answering = Arc::clone(&books);
        let script = Script::by(move |seen, number| {
            let mut books = answering.lock().unwrap();
            let now = (seen.at - began).as_secs_f64() * pace;
            books.answer(seen, number, pace, now)
        });
        let upstream = match nature.plays {
            Plays::Strict => ScriptedUpstream::start(script).await,
            Plays::Lenient => ScriptedUpstream::tolerant(script).await,
            Plays::Refusing(vendor) => ScriptedUpstream::refusing(vendor, script).await,
        };
        upstream.forget();
        Self {
            upstream,
            books,
            pace,
            began,
        }
    }

    /// It is different from now on.
    pub(crate) fn becomes(&self, change: impl FnOnce(&mut Nature)) {
        change(&mut self.books.lock().unwrap().nature);
    }

    /// What it would bill for a request that nothing cuts, if it came now.
    pub(crate) fn whole_bill(&self, family: Family, body: &Value) -> i64 {
        let now = self.began.elapsed().as_secs_f64() * self.pace;
        let text = body.to_string();
        let mut books = self.books.lock().unwrap();
        let plan = Plan::of(text.as_bytes());
        let mut making = books.makes(family, body, &plan, now);
        let choices = making.choices.len() as u64;
        making.choices = plan.within(choices, u64::MAX, |_| true).0;
        making.bill(None)
    }

    /// All that was billed, in picodollars. Every answer must have ended.
    pub(crate) fn billed(&self) -> i64 {
        self.truths().iter().map(|(_, truth)| truth.billed).sum()
    }

    /// Every request that was served, with the number of its plan.
    pub(crate) fn truths(&self) -> Vec<(u64, Truth)> {
        let closings = self.upstream.closings();
        let books = self.books.lock().unwrap();
        let truth = |answer: &Answer| {
            let closed = closings.get(answer.number).copied().flatten();
            let stopped = closed.filter(|_| !answer.finishes).map(|closed| {
                closed.saturating_duration_since(answer.at).as_secs_f64() * self.pace
            });
            let truth = Truth {
                billed: answer.making.bill(stopped),
                tokens: answer.making.prompt.tokens() + answer.making.all().0,
                limit: answer.limit,
                cut: answer.making.cut,
            };
            (answer.plan, truth)
        };
        books.answers.iter().map(truth).collect()
    }

    /// What was billed for one plan, at every attempt.
    pub(crate) fn truth(&self, plan: u64) -> Option<Truth> {
        let all = self.truths();
        let own = all.iter().filter(|(id, _)| *id == plan);
        own.map(|(_, truth)| *truth).reduce(|one, two| Truth {
            billed: one.billed + two.billed,
            ..two
        })
    }
}

/// The limit in a body, in whichever field.
fn limit_of(body: &Value) -> Option<u64> {
    ["max_completion_tokens", "max_tokens", "max_output_tokens"]
        .iter()
        .find_map(|name| body[*name].as_u64())
}

impl Books {
    fn answer(&mut self, seen: &Seen, number: usize, pace: f64, now: f64) -> Reply {
        let path = seen.path.split('?').next().unwrap();
        let family = Family::ALL
            .into_iter()
            .find(|family| path.ends_with(family.protocol().path))
            .unwrap();
        let (body, nature) = (read(&seen.body), self.nature);
        let limit = limit_of(&body);
        if limit.is_some_and(|limit| limit < nature.least_limit) {
            let least = nature.least_limit;
            return refusal(
                family,
                &format!("the limit must be at least {least} tokens"),
            );
        }
        if nature.refuses(seen) {
            // What is refused is not billed; the vendor's own words are sent in place of this.
            return refusal(family, "refused");
        }
        let mut plan = Plan::of(&seen.body);
        for part in plan.choices.iter_mut().flatten() {
            part.tokens = part.tokens.min(nature.terse);
        }
        let making = self.makes(family, &body, &plan, now);
        if !plan.cold {
            self.remember(&body, &making, now);
        }
        self.answers.push(Answer {
            number,
            plan: plan.id,
            making: making.clone(),
            at: seen.at,
            finishes: !nature.stops,
            limit,
        });
        let first = match nature.first {
            First::Accepted => Some(0.0),
            First::Begun => Some(making.begins),
            First::Shown => None,
        };
        let showing = Showing {
            family,
            making: &making,
            calls: body["tools"]
                .as_array()
                .is_some_and(|tools| !tools.is_empty()),
            usage: nature.counts_of(&making, making.all()),
            interim: &|at| nature.interim(&making, at),
            first,
            tick: TICK * pace,
            id: format!("up-{}", plan.id),
        };
        let reply = if nature.stuck {
            Reply::json(200, &Value::Null).silent()
        } else if body["stream"] == true {
            stream(&showing, nature, pace)
        } else {
            let late = Duration::from_secs_f64(making.ends() / pace);
            Reply::json(200, &showing.whole()).late(late)
        };
        reply.header("x-request-id", &format!("req_up{number}"))
    }

    /// What it makes of a request that comes now.
    fn makes(&mut self, family: Family, body: &Value, plan: &Plan, now: f64) -> Making {
        let nature = self.nature;
        let choices = match family {
            Family::Chat => body["n"].as_u64().unwrap_or(1),
            Family::Responses | Family::Messages => 1,
        };
        let (limit, counts): (u64, fn(How) -> bool) = match (nature.binds, limit_of(body)) {
            (Binds::Nothing, _) | (_, None) => (u64::MAX, |_| true),
            (Binds::All, Some(limit)) => (limit, |_| true),
            (Binds::Twice, Some(limit)) => (limit * 2, |_| true),
            (Binds::Text, Some(limit)) => {
                (limit, |how| !matches!(how, How::Hidden | How::Reasoned))
            }
        };
        let (choices, cut) = plan.within(choices, limit, counts);
        let prompt = self.prompt(body, plan, now);
        let begins = match nature.queue {
            Queue::Always(seconds) => seconds,
            Queue::Mean(seconds) => {
                let even = (1 + self.dice.below(1_000_000)) as f64 / 1_000_001.0;
                -even.ln() * seconds
            }
        };
        let share = if prompt.read > 0 { 0.1 } else { 1.0 };
        let dear = nature.tier.is_some_and(|edge| prompt.tokens() > edge);
        let predicted = nature.tokenizer.tokens(&body["prediction"]["content"]);
        Making {
            cut,
            begins,
            speaks: begins + prompt.tokens() as f64 * share / nature.prefill,
            speed: nature.speed,
            prompt,
            predicted: predicted * choices.len() as u64,
            prices: if dear {
                nature.prices.of_tier()
            } else {
                nature.prices
            },
            choices,
        }
    }

    /// Tokens of a prompt, and what of them is in the cache or written to it.
    fn prompt(&mut self, body: &Value, plan: &Plan, now: f64) -> Prompt {
        let links = self.links(body);
        let all = links.last().map_or(0, |link| link.tokens);
        let nature = self.nature;
        let last_mark = links.iter().rposition(|link| link.marked);
        let common = |cached: &Cached| {
            let same = links.iter().zip(&cached.links);
            let same = same.take_while(|(one, two)| one.hash == two.hash).count();
            match nature.caches {
                Caches::Nothing => 0,
                Caches::ByItself if same == 0 => 0,
                Caches::ByItself => links[same - 1].tokens / 128 * 128,
                Caches::Marks => {
                    let written = cached.links[..same].iter().rposition(|link| link.marked);
                    let found = written.filter(|at| last_mark.is_some_and(|last| last >= *at));
                    found.map_or(0, |at| links[at].tokens)
                }
            }
        };
        let alive = self.cache.iter();
        let alive = alive.filter(|cached| cached.ready <= now && now < cached.until && !plan.cold);
        let read = alive.map(common).max().unwrap_or(0);
        let read = if read < SMALLEST_CACHED { 0 } else { read };
        let written = match (nature.caches, last_mark) {
            (Caches::Marks, Some(at)) => links[at].tokens.saturating_sub(read),
            _ => 0,
        };
        Prompt {
            fresh: all - read - written,
            read,
            written,
        }
    }

    fn remember(&mut self, body: &Value, making: &Making, now: f64) {
        if self.nature.caches == Caches::Nothing {
            return;
        }
        let links = self.links(body);
        self.cache.retain(|cached| now < cached.until);
        self.cache.push(Cached {
            links,
            ready: now + making.speaks,
            until: now + making.speaks + LIFETIME,
        });
    }

    /// What a cache compares: everything but limit and streaming, then one message after the other.
    fn links(&mut self, body: &Value) -> Vec<Link> {
        let nature = self.nature;
        let mut rest = body.as_object().unwrap().clone();
        let list = rest.remove("messages").or_else(|| rest.remove("input"));
        for name in [
            "max_completion_tokens",
            "max_tokens",
            "max_output_tokens",
            "stream",
            "stream_options",
        ] {
            rest.remove(name);
        }
        let rest = Value::Object(rest);
        let mut hasher = DefaultHasher::new();
        rest.to_string().hash(&mut hasher);
        let mut tokens = nature.tokenizer.prompt(&rest);
        let mut links = vec![Link {
            hash: hasher.finish(),
            tokens: tokens * nature.counts / 1_000,
            marked: false,
        }];
        let messages = match list {
            Some(Value::Array(messages)) => messages,
            Some(text) => vec![json!({"role": "user", "content": text})],
            None => Vec::new(),
        };
        for message in &messages {
            let (plain, text) = (unmarked(message), message.to_string());
            let plain_text = plain.to_string();
            plain_text.hash(&mut hasher);
            let mut own = DefaultHasher::new();
            (plain_text.as_str(), nature.tokenizer).hash(&mut own);
            let count = || nature.tokenizer.tokens(&plain);
            tokens += *self.counted.entry(own.finish()).or_insert_with(count);
            links.push(Link {
                hash: hasher.finish(),
                tokens: tokens * nature.counts / 1_000,
                marked: text.contains("\"cache_control\""),
            });
        }
        links
    }
}

impl Nature {
    /// Whether its vendor's rules refuse a request.
    fn refuses(self, seen: &Seen) -> bool {
        let Plays::Refusing(vendor) = self.plays else {
            return false;
        };
        let request = farebox_doubles::ArrivedRequest {
            path: &seen.path,
            headers: &seen.headers,
            body: &seen.body,
        };
        farebox_doubles::judge(vendor, &request).is_err()
    }

    /// What it says of usage when so much output is made.
    fn counts_of(&self, making: &Making, (output, reasoning): (u64, u64)) -> Option<Counts> {
        let Prompt {
            fresh,
            read,
            written,
        } = making.prompt;
        let truth = Counts {
            fresh,
            read,
            written,
            output: output + making.predicted,
            reasoning,
            outside: self.binds == Binds::Text,
        };
        if self.says == Says::Never {
            return None;
        }
        Some(match self.claims {
            Claims::Truth => truth,
            Claims::Zero => Counts::default(),
            Claims::Twice => Counts {
                output: output * 2,
                ..truth
            },
            Claims::Absurd => Counts {
                output: 1_000_000_000_000_000,
                ..truth
            },
        })
    }

    fn interim(&self, making: &Making, at: f64) -> Option<Counts> {
        let made = making.made(at);
        let unseen = making.all().1.min(made);
        match self.says {
            Says::AtEnd | Says::Never => None,
            Says::Always => self.counts_of(making, (made, unseen)),
            Says::AlwaysLess => self.counts_of(making, (made - unseen, 0)),
        }
    }
}

/// The stream as it is played: what comes at one time in one part.
fn stream(showing: &Showing<'_>, nature: Nature, pace: f64) -> Reply {
    let mut frames = showing.stream();
    frames.sort_by(|(one, _), (two, _)| one.total_cmp(two));
    let mut parts: Vec<(Duration, String)> = Vec::new();
    for (at, frame) in frames {
        let at = Duration::from_secs_f64(at / pace);
        match parts.last_mut() {
            Some((last, part)) if *last == at => part.push_str(&frame),
            _ => parts.push((at, frame)),
        }
    }
    let breaks = nature.breaks.map(|after| {
        let at = Duration::from_secs_f64((showing.making.speaks + after) / pace);
        parts.iter().take_while(|(time, _)| *time <= at).count()
    });
    let (times, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let reply = Reply::events(parts).at(times);
    match breaks {
        Some(parts) => reply.reset_after(parts),
        None => reply,
    }
}

fn refusal(family: Family, why: &str) -> Reply {
    match family {
        Family::Messages => Reply::native_error(400, "invalid_request_error", why),
        Family::Chat | Family::Responses => Reply::error(400, "invalid_request_error", None, why),
    }
}

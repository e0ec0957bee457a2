//! One request of a table, as it is written, and what its sender learns.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::money::bodies::tools;
use crate::support::billing::frames::said;
use crate::support::billing::making::{Part, Plan};
use crate::support::load::Dice;

/// What a prompt's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Prose,
    /// Letters without a meaning: two bytes a token, and a quick look takes them for long words.
    Letters,
    /// A script that older tables of tokens hardly know.
    Tamil,
}

/// A piece of a prompt; the same number and size are the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) tokens: u64,
}

/// A request before it is written.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) model: &'static str,
    pub(super) family: Family,
    pub(super) text: Text,
    pub(super) prompt: Vec<Block>,
    /// What the model says, of each choice.
    pub(super) says: Vec<Vec<Part>>,
    pub(super) n: u64,
    pub(super) limit: Option<u64>,
    pub(super) stream: bool,
    pub(super) tools: bool,
    /// The sender leaves after so many seconds.
    pub(super) leave: Option<f64>,
    /// The sender reads nothing for so many seconds, in pauses of 28.5.
    pub(super) deaf: f64,
    pub(super) key: usize,
    /// The provider has thrown its prompt out of its cache.
    pub(super) cold: bool,
    /// The block that has a cache mark.
    pub(super) mark: Option<usize>,
    /// Further members of the body.
    pub(super) extra: Value,
    /// The program that it says it is.
    pub(super) program: Option<&'static str>,
}

/// A small question to the first model.
pub(super) fn ask(says: &[Part]) -> Ask {
    Ask {
        model: "plain",
        family: Family::Chat,
        text: Text::Prose,
        prompt: Vec::new(),
        says: vec![says.to_vec()],
        n: 1,
        limit: Some(60_000),
        stream: true,
        tools: true,
        leave: None,
        deaf: 0.0,
        key: 0,
        cold: false,
        mark: None,
        extra: json!({}),
        program: None,
    }
}

/// Pieces of some thousand tokens with numbers from `first` on, so many tokens in all.
pub(super) fn blocks(first: u64, tokens: u64) -> Vec<Block> {
    let whole = (0..tokens / 1_000).map(|number| Block {
        number: first + number,
        tokens: 1_000,
    });
    let rest = (tokens % 1_000 >= 50).then(|| Block {
        number: first + tokens / 1_000,
        tokens: tokens % 1_000,
    });
    whole.chain(rest).collect()
}

fn text(kind: Text, block: Block) -> String {
    let Block { number, tokens } = block;
    match kind {
        Text::Prose => {
            let begins = format!("Part {number}. ");
            begins + &said(number * 17, tokens.saturating_sub(5))
        }
        Text::Letters => {
            let mut dice = Dice::new(number);
            let mut letter = |at: u64| match at % 150 {
                149 => ' ',
                _ => char::from(b'a' + u8::try_from(dice.below(26)).unwrap()),
            };
            (0..tokens * 193 / 100).map(&mut letter).collect()
        }
        Text::Tamil => {
            let word = "சொற்களை எண்ணுவது ஒவ்வொரு விற்பனையாளருக்கும் வேறுபடும். ";
            format!("{number} ") + &word.repeat(usize::try_from(tokens / 20).unwrap())
        }
    }
}

impl Ask {
    /// The same with a prompt of so many tokens.
    pub(super) fn prompt(mut self, first: u64, tokens: u64) -> Self {
        self.prompt = blocks(first, tokens);
        self
    }

    pub(super) fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(super) fn leaves(mut self, seconds: f64) -> Self {
        self.leave = Some(seconds);
        self
    }

    /// The body, with the plan of that number in it.
    pub(super) fn body(&self, plan: u64) -> Value {
        let plan = Plan {
            id: plan,
            choices: self.says.clone(),
            cold: self.cold,
        };
        let kind = match self.family {
            Family::Chat | Family::Messages => "text",
            Family::Responses => "input_text",
        };
        let message =
            |text: String| json!({"role": "user", "content": [{"type": kind, "text": text}]});
        let mut messages: Vec<Value> = self
            .prompt
            .iter()
            .map(|block| message(text(self.text, *block)))
            .collect();
        if let Some(at) = self.mark {
            messages[at]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        }
        messages.push(message(format!("Go on. {plan}")));
        let (list, limit) = match self.family {
            Family::Chat => ("messages", "max_completion_tokens"),
            Family::Responses => ("input", "max_output_tokens"),
            Family::Messages => ("messages", "max_tokens"),
        };
        let mut body = json!({"model": self.model, "stream": self.stream, list: messages});
        if let Some(tokens) = self.limit {
            body[limit] = json!(tokens);
        }
        if self.n > 1 {
            body["n"] = json!(self.n);
        }
        if self.tools {
            body["tools"] = tools(self.family);
        }
        for (name, value) in self.extra.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body
    }
}

/// What a sender has learned of a request, and what is known of it besides.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) plan: u64,
    /// 0: nothing was answered before its sender left.
    pub(super) status: u16,
    /// Of a refusal, or of an error event.
    pub(super) code: String,
    /// Its answer was read to its end.
    pub(super) whole: bool,
    /// The limit ended it.
    pub(super) cut: bool,
    /// `x-farebox-limit`.
    pub(super) lowered: Option<String>,
    pub(super) retry_after: Option<String>,
    /// Seconds until its first byte.
    pub(super) first: f64,
    /// When it came, or when it was cut, the purse at rest was more than twice its bill and those of all that ran.
    pub(super) spare: bool,
    /// Picodollars.
    pub(super) billed: i64,
    pub(super) tokens: u64,
    /// Its sender tries it again.
    pub(super) again: bool,
    pub(super) text: String,
}

impl Told {
    /// Refused for money that was there.
    pub(super) fn refused_falsely(&self) -> bool {
        self.status == 429
            && self.spare
            && ["insufficient_quota", "balance_in_use"].contains(&self.code.as_str())
    }

    /// Its refusal, with its words where they are not about money.
    pub(super) fn reason(&self) -> String {
        let about_money = ["insufficient_quota", "balance_in_use", "exposure_limit"];
        let words = if about_money.contains(&self.code.as_str()) {
            String::new()
        } else {
            let message = self.text.split("\"message\":\"").nth(1).unwrap_or_default();
            message.chars().take(90).collect()
        };
        format!("{} {} {words}", self.status, self.code)
    }

    pub(super) fn hear(&mut self, chunk: &[u8]) {
        self.text.push_str(&String::from_utf8_lossy(chunk));
    }

    pub(super) fn ends(&mut self) {
        self.whole = true;
        let code = self.text.split("\"code\":\"").nth(1);
        if let Some(code) = code.and_then(|rest| rest.split('"').next()) {
            self.code = code.to_owned();
        }
        // The messages family has no codes.
        if self.status == 429 && self.code.is_empty() {
            let says = |words: &str| self.text.contains(words);
            if says("\"billing_error\"") {
                self.code = "insufficient_quota".to_owned();
            } else if says("balance for now") || says("cap in use") {
                self.code = "balance_in_use".to_owned();
            }
        }
        // Answers are long; refusals are looked at.
        if self.status == 200 {
            let keep = self.text.len().saturating_sub(2_000);
            let keep = (keep..).find(|at| self.text.is_char_boundary(*at));
            self.text.drain(..keep.unwrap_or(0));
        }
    }
}

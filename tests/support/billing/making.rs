//! What a model makes of a request, when, and what that costs: the truth that no answer has to show.
//!
//! Time is the provider's own, in seconds since the request arrived.
#![cfg(test)]

use std::fmt;

/// How tokens come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Never.
    Hidden,
    /// As they are made.
    Shown,
    /// All together at their end: a call of a tool, if the request has tools.
    Whole,
    /// As they are made, as reasoning.
    Reasoned,
}

/// Tokens that are made one after the other and come out in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) tokens: u64,
    pub(crate) how: How,
}

/// Tokens that nobody sees.
pub(crate) const fn hidden(tokens: u64) -> Part {
    Part {
        tokens,
        how: How::Hidden,
    }
}

/// Tokens that are shown as they are made.
pub(crate) const fn shown(tokens: u64) -> Part {
    Part {
        tokens,
        how: How::Shown,
    }
}

/// Tokens that come at their end.
pub(crate) const fn whole(tokens: u64) -> Part {
    Part {
        tokens,
        how: How::Whole,
    }
}

/// Reasoning that is shown.
pub(crate) const fn reasoned(tokens: u64) -> Part {
    Part {
        tokens,
        how: How::Reasoned,
    }
}

/// What a model would say to a request if nothing stopped it. It stands in the request's text, so it survives every translation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// Which request of the test it is.
    pub(crate) id: u64,
    /// Of each choice; the last one is that of all further ones.
    pub(crate) choices: Vec<Vec<Part>>,
    /// The provider has thrown out of its cache what it had of this prompt.
    pub(crate) cold: bool,
}

const BEGIN: &str = "[[plan ";
const END: &str = "]]";

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |part: &Part| {
            let letter = match part.how {
                How::Hidden => 'h',
                How::Shown => 's',
                How::Whole => 'b',
                How::Reasoned => 'r',
            };
            format!("{letter}{}", part.tokens)
        };
        let choice = |parts: &Vec<Part>| parts.iter().map(part).collect::<Vec<_>>().join(",");
        let choices: Vec<String> = self.choices.iter().map(choice).collect();
        let cold = u8::from(self.cold);
        write!(out, "{BEGIN}{} {cold} {}{END}", self.id, choices.join("|"))
    }
}

impl Plan {
    /// The last plan in a body; a request of nobody's test is answered with a word.
    pub(crate) fn of(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let found = text.rfind(BEGIN).and_then(|at| {
            let rest = &text[at + BEGIN.len()..];
            Self::read(&rest[..rest.find(END)?])
        });
        found.unwrap_or_else(|| Self {
            choices: vec![vec![shown(1)]],
            ..Self::default()
        })
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (id, cold) = (words.next()?.parse().ok()?, words.next()? == "1");
        let choices = words.next()?.split('|').map(|choice| {
            let parts = choice.split(',').filter(|part| !part.is_empty());
            parts
                .map(|part| {
                    let how = match part.get(..1)? {
                        "h" => How::Hidden,
                        "s" => How::Shown,
                        "b" => How::Whole,
                        "r" => How::Reasoned,
                        _ => return None,
                    };
                    let tokens = part[1..].parse().ok()?;
                    Some(Part { tokens, how })
                })
                .collect()
        });
        Some(Self {
            id,
            choices: choices.collect::<Option<_>>()?,
            cold,
        })
    }

    /// What so many choices make within a limit that bounds what `counts` says of it; whether it cut any.
    pub(crate) fn within(
        &self,
        choices: u64,
        limit: u64,
        counts: impl Fn(How) -> bool,
    ) -> (Vec<Vec<Part>>, bool) {
        let mut cut = false;
        let made = (0..choices).map(|choice| {
            let last = self.choices.len() - 1;
            let parts = &self.choices[(choice as usize).min(last)];
            let mut left = limit;
            let parts = parts.iter().map(|part| {
                if !counts(part.how) {
                    return *part;
                }
                let tokens = part.tokens.min(left);
                left -= tokens;
                cut |= tokens < part.tokens;
                Part { tokens, ..*part }
            });
            parts.filter(|part| part.tokens > 0).collect()
        });
        (made.collect(), cut)
    }
}

/// Picodollars of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prices {
    pub(crate) input: i64,
    pub(crate) output: i64,
    pub(crate) read: i64,
    pub(crate) write: i64,
}

/// $3 and $15 a million.
pub(crate) const USUAL: Prices = Prices {
    input: 3_000_000,
    output: 15_000_000,
    read: 300_000,
    write: 3_750_000,
};
/// $15 and $75 a million.
pub(crate) const DEAR: Prices = Prices {
    input: 15_000_000,
    output: 75_000_000,
    read: 1_500_000,
    write: 18_750_000,
};

impl Prices {
    /// Beyond a tier's edge: twice for what goes in, one and a half for what comes out.
    pub(crate) fn of_tier(self) -> Self {
        Self {
            input: self.input * 2,
            output: self.output * 3 / 2,
            read: self.read * 2,
            write: self.write * 2,
        }
    }
}

/// Tokens of a prompt as they are billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Prompt {
    pub(crate) fresh: u64,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl Prompt {
    pub(crate) fn tokens(self) -> u64 {
        self.fresh + self.read + self.written
    }
}

/// One answer as its provider makes it.
#[derive(Debug, Clone)]
pub(crate) struct Making {
    /// Of each choice, as far as the limit goes.
    pub(crate) choices: Vec<Vec<Part>>,
    /// The limit ended a choice.
    pub(crate) cut: bool,
    /// When it leaves the queue, and when it has read the prompt.
    pub(crate) begins: f64,
    pub(crate) speaks: f64,
    /// Tokens a second of each choice.
    pub(crate) speed: f64,
    pub(crate) prompt: Prompt,
    /// Rejected tokens of a prediction: billed with the last one, never shown.
    pub(crate) predicted: u64,
    /// Those that apply to it.
    pub(crate) prices: Prices,
}

impl Making {
    fn totals(&self) -> impl Iterator<Item = u64> {
        let total = |parts: &Vec<Part>| parts.iter().map(|part| part.tokens).sum();
        self.choices.iter().map(total)
    }

    /// When all choices are made.
    pub(crate) fn ends(&self) -> f64 {
        self.speaks + self.totals().max().unwrap_or(0) as f64 / self.speed
    }

    /// Output tokens of all choices at a time.
    pub(crate) fn made(&self, at: f64) -> u64 {
        if at >= self.ends() {
            // To the token: the rest is not.
            return self.totals().sum();
        }
        let each = ((at - self.speaks) * self.speed).max(0.0) as u64;
        self.totals().map(|total| total.min(each)).sum()
    }

    /// All of them, and how many of those are hidden or reasoning.
    pub(crate) fn all(&self) -> (u64, u64) {
        let parts = self.choices.iter().flatten();
        let unseen = parts.filter(|part| matches!(part.how, How::Hidden | How::Reasoned));
        (self.totals().sum(), unseen.map(|part| part.tokens).sum())
    }

    /// The bill in picodollars, if it is stopped at a time, or if it ends.
    pub(crate) fn bill(&self, stopped: Option<f64>) -> i64 {
        let ends = self.ends();
        let at = stopped.unwrap_or(ends).min(ends);
        if at < self.begins {
            return 0;
        }
        let predicted = if at >= ends { self.predicted } else { 0 };
        let output = self.made(at) + predicted;
        let of = |tokens: u64, price: i64| i64::try_from(tokens).unwrap() * price;
        of(self.prompt.fresh, self.prices.input)
            + of(self.prompt.read, self.prices.read)
            + of(self.prompt.written, self.prices.write)
            + of(output, self.prices.output)
    }
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let plan = Plan {
        id: 17,
        choices: vec![vec![hidden(6_000), shown(30)], vec![whole(25), reasoned(4)]],
        cold: true,
    };
    let body = format!("{{\"text\": \"{} {plan} and more\"}}", Plan::default());
    assert_eq!(Plan::of(body.as_bytes()), plan);
    let (made, cut) = plan.within(3, 6_010, |_| true);
    assert!(cut);
    assert_eq!(made[0], [hidden(6_000), shown(10)]);
    assert_eq!(made[2], made[1]);
    let (beside, cut) = plan.within(1, 30, |how| how != How::Hidden);
    assert_eq!((beside[0].len(), cut), (2, false));
}

#[test]
fn a_bill_grows_with_time() {
    let making = Making {
        choices: vec![vec![hidden(100), shown(50)]],
        cut: false,
        begins: 1.0,
        speaks: 2.0,
        speed: 10.0,
        prompt: Prompt {
            fresh: 10,
            read: 20,
            written: 0,
        },
        predicted: 7,
        prices: USUAL,
    };
    let input = 10 * USUAL.input + 20 * USUAL.read;
    let bill = |at| making.bill(Some(at));
    assert_eq!([bill(0.5), bill(1.5)], [0, input]);
    assert_eq!(bill(4.0), input + 20 * USUAL.output);
    assert_eq!(making.bill(None), input + 157 * USUAL.output);
    assert_eq!(making.all(), (150, 100));
}

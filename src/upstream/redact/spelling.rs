//! Every way to write the name of a target's model: with and without vendor, date and version, and with any separators.

use super::find::{is_word, replaced, token_len};

/// Shorter names also occur in ordinary words, so they are only looked for as they are.
const SHORTEST: usize = 5;
/// From here on, a name with digits is also found with spaces: `Big Model 4.5`. Shorter ones are prose (`model 5`).
const SHORTEST_SPACED: usize = 8;
/// Characters that stand between the parts of a name, at most one at a time.
const BETWEEN: &str = "-_./:@";
/// Dates and versions at the end of a name, with zeros for digits.
const ENDS: [&str; 9] = [
    "-0000-00-00",
    "-00000000",
    "@00000000",
    "-v0:0",
    "-v0",
    "-00-00",
    "-0000",
    "-000",
    "-latest",
];

/// The spellings of one model's name, the longest first.
pub(super) struct Spelling(Vec<Name>);

struct Name {
    /// Letters and digits, in lower case, without what stands between them.
    parts: Vec<String>,
    /// Whether other separators, or none, may stand there.
    loose: bool,
    spaced: bool,
    /// As the file has it.
    exact: String,
}

impl Spelling {
    pub(super) fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let bare = model.rsplit('/').next().unwrap_or(&model);
        // `us.vendor.name-…`: regions and vendors are letters alone.
        let parts: Vec<&str> = bare
            .split('.')
            .skip_while(|part| part.bytes().all(|byte| byte.is_ascii_alphabetic()))
            .collect();
        let inner = parts.join(".");
        let mut names = vec![model.as_str()];
        for mut name in [bare, inner.as_str()] {
            names.push(name);
            while let Some(shorter) = without_end(name) {
                names.push(shorter);
                name = shorter;
            }
        }
        names.retain(|name| name.len() >= SHORTEST || *name == model);
        names.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        names.dedup();
        Self(names.into_iter().map(Name::of).collect())
    }

    /// The text with the public slug in place of the name.
    pub(super) fn replace(&self, text: &str, slug: &str) -> String {
        let public = slug.to_ascii_lowercase();
        let names = self.0.iter().filter(|name| name.exact != public);
        names.fold(text.to_owned(), |text, name| {
            name.replace(&text, slug, &public)
        })
    }
}

/// The name without the date or version at its end. One word alone (`chat-0613`) would be an ordinary one.
fn without_end(name: &str) -> Option<&str> {
    let shape = name.replace(|c: char| c.is_ascii_digit(), "0");
    let end = ENDS.iter().find(|end| shape.ends_with(**end))?;
    name.get(..name.len() - end.len())
        .filter(|shorter| shorter.contains(|c: char| BETWEEN.contains(c)))
}

impl Name {
    fn of(name: &str) -> Self {
        let parts = name.split(|c: char| BETWEEN.contains(c));
        let has_digit = name.contains(|c: char| c.is_ascii_digit());
        Self {
            parts: parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect(),
            loose: name.len() >= SHORTEST,
            spaced: name.len() >= SHORTEST_SPACED && has_digit,
            exact: name.to_owned(),
        }
    }

    /// A tag behind the name (`-20250929`, `:free`) is part of the match.
    fn replace(&self, text: &str, slug: &str, public: &str) -> String {
        let Some((first, rest)) = self.parts.split_first() else {
            return text.to_owned();
        };
        let first = if self.loose { first } else { &self.exact };
        replaced(text, |text, lower, from| {
            let at = from + lower.get(from..)?.find(first.as_str())?;
            let behind = at + first.len();
            let begins = !lower[..at].chars().next_back().is_some_and(is_word);
            let end = match self.loose {
                true => self.rest_of(lower, behind, rest),
                false => Some(behind),
            };
            let ends = |end: &usize| {
                let next = lower[*end..].chars().next();
                !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
            };
            let Some(end) = end.filter(|end| begins && ends(end)) else {
                return Some((at, behind, None));
            };
            if let Some(end) = end_of_public(lower, at, end, public) {
                return Some((at, end, None));
            }
            let tail = match text[end..].starts_with(['-', ':', '@']) {
                true => token_len(&text[end..], |c| is_word(c) || c == ':' || c == '@'),
                false => 0,
            };
            let tail = text[end..end + tail].trim_end_matches([':', '-', '@']);
            Some((at, end + tail.len(), Some(slug)))
        })
    }

    /// The end of a name whose first part ends at `at`.
    fn rest_of(&self, lower: &str, mut at: usize, rest: &[String]) -> Option<usize> {
        for part in rest {
            let gap =
                lower[at..].starts_with(|c: char| BETWEEN.contains(c) || self.spaced && c == ' ');
            at += usize::from(gap);
            at += lower[at..]
                .starts_with(part.as_str())
                .then_some(part.len())?;
        }
        Some(at)
    }
}

/// The end of the public slug around a match: the slug may itself contain the upstream's name.
fn end_of_public(lower: &str, at: usize, end: usize, public: &str) -> Option<usize> {
    let begin = at.checked_sub(public.find(&lower[at..end])?)?;
    lower
        .get(begin..)
        .is_some_and(|text| text.starts_with(public))
        .then_some((begin + public.len()).max(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(model: &str, text: &str, expected: &str) {
        assert_eq!(Spelling::of(model).replace(text, "public"), expected);
    }

    #[test]
    fn every_spelling_becomes_the_slug() {
        let model = "us.vendor.big-model-4-5-20250929-v1:0";
        for written in [
            model,
            "big-model-4-5-20250929",
            "Big-Model-4-5",
            "big_model_4_5",
            "Big Model 4.5",
            "big-model-4.5",
            "bigmodel-4-5",
            "big-model-4-5@20250929",
            "BIG-MODEL-4-5-LATEST",
        ] {
            becomes(model, &format!("no {written}, sorry"), "no public, sorry");
        }
        becomes(
            "vendor/deep-9-2025-08-06",
            "deep-9, vendor/deep-9-2025-08-06",
            "public, public",
        );
        becomes("gpt-x-0613", "gpt-x is gone", "public is gone");
    }

    #[test]
    fn other_names_and_prose_stay() {
        for (model, text) in [
            (
                "big-model-4-5",
                "a big model, big-model-45x, mybig-model-4-5",
            ),
            ("model-5", "a model 5 times"),
            ("chat-0613", "a chat"),
            ("o-3", "o 3, o.3"),
        ] {
            becomes(model, text, text);
        }
        let spelling = Spelling::of("deep-9");
        let slug = "shop/deep-9";
        assert_eq!(
            spelling.replace("no shop/deep-9 here", slug),
            "no shop/deep-9 here"
        );
    }
}

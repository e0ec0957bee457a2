//! Rerank: how well each of a list of documents fits a query. A model reads the query once more with each document.
//!
//! Rows of docs/interface.md: `post_v1_rerank`.

use serde_json::{Value, json};

use crate::calls::answer::{self, AnswerShape};
use crate::calls::{CallDialect, other_field, too_many};
use crate::inspect::TextWeight;
use crate::json::{Cursor, Kind};
use crate::members::Inside::{self, Anything};
use crate::prompt::CHARS_PER_TOKEN;
use crate::usage;
use crate::walk::{self, RequestWalk, Verdict};
use crate::{Additions, AnswerFacts, BadRequest, Inspection, TextSize};

/// Most documents of one request.
const MOST_DOCUMENTS: u32 = 2_048;
/// What a service that bills searches counts as one: so many documents, each of so many tokens with the query; a longer one counts as
/// several. Source: Cohere's price list, read 2026-12-01; Bedrock and Azure count as it does.
const OF_ONE_SEARCH: u64 = 100;
const OF_ONE_DOCUMENT: u64 = 500;
const NO_QUERY: &str = "`query` must be a text that is not empty.";
const WRONG: &str = "`documents` must be a list of texts, or of objects with a `text` and no more.";

/// Fields that pass untouched.
const KNOWN: &[&str] = &["return_documents", "max_tokens_per_doc", "user"];

const SHAPE: AnswerShape = AnswerShape {
    list: "results",
    has_part: |name, value| name == "relevance_score" && value.kind == Kind::Number,
    of_answer,
    of_part: of_result,
};

/// Documents by their fit to a query.
pub(super) struct Rerank;

/// What is asked.
#[derive(Default)]
struct RankingAsked {
    query: Option<TextWeight>,
    documents: Vec<TextSize>,
    top: Option<u32>,
}

impl CallDialect for Rerank {
    fn name(&self) -> &'static str {
        "rerank"
    }

    fn public_path(&self) -> &'static str {
        "/v1/rerank"
    }

    fn inspect(&self, body: &[u8], seed: u64) -> Result<Inspection, BadRequest> {
        let mut asked = RankingAsked::default();
        let request = RequestWalk::walk(body, seed, |name, cursor, seen| {
            field(name, cursor, (seen, &mut asked))
        })?;
        walk::need_model(&request.seen)?;
        let query = asked
            .query
            .ok_or_else(|| BadRequest::at("query", NO_QUERY))?;
        if asked.documents.is_empty() {
            return Err(BadRequest::at("documents", WRONG));
        }
        let mut seen = request.finish();
        let count = u32::try_from(asked.documents.len()).unwrap_or(u32::MAX);
        let pieces = asked
            .documents
            .iter()
            .map(|document| likely(query.size, *document).div_ceil(OF_ONE_DOCUMENT));
        seen.searches = pieces.fold(0, u64::saturating_add).div_ceil(OF_ONE_SEARCH);
        seen.parts = asked.top.map_or(count, |top| top.min(count));
        // Read once so far.
        seen.content.input_again(query, count - 1);
        Ok(seen)
    }

    fn read_answer(
        &self,
        body: &[u8],
        parts: u32,
        additions: Option<&dyn Additions>,
    ) -> Option<AnswerFacts> {
        // A server that does not know `top_n` ranks them all.
        answer::read(&SHAPE, body, additions, |results| results >= parts)
    }

    fn question(&self, model: &str, words: &str) -> String {
        json!({ "model": model, "query": words, "documents": [words] }).to_string()
    }

    fn simulate(&self, body: &[u8], model: &str) -> Result<String, String> {
        let seen = self.inspect(body, 0).map_err(|bad| bad.message)?;
        let asked: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let text = |value: &Value| value.as_str().or(value["text"].as_str()).map(str::to_owned);
        let query = text(&asked["query"]).unwrap_or_default();
        let listed = asked["documents"].as_array();
        let documents: Vec<String> = listed.into_iter().flatten().filter_map(text).collect();
        let mut results: Vec<Value> = Vec::with_capacity(documents.len());
        for (index, document) in documents.iter().enumerate() {
            let mut result = json!({ "index": index, "relevance_score": fit(&query, document) });
            if asked["return_documents"] == true {
                result["document"] = json!({ "text": document });
            }
            results.push(result);
        }
        let score = |result: &Value| result["relevance_score"].as_f64().unwrap_or_default();
        results.sort_by(|one, other| score(other).total_cmp(&score(one)));
        results.truncate(seen.parts as usize);
        let characters = |text: &str| (text.chars().count() as u64).div_ceil(CHARS_PER_TOKEN);
        let each = documents.iter().map(|document| characters(document));
        let tokens = each.sum::<u64>() + characters(&query) * documents.len() as u64;
        let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
        Ok(json!({ "model": model, "results": results, "usage": usage }).to_string())
    }
}

/// The part of a query's words that a document has.
fn fit(query: &str, document: &str) -> f64 {
    let words = || query.split_whitespace();
    let found = words().filter(|word| document.contains(*word)).count();
    let [found, all] = [found, words().count().max(1)].map(|count| {
        // A query of more words is told apart no further.
        f64::from(u16::try_from(count).unwrap_or(u16::MAX))
    });
    found / all
}

/// Tokens of a query and a document together, about.
fn likely(query: TextSize, document: TextSize) -> u64 {
    let mut both = query;
    both.add(document);
    both.ascii
        .div_ceil(CHARS_PER_TOKEN)
        .saturating_add(both.other.div_ceil(2))
}

fn field(
    name: &str,
    cursor: &mut Cursor<'_>,
    (seen, asked): (&mut Inspection, &mut RankingAsked),
) -> Result<Verdict, BadRequest> {
    match name {
        "query" => asked.query = Some(text(cursor, seen, ("query", NO_QUERY))?),
        "documents" => documents(cursor, seen, &mut asked.documents)?,
        "top_n" => asked.top = top(cursor)?,
        _ => return other_field(name, KNOWN, cursor, seen),
    }
    Ok(Verdict::Stays)
}

/// One text.
fn text(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
    (at, wrong): (&str, &str),
) -> Result<TextWeight, BadRequest> {
    if cursor.peek()? != Kind::String {
        return Err(BadRequest::at(at, wrong));
    }
    let value = cursor.skip()?;
    if value.text_size().bytes() == 0 {
        return Err(BadRequest::at(at, format!("`{at}` must not be empty.")));
    }
    let (size, inner) = (value.text_size(), cursor.inner(&value));
    Ok(seen.content.input(size, inner))
}

fn documents(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
    sizes: &mut Vec<TextSize>,
) -> Result<(), BadRequest> {
    if cursor.peek()? != Kind::Array {
        return Err(BadRequest::at("documents", WRONG));
    }
    let mut walk = cursor.enter_array()?;
    while cursor.element(&mut walk)? {
        if sizes.len() >= MOST_DOCUMENTS as usize {
            return Err(too_many("documents", MOST_DOCUMENTS));
        }
        let at = format!("documents[{}]", sizes.len());
        let read = match cursor.peek()? {
            Kind::Object => of_object(cursor, seen, &at)?,
            _ => text(cursor, seen, (&at, WRONG))?,
        };
        sizes.push(read.size);
    }
    Ok(())
}

/// The text of `{"text": …}`.
fn of_object(
    cursor: &mut Cursor<'_>,
    seen: &mut Inspection,
    at: &str,
) -> Result<TextWeight, BadRequest> {
    let mut walk = cursor.enter_object()?;
    let mut read = None;
    while let Some(key) = cursor.member(&mut walk)? {
        if key.name != "text" || read.is_some() {
            return Err(BadRequest::at(at, WRONG));
        }
        read = Some(text(cursor, seen, (at, WRONG))?);
    }
    read.ok_or_else(|| BadRequest::at(at, WRONG))
}

fn top(cursor: &mut Cursor<'_>) -> Result<Option<u32>, BadRequest> {
    let value = cursor.skip()?;
    if value.kind == Kind::Null {
        return Ok(None);
    }
    let count = usage::count(cursor, &value).filter(|count| *count > 0);
    match count {
        Some(count) => Ok(Some(u32::try_from(count).unwrap_or(u32::MAX))),
        None => Err(BadRequest::at(
            "top_n",
            "`top_n` must be a whole number from 1 on.",
        )),
    }
}

fn of_answer(name: &str) -> Option<Inside> {
    match name {
        "id" | "object" | "created" | "model" | "results" | "usage" => Some(Anything),
        _ => None,
    }
}

fn of_result(name: &str) -> Option<Inside> {
    matches!(name, "index" | "relevance_score" | "document").then_some(Anything)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspect(more: &str) -> Result<Inspection, BadRequest> {
        Rerank.inspect(format!(r#"{{"model":"m",{more}}}"#).as_bytes(), 1)
    }

    #[test]
    fn a_query_is_counted_with_each_document_wherever_it_stands() {
        for more in [
            r#""query":"ab","documents":["cde",{"text":"f"},"g"],"top_n":2"#,
            r#""top_n":2,"documents":["cde",{"text":"f"},"g"],"query":"ab""#,
        ] {
            let seen = inspect(more).unwrap();
            // Three times the query, and a space between two texts that were read.
            assert_eq!(seen.content.text.bytes(), 3 * 2 + 5 + 3, "{more}");
            assert_eq!((seen.content.inputs, seen.parts, seen.searches), (6, 2, 1));
        }
        let long = "x".repeat(4_000);
        let many = vec![format!("{long:?}"); 40].join(",");
        let seen = inspect(&format!(r#""query":"q","documents":[{many}]"#)).unwrap();
        assert_eq!(seen.searches, 2, "40 documents that count as three each");
    }

    #[test]
    fn what_cannot_be_ranked_is_refused() {
        for (more, at) in [
            (r#""documents":["a"]"#, "query"),
            (r#""query":"","documents":["a"]"#, "query"),
            (r#""query":["a"],"documents":["a"]"#, "query"),
            (r#""query":"a""#, "documents"),
            (r#""query":"a","documents":[]"#, "documents"),
            (r#""query":"a","documents":"b""#, "documents"),
            (r#""query":"a","documents":["b",""]"#, "documents[1]"),
            (r#""query":"a","documents":["b",7]"#, "documents[1]"),
            (r#""query":"a","documents":[{"image":"b"}]"#, "documents[0]"),
            (r#""query":"a","documents":[{}]"#, "documents[0]"),
            (r#""query":"a","documents":["b"],"top_n":0"#, "top_n"),
        ] {
            let bad = inspect(more).unwrap_err();
            assert_eq!(bad.param.as_deref(), Some(at), "{more}: {}", bad.message);
        }
    }

    #[test]
    fn an_answer_is_whole_with_as_many_results_as_were_asked_for() {
        let read = |results: &str, counts: &str| {
            let answer = format!(r#"{{"results":{results},"model":"m",{counts}}}"#);
            Rerank.read_answer(answer.as_bytes(), 1, None).unwrap()
        };
        let one = r#"{"index":1,"relevance_score":0.5,"document":{"text":"a"}}"#;
        let facts = read(&format!("[{one}]"), r#""usage":{"total_tokens":9}"#);
        assert!(facts.complete);
        assert_eq!((facts.usage.input, facts.usage.output), (Some(9), Some(0)));
        let meta = r#""meta":{"billed_units":{"search_units":1},"tokens":{"input_tokens":7}}"#;
        let facts = read(&format!("[{one},{one}]"), meta);
        assert!(facts.complete && facts.marks.usage_end.is_none());
        assert_eq!(facts.usage.input, Some(7));
        for results in ["[]", "null", r#"[{"index":0}]"#, "[7]"] {
            assert!(!read(results, r#""usage":null"#).complete, "{results}");
        }
    }
}

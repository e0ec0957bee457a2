//! A path of `/api/v1` and how it is called, made of the type that is read, and of the one that is answered.

use std::pin::Pin;

use farebox_ledger::Outcome;
use farebox_selling::SellerAct;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply, NO_CONTENT};
use super::call::{ApiCall, NamedInPath, ToldTo};

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Least {
    /// Anybody, without a token.
    Anybody,
    /// Every token; one that sells, of customers that it made and payments that it booked.
    Own,
    /// Tokens that read or manage.
    All,
    /// Tokens that sell or manage.
    Sell,
    /// Tokens that manage.
    Manage,
}

/// Answers a call.
type Handler =
    for<'call> fn(
        &'call ApiCall<'call>,
    ) -> Pin<Box<dyn Future<Output = Result<ApiReply, ApiError>> + Send + 'call>>;

/// One path and how it is called.
#[derive(Debug)]
pub(super) struct ApiRoute {
    pub(super) method: &'static str,
    /// Behind `/api/v1`, with parameters in braces.
    pub(super) path: &'static str,
    pub(super) least: Least,
    /// What programs that are made from the OpenAPI document call it.
    pub(super) name: String,
    /// What it does, for people.
    pub(super) words: String,
    /// The schema of its body, or of the query if it has none.
    pub(super) members: Value,
    /// A body that is taken.
    pub(super) example: &'static str,
    /// An example of what its path names, if the parameter's name does not say which.
    pub(super) named: Option<&'static str>,
    /// What is answered when all is well.
    pub(super) status: u16,
    /// Describes the document, and where that has a name adds what it stands for. A name that is kept for later has none.
    pub(super) answer: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub(super) lists: bool,
    /// What an act came to, as its answer shows it.
    pub(super) show: fn(&Outcome, &ToldTo) -> (u16, Value),
    pub(super) run: Handler,
}

/// A handler, as rows have it.
macro_rules! by {
    ($handler:path) => {
        |call| Box::pin($handler(call))
    };
}
pub(super) use by;

/// The words for a type, and its schema: an object with these members and no others.
pub(super) fn described<T: JsonSchema>() -> (String, Value) {
    let mut schema = farebox_selling::member::schema::<T>();
    RecursiveTransform(close).transform(&mut schema);
    let words = schema.remove("description");
    let words = words.as_ref().and_then(Value::as_str).unwrap_or_default();
    (words.to_owned(), schema.to_value())
}

/// An object has no other members than those that are described; a number's size and what is left out say nothing to others.
pub(super) fn close(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("default");
    let is_open = schema.get("additionalProperties").is_some();
    if !is_open
        && schema
            .get("type")
            .is_some_and(|kind| kind.to_string().contains("object"))
    {
        let fields = schema.ensure_object();
        fields.entry("properties").or_insert_with(|| json!({}));
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// What is read.
pub(super) fn get(
    path: &'static str,
    least: Least,
    name: &str,
    run: Handler,
    words: &str,
) -> ApiRoute {
    ApiRoute {
        method: "GET",
        path,
        least,
        name: name.to_owned(),
        words: words.to_owned(),
        members: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        example: "{}",
        named: None,
        status: 200,
        answer: None,
        lists: false,
        show: |outcome, told| (told.status, farebox_selling::document(outcome)),
        run,
    }
}

/// An act that is done once.
pub(super) fn act<A: SellerAct<Of: NamedInPath>>(path: &'static str, least: Least) -> ApiRoute {
    let (words, members) = described::<A>();
    ApiRoute {
        method: "POST",
        members,
        example: A::EXAMPLE,
        named: A::Of::EXAMPLE,
        ..get(
            path,
            least,
            &A::schema_name(),
            by!(ApiCall::act::<A>),
            &words,
        )
    }
}

/// A change of what was set, of a state that the caller may expect.
pub(super) fn edit<A: SellerAct<Of: NamedInPath>>(path: &'static str, run: Handler) -> ApiRoute {
    ApiRoute {
        method: "PATCH",
        run,
        ..act::<A>(path, Least::Manage)
    }
}

impl ApiRoute {
    pub(super) fn answers<D: JsonSchema>(self) -> Self {
        Self {
            answer: Some(SchemaGenerator::subschema_for::<D>),
            ..self
        }
    }

    pub(super) fn lists<D: JsonSchema>(self) -> Self {
        Self {
            lists: true,
            ..self.answers::<D>()
        }
    }

    /// Of one of these.
    pub(super) fn named<N: NamedInPath>(self) -> Self {
        Self {
            named: N::EXAMPLE,
            ..self
        }
    }

    /// With the members of a type in its query, too.
    pub(super) fn asked<Q: JsonSchema>(mut self) -> Self {
        let (_, more) = described::<Q>();
        if let (Value::Object(all), Value::Object(more)) =
            (&mut self.members["properties"], &more["properties"])
        {
            all.extend(more.clone());
        }
        self
    }

    pub(super) fn made(self) -> Self {
        Self {
            status: 201,
            ..self
        }
    }

    /// Of an act whose answer says no more than that it is done.
    pub(super) fn answers_nothing(self) -> Self {
        Self {
            status: NO_CONTENT,
            ..self
        }
    }

    pub(super) fn deletes(self) -> Self {
        Self {
            method: "DELETE",
            ..self
        }
    }

    /// Of an act that several paths do.
    pub(super) fn called(self, name: &str, words: &str) -> Self {
        Self {
            name: name.to_owned(),
            words: words.to_owned(),
            ..self
        }
    }

    pub(super) fn shows(self, show: fn(&Outcome, &ToldTo) -> (u16, Value)) -> Self {
        Self { show, ..self }
    }

    /// The parameters of a path that this route serves, still as they were sent.
    pub(super) fn parameters<'path>(&self, segments: &[&'path str]) -> Option<Vec<&'path str>> {
        let mut pattern = self.path.trim_start_matches('/').split('/');
        let mut found = Vec::new();
        for segment in segments {
            let part = pattern.next()?;
            if part.starts_with('{') {
                found.push(*segment);
            } else if part != *segment {
                return None;
            }
        }
        pattern.next().is_none().then_some(found)
    }

    /// The names of its parameters.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Whether its members are in the body.
    pub(super) fn has_body(&self) -> bool {
        matches!(self.method, "POST" | "PATCH")
    }
}

//! The OpenAPI document: written from the table of routes and fields, so that it says what is read and answered. A test runs every
//! example in it.

use std::sync::LazyLock;

use salvo::prelude::{Request, Response, handler};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use super::answer::NO_CONTENT;
use super::examples;
use super::route::{ApiRoute, Least, close};
use super::table::ROUTES;
use crate::customer::ConstantDocument;

/// The document, made once.
static CONSTANT: LazyLock<ConstantDocument> =
    LazyLock::new(|| ConstantDocument::new("application/json", document().to_string()));

/// Serves it, to anybody.
#[handler]
pub(in crate::server::admin) async fn serve_openapi(req: &mut Request, res: &mut Response) {
    CONSTANT.answer(req.headers(), res);
}

fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings =
        settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = (settings.with_transform(RecursiveTransform(close))).into_generator();
    let describe = |route: &ApiRoute| {
        let described = route.answer.map(|answer| answer(&mut generator));
        described.map(schemars::Schema::to_value)
    };
    let answers: Vec<Option<Value>> = ROUTES.iter().map(describe).collect();
    let mut schemas = generator.take_definitions(true);
    let mut paths: Map<String, Value> = Map::new();
    for (order, (route, answer)) in ROUTES.iter().zip(answers).enumerate() {
        let place = paths.entry(route.path).or_insert_with(|| json!({}));
        place[route.method.to_ascii_lowercase()] = operation(order, route, answer, &schemas);
    }
    schemas.insert("Error".to_owned(), error());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Farebox: the seller's API",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Customers, keys, payments and journal of a prepaid gateway.",
            "description": "Amounts are decimal text in USD unless a payment's own currency is named. Every POST has one effect per \
                Idempotency-Key; money has one effect per reference, for ever.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/api/v1", "description": "The admin listener" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of `farebox tokens create`" },
            },
            "schemas": schemas,
        },
    })
}

fn operation(
    order: usize,
    route: &ApiRoute,
    answer: Option<Value>,
    schemas: &Map<String, Value>,
) -> Value {
    let needs = match route.least {
        Least::Anybody => "Needs no token.",
        Least::Own => "For every token; one that sells sees what it made.",
        Least::All => "For tokens that read or manage.",
        Least::Sell => "For tokens that sell or manage.",
        Least::Manage => "For tokens that manage.",
    };
    let mut said = json!({
        "operationId": route.name,
        "summary": route.words,
        "description": needs,
        "parameters": parameters(route),
        "x-order": order,
    });
    let Some(fields) = said.as_object_mut() else {
        return said;
    };
    if route.has_body() {
        let example: Value = serde_json::from_str(route.example).unwrap_or_default();
        let is_empty = route.members["properties"] == json!({});
        let content =
            json!({ "application/json": { "schema": route.members, "example": example } });
        let body = json!({ "required": !is_empty, "content": content });
        fields.insert("requestBody".to_owned(), body);
    }
    let mut responses = Map::new();
    if let Some(answer) = answer.map(|answer| self::answer(route, answer, schemas)) {
        responses.insert(route.status.to_string(), answer);
    } else if route.status == NO_CONTENT {
        let done = json!({ "description": route.words });
        responses.insert(route.status.to_string(), done);
    }
    let failed = json!({
        "description": "What is wrong, and what to do instead",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    responses.insert("4XX".to_owned(), failed.clone());
    responses.insert("5XX".to_owned(), failed);
    fields.insert("responses".to_owned(), Value::Object(responses));
    if route.least == Least::Anybody {
        fields.insert("security".to_owned(), json!([]));
    }
    said
}

/// What is answered when all is well.
fn answer(route: &ApiRoute, answer: Value, schemas: &Map<String, Value>) -> Value {
    let example = examples::answer(route, &answer, schemas);
    let one = if route.least == Least::Anybody {
        json!({ "type": "object" })
    } else {
        answer
    };
    let schema = if route.lists {
        json!({
            "type": "object",
            "properties": {
                "data": { "type": "array", "items": one },
                "has_more": { "type": "boolean" },
                "next_cursor": { "type": ["string", "null"], "description": "The `cursor` of the next page" },
            },
            "required": ["data", "has_more", "next_cursor"],
            "additionalProperties": false,
        })
    } else {
        one
    };
    let mut media = json!({ "schema": schema });
    if let (Some(example), Some(media)) = (example, media.as_object_mut()) {
        media.insert("example".to_owned(), example);
    }
    let mut said = json!({ "description": route.words, "content": { "application/json": media } });
    if let Some(headers) = headers(route) {
        said["headers"] = headers;
    }
    said
}

fn headers(route: &ApiRoute) -> Option<Value> {
    match (route.method, route.path) {
        ("POST", _) => Some(json!({
            "idempotent-replayed": {
                "description": "`true`: this very request was answered before, and this is that answer, without its secrets",
                "schema": { "type": "string", "enum": ["true"] },
            },
        })),
        ("GET" | "PATCH", "/customers/{customer}" | "/keys/{key}") => Some(json!({
            "etag": {
                "description": "The number of the last act that moved no money; send it as If-Match with an edit",
                "schema": { "type": "string" },
            },
        })),
        _ => None,
    }
}

fn parameters(route: &ApiRoute) -> Vec<Value> {
    let in_path = route.names().map(|name| {
        json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string" },
            "example": examples::parameter(route, name),
        })
    });
    let described = route.members["properties"].as_object();
    let in_query = described
        .into_iter()
        .flatten()
        .filter(|_| !route.has_body());
    let in_query = in_query.map(|(name, schema)| {
        let required = route.members["required"].as_array();
        let mut schema = schema.clone();
        let words = schema["description"].take();
        json!({
            "name": name, "in": "query", "required": required.is_some_and(|all| all.contains(&json!(name))),
            "description": words, "schema": present(schema),
        })
    });
    let header = match route.method {
        "POST" => Some(json!({
            "name": "Idempotency-Key", "in": "header", "required": true,
            "description": "Your own name for this act: the same again has no second effect, for 24 hours",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        })),
        "PATCH" => Some(json!({
            "name": "If-Match", "in": "header", "required": false,
            "description": "The ETag of the read that this edit is based on; 412 if it was changed since",
            "schema": { "type": "string" },
        })),
        _ => None,
    };
    in_path.chain(in_query).chain(header).collect()
}

/// The schema of a value that is there.
fn present(mut schema: Value) -> Value {
    if let Value::Array(kinds) = &schema["type"] {
        schema["type"] = kinds[0].clone();
    }
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("description");
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    schema
}

fn error() -> Value {
    json!({
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "One word for programs" },
                    "message": { "type": "string", "description": "What is wrong, and what to do instead" },
                    "details": { "type": "object", "description": "Facts for programs" },
                },
                "required": ["code", "message", "details"],
                "additionalProperties": false,
            },
            "request_id": { "type": "string" },
        },
        "required": ["error", "request_id"],
        "additionalProperties": false,
    })
}

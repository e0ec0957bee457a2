//! The OpenAPI document: written from the table of routes and fields, so that it says what is read and answered. A test runs every
//! example in it.

use std::sync::LazyLock;

use salvo::prelude::{Request, Response, handler};
use serde_json::{Map, Value, json};

use super::examples;
use super::fields::{Absence, ApiField, FieldKind};
use super::shown;
use super::table::{ApiRoute, Least, ROUTES};
use crate::customer::ConstantDocument;

/// Documents with a name of their own.
const NAMED: &[(&str, &[ApiField])] = &[
    ("Customer", shown::CUSTOMER),
    ("Personal", shown::PERSONAL),
    ("Key", shown::KEY),
    ("AutoTopUp", shown::AUTO_TOP_UP),
    ("Cap", shown::CAP),
    ("Caps", shown::CAPS),
    ("Link", shown::LINK),
    ("Entry", shown::ENTRY),
    ("Payment", shown::PAYMENT),
    ("PaymentMoved", shown::PAYMENT_MOVED),
    ("Posted", shown::POSTED),
    ("Moved", shown::MOVED),
    ("Usage", shown::USAGE),
    ("MarginRow", shown::MARGIN),
    ("Margin", shown::MARGINS),
    ("Model", shown::MODEL),
    ("Request", shown::REQUEST),
    ("Event", shown::EVENT),
    ("Lot", shown::LOT),
    ("Receipt", shown::RECEIPT),
    ("Statement", shown::STATEMENT),
];

/// The document, made once.
static CONSTANT: LazyLock<ConstantDocument> =
    LazyLock::new(|| ConstantDocument::new("application/json", document().to_string()));

/// Serves it, to anybody.
#[handler]
pub(in crate::server::admin) async fn serve_openapi(req: &mut Request, res: &mut Response) {
    CONSTANT.answer(req.headers(), res);
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for (order, route) in ROUTES.iter().enumerate() {
        let place = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(place) = place.as_object_mut() {
            place.insert(route.method.to_ascii_lowercase(), operation(order, route));
        }
    }
    let mut schemas: Map<String, Value> = Map::new();
    for (name, fields) in NAMED {
        schemas.insert((*name).to_owned(), object(fields));
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

fn operation(order: usize, route: &ApiRoute) -> Value {
    let needs = match route.least {
        Least::Anybody => "Needs no token.",
        Least::Own => "For every token; one that sells sees what it made.",
        Least::All => "For tokens that read or manage.",
        Least::Sell => "For tokens that sell or manage.",
        Least::Manage => "For tokens that manage.",
    };
    let mut said = json!({
        "operationId": format!("{:?}", route.task),
        "summary": route.words,
        "description": needs,
        "parameters": parameters(route),
        "x-order": order,
    });
    let Some(fields) = said.as_object_mut() else {
        return said;
    };
    if matches!(route.method, "POST" | "PATCH") {
        let content = json!({
            "application/json": { "schema": object(route.body), "example": examples::body(route) },
        });
        let body = json!({ "required": !route.body.is_empty(), "content": content });
        fields.insert("requestBody".to_owned(), body);
    }
    let mut responses = Map::new();
    if let Some(answer) = answer(route) {
        responses.insert(route.status.to_string(), answer);
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

/// What is answered when all is well; `None` if that cannot be.
fn answer(route: &ApiRoute) -> Option<Value> {
    if route.is_reserved() {
        return None;
    }
    let one = if route.least == Least::Anybody {
        json!({ "type": "object" })
    } else {
        reference(route.answer)
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
    if let (Some(example), Some(media)) = (examples::answer(route), media.as_object_mut()) {
        media.insert("example".to_owned(), example);
    }
    let mut said = json!({ "description": route.words, "content": { "application/json": media } });
    if let Some(headers) = headers(route) {
        said["headers"] = headers;
    }
    Some(said)
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
    let in_query = route.query.iter().map(|field| {
        json!({
            "name": field.name, "in": "query", "required": field.absence == Absence::Never,
            "description": field.words, "schema": kind(field.kind),
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

/// A schema, by its name if it has one.
fn reference(fields: &'static [ApiField]) -> Value {
    let named = NAMED.iter().find(|(_, known)| std::ptr::eq(*known, fields));
    match named {
        Some((name, _)) => json!({ "$ref": format!("#/components/schemas/{name}") }),
        None => object(fields),
    }
}

/// The schema of an object with these members and no others.
fn object(fields: &'static [ApiField]) -> Value {
    let properties = fields.iter().map(|field| {
        let mut schema = match field.absence {
            Absence::Never => kind(field.kind),
            Absence::LeftOut | Absence::Null => or_null(kind(field.kind)),
        };
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), json!(field.words));
        }
        (field.name.to_owned(), schema)
    });
    let required = fields
        .iter()
        .filter(|field| field.absence != Absence::LeftOut);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    // A charge has members of its own, so that entries stay open.
    let open = std::ptr::eq(fields, shown::ENTRY);
    let mut schema = json!({
        "type": "object",
        "properties": Value::Object(properties.collect()),
        "additionalProperties": open,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn or_null(schema: Value) -> Value {
    match schema.get("type") {
        Some(Value::String(one)) => {
            let mut schema = schema.clone();
            schema["type"] = json!([one, "null"]);
            if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                words.push(Value::Null);
            }
            schema
        }
        _ if schema.get("$ref").is_some() => json!({ "anyOf": [schema, { "type": "null" }] }),
        _ => schema,
    }
}

fn kind(kind: FieldKind) -> Value {
    match kind {
        FieldKind::Text | FieldKind::Lines | FieldKind::Instant => json!({ "type": "string" }),
        FieldKind::Usd | FieldKind::Gross => {
            json!({ "type": "string", "pattern": "^[0-9]+([.][0-9]+)?$" })
        }
        FieldKind::Correction => {
            json!({ "type": "string", "pattern": "^[+-]?[0-9]+([.][0-9]+)?$" })
        }
        FieldKind::Count => json!({ "type": "integer", "minimum": 1 }),
        FieldKind::Number => json!({ "type": "integer", "minimum": 0 }),
        FieldKind::Flag => json!({ "type": "boolean" }),
        FieldKind::Word(words) => json!({ "type": "string", "enum": words }),
        FieldKind::Customer => json!({ "type": "string", "pattern": "^c_[0-9a-z]{10}$" }),
        FieldKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        FieldKind::Pairs => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        FieldKind::Object(fields) => reference(fields),
        FieldKind::List(fields) => json!({ "type": "array", "items": reference(fields) }),
        FieldKind::Any => json!({}),
    }
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

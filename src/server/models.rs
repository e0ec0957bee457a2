//! The lists of models, in the three shapes that clients read. Lists only models that the key may use, also at zero balance.
//!
//! Rows of docs/interface.md: `catalog_attributes`, `get_v1_models`, `get_native_v1_models`, `model_that_this_path_does_not_serve`,
//! `models_answer_without_a_balance`.

use std::sync::Arc;

use farebox_ledger::Key;
use farebox_protocol::{CallKind, Family};
use salvo::prelude::{Depot, Request, Response, handler};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::request_id::Arrival;
use super::{Front, auth, failure, router_list};
use crate::config::{Catalog, Lookup, Model, Price, Rates, ServedAs};
use crate::proxy::{Failure, RefusedFacts, offered};

/// Which of the lists of models is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelListing {
    /// `/v1/models`
    All,
    /// `/v1/models/{slug}`
    One,
    /// `/native/v1/models`
    Native,
    /// `/native/v1/models/{slug}`
    NativeOne,
}

/// The handler of one list.
pub(super) struct Models {
    front: Arc<Front>,
    list: ModelListing,
}

#[handler]
impl Models {
    pub(super) fn new(front: Arc<Front>, list: ModelListing) -> Self {
        Self { front, list }
    }

    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let family = if matches!(self.list, ModelListing::Native | ModelListing::NativeOne) {
            Family::Messages
        } else {
            Family::Chat
        };
        let mut known = RefusedFacts::on_free_path();
        match self.answer(req, depot, family, &mut known).await {
            Ok(body) => failure::json(res, body.to_string()),
            Err(failure) => {
                let arrival = Arrival::of(depot);
                failure::answer(
                    res,
                    &self.front.refused(failure, family, &arrival, known),
                    family,
                    &arrival,
                );
            }
        }
    }

    async fn answer(
        &self,
        req: &Request,
        depot: &Depot,
        family: Family,
        known: &mut RefusedFacts,
    ) -> Result<Value, Failure> {
        let key = auth::authenticate(&self.front, req, depot, family, known).await?;
        let _pass = self.front.rate_limits.enter_free(&key, Instant::now())?;
        let config = self.front.proxy.config.current();
        let catalog = offered(&config, &key)?;
        match self.list {
            ModelListing::All => Ok(openai(
                catalog,
                &key,
                req.query::<String>("client_version").is_some(),
            )),
            ModelListing::Native => Ok(native(catalog, &key)),
            ModelListing::One => one(catalog, &key, &slug(req), known).map(entry),
            ModelListing::NativeOne => one(catalog, &key, &slug(req), known).and_then(|model| {
                match model.route.serves(family) {
                    Some(_) => Ok(native_entry(model)),
                    None => Err(Failure::OtherPath(
                        model.slug.clone(),
                        model.best_path.public_path(),
                    )),
                }
            }),
        }
    }
}

fn allowed<'a>(catalog: &'a Catalog, key: &'a Key) -> impl Iterator<Item = &'a Arc<Model>> {
    let models = catalog.models.iter();
    models.filter(|model| key.settings.allows(&model.slug))
}

/// The models that callers of this family can use.
fn served<'a>(
    catalog: &'a Catalog,
    key: &'a Key,
    family: Family,
) -> impl Iterator<Item = &'a Arc<Model>> {
    allowed(catalog, key).filter(move |model| model.route.serves(family).is_some())
}

fn openai(catalog: &Catalog, key: &Key, with_slugs: bool) -> Value {
    let data: Vec<Value> = allowed(catalog, key).map(|model| entry(model)).collect();
    let mut list = json!({
        "object": "list",
        "total_count": data.len(),
        "links": { "next": null },
        "data": data,
    });
    if with_slugs {
        let models: Vec<Value> = served(catalog, key, Family::Responses)
            .map(|model| for_codex(model))
            .collect();
        list["models"] = Value::Array(models);
    }
    list
}

fn slug(req: &Request) -> String {
    req.param::<String>("slug")
        .unwrap_or_default()
        .trim_end_matches('/')
        .to_owned()
}

/// The model of this name, if the key may use it.
fn one<'a>(
    catalog: &'a Catalog,
    key: &Key,
    name: &str,
    known: &mut RefusedFacts,
) -> Result<&'a Model, Failure> {
    let found = catalog.find_among(name, |slug| key.settings.allows(slug));
    known.model(name, &found);
    match found {
        Lookup::Found(model) if key.settings.allows(&model.slug) => Ok(model),
        other => Err(Failure::no_model(name, other)),
    }
}

fn native(catalog: &Catalog, key: &Key) -> Value {
    let data: Vec<Value> = served(catalog, key, Family::Messages)
        .map(|model| native_entry(model))
        .collect();
    let id = |model: Option<&Value>| {
        model
            .and_then(|model| model.get("id").cloned())
            .unwrap_or(Value::Null)
    };
    let (first, last) = (id(data.first()), id(data.last()));
    json!({ "data": data, "has_more": false, "first_id": first, "last_id": last })
}

/// One entry of the native list: every member that the newest Anthropic libraries require, and null for what is not known here.
fn native_entry(model: &Model) -> Value {
    json!({
        "type": "model",
        "id": model.slug,
        "display_name": model.name,
        "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": model.limits.context,
        "max_tokens": model.limits.max_output,
        "lifecycle": "active",
        "deprecated_at": null,
        "retires_at": null,
        "line": null,
        "capabilities": null,
    })
}

/// One entry of the list that Codex asks for.
// It has no `base_instructions`, without which Codex takes no entry: with them Codex would send ours instead of its own.
fn for_codex(model: &Model) -> Value {
    json!({
        "slug": model.slug,
        "display_name": model.name,
        "context_window": model.limits.context,
        "max_context_window": model.limits.context,
        "input_modalities": router_list::inputs(model),
    })
}

/// One entry of the OpenAI list: the fields its readers and those of routers expect, plus the canonical columns and the capabilities.
fn entry(model: &Model) -> Value {
    // The same instant as in the native list: the member is a number, and when a model was made is not known here.
    let mut entry = json!({ "id": model.slug, "object": "model", "created": 1_767_225_600, "owned_by": model.provider });
    let details = json!({
        "capabilities": model.capabilities.iter().map(|capability| capability.name()).collect::<Vec<_>>(),
        "limits": {
            "context": model.limits.context,
            "max_output": model.route.call.is_none().then_some(model.limits.max_output),
        },
        "price": price(&model.price.base),
        "paths": paths(model),
    });
    let mut for_routers = router_list::members(model);
    if let Some(call) = model.route.call {
        of_call(&mut for_routers, call);
    }
    if let (Some(theirs), Value::Object(ours)) = (
        for_routers["pricing"].as_object_mut(),
        pricing(&model.price),
    ) {
        theirs.extend(ours);
    }
    for columns in [json!(model.row()), for_routers, details] {
        if let (Some(entry), Value::Object(columns)) = (entry.as_object_mut(), columns) {
            entry.extend(columns);
        }
    }
    entry
}

/// Of a call routers read that it answers with something else than text, and takes no fields of a conversation.
fn of_call(entry: &mut Value, call: CallKind) {
    let outputs = json!([call.name()]);
    entry["architecture"]["modality"] = json!(format!("text->{}", call.name()));
    entry["architecture"]["output_modalities"] = outputs.clone();
    entry["output_modalities"] = outputs;
    entry["supported_parameters"] = json!([]);
    entry["supported_sampling_parameters"] = json!([]);
}

/// How each family's callers are served: `direct`, `translated`, or not at all; and a call, of a model that is for one.
fn paths(model: &Model) -> Value {
    let served = |family: Family| {
        (
            family.name().to_owned(),
            json!(model.route.serves(family).map(ServedAs::name)),
        )
    };
    let call = model
        .route
        .call
        .map(|call| (call.name().to_owned(), json!(ServedAs::Direct.name())));
    Value::Object(Family::ALL.map(served).into_iter().chain(call).collect())
}

/// All prices, beside those that routers know: below every tier, above each, and in each class.
fn pricing(all: &Price) -> Value {
    let mut pricing = json!({ "standard": tiers(all) });
    for class in &all.classes {
        let mut of_class = tiers(&class.price);
        if let Some(most) = class.context {
            of_class["context"] = json!(most);
        }
        pricing[class.classes.name()] = of_class;
    }
    pricing
}

fn tiers(all: &Price) -> Value {
    let mut rates = price(&all.base);
    let tiers: Vec<Value> = all
        .tiers
        .iter()
        .map(|(above, rates)| json!({ "above_input": above, "price": price(rates) }))
        .collect();
    if !tiers.is_empty() {
        rates["tiers"] = json!(tiers);
    }
    rates
}

/// Exact USD per 1,000,000 tokens, per picture and per request.
pub(super) fn price(rates: &Rates) -> Value {
    let columns = rates.columns().into_iter();
    let sold = columns.filter_map(|column| Some((column.name.to_owned(), json!(column.usd()?))));
    Value::Object(sold.collect())
}

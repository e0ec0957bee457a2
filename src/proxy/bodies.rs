//! The bodies in which a request may be sent: the customer's own, and one for each family and each set of abilities that its other
//! targets have.
//!
//! They are encoded before money is held, so that the hold covers what is really sent; after the hold only model, limit and thinking
//! budget are written.

use bytes::Bytes;
use farebox_door::byte_room::ByteShare;
use farebox_protocol::translate::{self, Abilities, Losses, Memo};
use farebox_protocol::{BadRequest, Edits, Family, Inspection, SentCustomer};

use super::translation::Translation;
use super::{Failure, Request, capabilities, classes, documents, prompt};
use crate::billing::Calibrations;
use crate::clock;
use crate::config::{Capability, LimitBinds, Model, Target};
use crate::metering::{Ask, Estimate, Terms, estimate};
use crate::turns::Work;
use crate::upstream::Prepared;

/// The request encoded for one kind of foreign target.
#[derive(Debug)]
struct EncodedBody {
    family: Family,
    abilities: Abilities,
    body: Vec<u8>,
    seen: Inspection,
    memo: Memo,
    losses: Losses,
    estimate: Estimate,
    /// The output limit to write.
    limit: Option<u32>,
}

/// All bodies of a request; the customer's own stays with the request.
#[derive(Debug, Default)]
pub(super) struct RequestBodies {
    encoded: Vec<EncodedBody>,
    /// The body as received, seals included: answers repeat parts of it.
    original: Bytes,
    /// The size of the customer's own form.
    own: Estimate,
    /// Tokens of each answer that the customer predicts.
    predicted: u64,
}

impl RequestBodies {
    /// Encodes a request for its foreign targets. Targets that cannot carry it are left out.
    ///
    /// # Errors
    /// The first refusal, if no target is left; or there is no room for what was encoded.
    pub(super) async fn encode(
        request: &mut Request,
        (original, seen, own): (Bytes, &Inspection, Estimate),
        model: &Model,
    ) -> Result<Self, Failure> {
        let last = last_family(seen);
        let mut candidates = model.route.candidates_with_last(request.family, last);
        // No other family can be asked to write a cache and nothing else.
        candidates.retain(|(_, family)| !seen.prewarms || *family == request.family);
        let direct = candidates.iter().any(|(target, family)| {
            *family == request.family && classes::takes(target, *family, seen.classes)
        });
        let mut all = Self {
            encoded: Vec::new(),
            original,
            own,
            predicted: 0,
        };
        let mut refused = None;
        let mut carried: Vec<&Target> = Vec::new();
        for (target, family) in candidates
            .into_iter()
            .filter(|(_, family)| *family != request.family)
        {
            if carried.iter().any(|carried| std::ptr::eq(*carried, target)) {
                continue;
            }
            let abilities = model.abilities_of(target, family);
            // Targets of one family with the same abilities share a body; only model and limit are written for each.
            if all.find(family, &abilities).is_some() {
                carried.push(target);
                continue;
            }
            let (work, caller) = (&mut request.work, request.family);
            match EncodedBody::encode(work, &all.original, caller, family, abilities, model).await?
            {
                Ok(form) => {
                    all.encoded.push(form);
                    carried.push(target);
                }
                Err(bad) => refused = refused.or(Some(bad)),
            }
        }
        match refused {
            Some(bad) if !direct && all.encoded.is_empty() => Err(Failure::BadRequest(bad)),
            None if !direct && all.encoded.is_empty() => {
                Err(Failure::BadRequest(if seen.prewarms {
                    no_prewarm(model)
                } else {
                    classes::no_target(model, request.family, seen.classes)
                }))
            }
            _ => {
                let fits = all.take_room(request.body.len(), request.room.as_mut());
                fits.then_some(all).ok_or(Failure::Overloaded)
            }
        }
    }

    /// Has a tokenizer count the encoded prompts, as it did the customer's own.
    ///
    /// # Errors
    /// The customer's turn does not come.
    pub(super) async fn count(
        &mut self,
        work: &mut Work,
        model: &Model,
        calibrations: &Calibrations,
    ) -> Result<(), Failure> {
        for form in &mut self.encoded {
            let (tokens, most) = prompt::prompt(work, &mut form.seen, model).await?;
            let corrected = calibrations.corrected(model, tokens);
            form.estimate = form.estimate.counted((corrected, most), &model.limits);
        }
        Ok(())
    }

    /// Counts the encoded bodies as bytes in flight, in addition to the original body; false if there is no room for them.
    fn take_room(&self, original: usize, room: Option<&mut ByteShare>) -> bool {
        let bytes = self
            .encoded
            .iter()
            .fold(original, |sum, form| sum.saturating_add(form.body.len()));
        room.is_none_or(|room| room.grow_to(bytes))
    }

    fn find(&self, family: Family, abilities: &Abilities) -> Option<&EncodedBody> {
        let mut all = self.encoded.iter();
        all.find(|form| form.family == family && form.abilities == *abilities)
    }

    fn find_mut(
        &mut self,
        target: &Target,
        family: Family,
        model: &Model,
    ) -> Option<&mut EncodedBody> {
        let abilities = model.abilities_of(target, family);
        let mut all = self.encoded.iter_mut();
        all.find(|form| form.family == family && form.abilities == abilities)
    }

    /// Notes how much of each answer the customer predicts.
    pub(super) fn predict(&mut self, tokens: u64) {
        self.predicted = tokens;
    }

    /// Whether it was encoded for a target before the hold.
    pub(super) fn has(&self, target: &Target, family: Family, model: &Model) -> bool {
        let abilities = model.abilities_of(target, family);
        self.find(family, &abilities).is_some()
    }

    /// Encodes the request for a target that has named this family's path; `None` when it cannot be carried there as it was sold (a family
    /// with a smallest limit may produce more than was declared), or there is no room for it.
    pub(super) fn encode_late(
        &mut self,
        (target, family): (&Target, Family),
        (caller, declared): (Family, Option<u32>),
        (model, room): (&Model, Option<&mut ByteShare>),
    ) -> Option<()> {
        let abilities = model.abilities_of(target, family);
        if self.find(family, &abilities).is_some() {
            return Some(());
        }
        let encoded = encoded(&self.original, caller, family, &model.slug, &abilities).ok()?;
        let form = EncodedBody::new(family, abilities, encoded, model);
        if declared.is_some_and(|declared| form.seen.limit > Some(declared)) {
            return None;
        }
        self.encoded.push(form);
        self.take_room(self.original.len(), room).then_some(())
    }

    /// What decides what the request is held at for a target; `None` when that cannot carry it.
    pub(super) fn ask(
        &self,
        (target, family): (&Target, Family),
        request: &Request,
        seen: &Inspection,
        (model, calibrations): (&Model, &Calibrations),
    ) -> Option<Ask> {
        let direct = family == request.family;
        let (sent, estimate) = if direct {
            (seen, self.own)
        } else {
            let form = self.find(family, &model.abilities_of(target, family))?;
            // A tokenizer may have counted the customer's own form.
            let estimate = form.estimate.at_least(self.own.known, &model.limits);
            (&form.seen, estimate)
        };
        let name = target.name();
        let learned = calibrations.learned(&name, seen.classes, None);
        let unsaid = if learned.limit_proved {
            LimitBinds::All
        } else {
            LimitBinds::Text
        };
        Some(Ask {
            // A family with a smallest limit may be sent more, but no more than this is sold.
            declared: seen.limit,
            choices: seen.choices,
            // Of a translated request it is adapted to the limit.
            thinking_budget: sent.thinking_budget,
            reasons: sent.thinking.hidden
                || (model.can(Capability::Reasoning) && !sent.thinking.off),
            formed: seen.formed,
            // No other family has predictions.
            predicted: if direct { self.predicted } else { 0 },
            images: sent.content.pictures.len() as u64,
            lifetimes: prompt::lifetimes(sent),
            classes: seen.classes,
            writes: sent.cache_marked || seen.prewarms || learned.writes_unmarked,
            compacts_from: sent.compacts_from,
            estimate,
            cached: None,
            binds: target.limit.unwrap_or(unsaid),
            excess: calibrations.excess(&name, request.customer, clock::now()),
        })
    }

    /// The limit that a target may be sent, if it is larger than the declared one, because its family has a smallest limit.
    pub(super) fn raised(&self, declared: Option<u32>) -> Option<u32> {
        let largest = self.encoded.iter().filter_map(|form| form.seen.limit).max();
        largest.filter(|largest| declared.is_some_and(|declared| declared < *largest))
    }

    /// Whether a target can be sent the request, in this family.
    pub(super) fn carries(
        &self,
        target: &Target,
        family: Family,
        (caller, seen): (Family, &Inspection),
        model: &Model,
    ) -> bool {
        capabilities::carries(target, &seen.content)
            && match family == caller {
                true => classes::takes(target, family, seen.classes),
                false => self
                    .find(family, &model.abilities_of(target, family))
                    .is_some(),
            }
    }

    /// The request for a foreign target; `None` when the target cannot carry it.
    pub(super) fn prepare(
        &mut self,
        (target, family): (&Target, Family),
        (ask, terms): (&Ask, &Terms),
        model: &Model,
        (pin, customer): (&[&'static str], Option<SentCustomer<'_>>),
    ) -> Option<Prepared> {
        let form = self.find_mut(target, family, model)?;
        form.fit_limit(ask, terms, model);
        let limit_field = family.protocol().limit_field(target.fit.chat_limit, None);
        let edits = Edits {
            model: &target.model,
            limit_field,
            limit: form.limit,
            fit: &target.fit,
            translated: true,
            pin,
            customer,
        };
        let body = family.protocol().patch(&form.body, &form.seen, &edits);
        let mut headers = Vec::new();
        classes::add_headers(&mut headers, family, form.seen.classes);
        Some(Prepared {
            body: vec![Bytes::from(body)],
            headers,
            parts: 0,
            streams: form.seen.stream,
            pinned: form.seen.pinned(pin),
        })
    }

    /// The form for the answering target: what its answer needs, what was lost, and the facts of what was sent. Drops the other
    /// forms. `asked` is the name by which the customer asked for the model.
    pub(super) fn take(
        &mut self,
        request: &Request,
        target: &Target,
        family: Family,
        (model, asked): (&Model, &str),
    ) -> Option<(Translation, Losses, Inspection)> {
        let abilities = model.abilities_of(target, family);
        let all = std::mem::take(self);
        let mut forms = all.encoded.into_iter();
        let mut form = forms.find(|form| form.family == family && form.abilities == abilities)?;
        let limit_field = family.protocol().limit_field(target.fit.chat_limit, None);
        let edits = Edits {
            limit_field,
            fit: &target.fit,
            translated: true,
            ..Edits::default()
        };
        let fitted = family.protocol().fitted(&form.body, &form.seen, &edits);
        form.losses.merge(&fitted.losses);
        let translation = Translation {
            family,
            caller: request.family,
            memo: form.memo,
            original: all.original,
            model: asked.to_owned(),
            id: request.id.to_string(),
            created: request.at.millis() / 1_000,
        };
        Some((translation, form.losses, form.seen))
    }
}

impl EncodedBody {
    /// Encodes a request for a kind of target; inside, why it cannot be.
    async fn encode(
        work: &mut Work,
        original: &Bytes,
        caller: Family,
        family: Family,
        abilities: Abilities,
        model: &Model,
    ) -> Result<Result<Self, BadRequest>, Failure> {
        // A placeholder for each target's own model name.
        let (slug, body) = (model.slug.clone(), original.clone());
        let encoding = work.read(original.len(), move || {
            let encoded = encoded(&body, caller, family, &slug, &abilities);
            (encoded, abilities)
        });
        let (encoded, abilities) = encoding.await?;
        let (mut translated, mut seen) = match encoded {
            Ok(encoded) => encoded,
            Err(bad) => return Ok(Err(bad)),
        };
        let body = Bytes::from(std::mem::take(&mut translated.body));
        documents::read(work, &body, &mut seen).await?;
        translated.body = body.into();
        Ok(Ok(Self::new(family, abilities, (translated, seen), model)))
    }

    fn new(
        family: Family,
        abilities: Abilities,
        (translated, seen): (translate::Translated, Inspection),
        model: &Model,
    ) -> Self {
        let translate::Translated { body, memo, losses } = translated;
        Self {
            family,
            abilities,
            body,
            memo,
            losses,
            estimate: estimate::input(&seen.content, &model.limits),
            seen,
            limit: None,
        }
    }

    /// Writes a limit, and a thinking budget that fits under it.
    fn fit_limit(&mut self, ask: &Ask, terms: &Terms, model: &Model) {
        // A declared limit was encoded already, raised where a family has a smallest one: only a lowered one is written over it.
        // Without one, the family may demand a limit, and the context must hold it.
        let demanded = self.seen.limit.filter(|_| ask.declared.is_none());
        let demanded = demanded.map(|limit| ask.within_context(limit.into(), &model.limits));
        self.limit = terms.written.or(demanded);
        let Some(limit) = self.limit.or(self.seen.limit) else {
            return;
        };
        let Some((body, off)) = translate::fit_budget(self.family, &self.body, limit) else {
            return;
        };
        // A budget changes the body's length, so the places to splice are found anew.
        let Ok(seen) = self.family.protocol().inspect(&body, clock::seed()) else {
            return;
        };
        (self.body, self.seen) = (body, seen);
        if off {
            self.losses.add("thinking", "off(limit)");
        }
    }
}

/// Refuses to warm a cache where no target speaks the customer's family.
fn no_prewarm(model: &Model) -> BadRequest {
    BadRequest {
        code: Some("unsupported_by_model"),
        ..BadRequest::new(format!(
            "{} is served through another family, in which a cache cannot be warmed without an answer; ask for one",
            model.slug
        ))
    }
}

/// A request in another family, and its facts.
fn encoded(
    original: &[u8],
    caller: Family,
    family: Family,
    slug: &str,
    abilities: &Abilities,
) -> Result<(translate::Translated, Inspection), BadRequest> {
    let target = translate::EncodeTarget {
        model: slug,
        abilities,
    };
    let translated = translate::request(caller, family, original, &target)?;
    let seen = family
        .protocol()
        .inspect(&translated.body, clock::seed())
        .inspect_err(|bad| {
            tracing::error!(%slug, %caller, %family, param = bad.param, "a translated request is not valid");
        })?;
    Ok((translated, seen))
}

/// The family whose targets are asked last: one that knows no stop strings, if the request has any.
pub(super) fn last_family(seen: &Inspection) -> Option<Family> {
    translate::without_stops().filter(|_| seen.has_stops)
}

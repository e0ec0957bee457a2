//! Requests for targets of another family, and their answers on the way back.
//!
//! A request is encoded for every foreign target before money is held, so that the hold covers what is really sent; after the hold
//! only model, limit and thinking budget are written. Usage never comes from here: the reader of the target's family counts, and
//! the settled counts are written into the answer.

use bytes::Bytes;
use farebox_protocol::translate::{self, Abilities, Losses, Memo, Translator, Wish};
use farebox_protocol::{BadRequest, Edits, ErrorBody, Family, Frame, Inspection, Usage, UsageWish};

use super::calibration::Calibrations;
use super::{Failure, Request, asked, classes, documents};
use crate::clock;
use crate::config::{Model, Target};
use crate::metering::terms::{Ask, SMALLEST_OUTPUT};
use crate::metering::{Estimate, Lifetimes, Terms, estimate};
use crate::turns::Work;
use crate::upstream::Prepared;
use crate::upstream::redact::{self, Redacted};

/// The request encoded for one kind of foreign target.
#[derive(Debug)]
struct Form {
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

/// All encodings of a request besides the customer's own.
#[derive(Debug, Default)]
pub(super) struct Forms {
    forms: Vec<Form>,
    /// Whether some target speaks the customer's family and gets the original bytes.
    direct: bool,
    /// The body as received, seals included: answers repeat parts of it.
    original: Bytes,
}

/// What the answer to a translated request needs.
#[derive(Debug)]
pub(super) struct Translation {
    /// The family of the target.
    family: Family,
    caller: Family,
    memo: Memo,
    original: Bytes,
    slug: String,
    id: String,
    created: i64,
}

impl Forms {
    /// Encodes a request for its foreign targets. Targets that cannot carry it are left out.
    ///
    /// # Errors
    /// The first refusal, if no target is left.
    pub(super) async fn of(
        request: &mut Request,
        (original, seen): (Bytes, &Inspection),
        model: &Model,
        last: Option<Family>,
    ) -> Result<Self, Failure> {
        let mut candidates = model.route.candidates_with_last(request.family, last);
        // No other family can be asked to write a cache and nothing else.
        candidates.retain(|(_, family)| !seen.prewarms || *family == request.family);
        let direct = candidates.iter().any(|(target, family)| {
            *family == request.family && classes::takes(target, *family, seen.classes)
        });
        let mut all = Self {
            forms: Vec::new(),
            direct,
            original,
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
            if all.find(family, &abilities).is_some() {
                carried.push(target);
                continue;
            }
            let (work, caller) = (&mut request.work, request.family);
            match Form::encode(work, &all.original, caller, family, abilities, model).await? {
                Ok(form) => {
                    all.forms.push(form);
                    carried.push(target);
                }
                Err(bad) => refused = refused.or(Some(bad)),
            }
        }
        match refused {
            Some(bad) if !direct && all.forms.is_empty() => Err(Failure::BadRequest(bad)),
            None if !direct && all.forms.is_empty() => Err(Failure::BadRequest(if seen.prewarms {
                no_prewarm(model)
            } else {
                classes::no_target(model, request.family, seen.classes)
            })),
            _ => Ok(all),
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
        for form in &mut self.forms {
            let tokens = asked::prompt(work, &mut form.seen, model).await?;
            let corrected = calibrations.corrected(model, tokens);
            form.estimate = form.estimate.counted(corrected, &model.limits);
        }
        Ok(())
    }

    /// Counts the encoded bodies as bytes in flight, in addition to the original body.
    ///
    /// # Errors
    /// There is no room for them.
    pub(super) fn take_room(&self, request: &mut Request) -> Result<(), Failure> {
        let bytes = self.forms.iter().fold(request.body.len(), |sum, form| {
            sum.saturating_add(form.body.len())
        });
        let fits = request.room.as_mut().is_none_or(|room| room.grow_to(bytes));
        if fits {
            Ok(())
        } else {
            Err(Failure::Overloaded)
        }
    }

    fn find(&self, family: Family, abilities: &Abilities) -> Option<&Form> {
        self.forms
            .iter()
            .find(|form| form.family == family && form.abilities == *abilities)
    }

    /// What the hold must cover: the most expensive of all forms in which the request may be sent.
    pub(super) fn ask(
        &self,
        request: &Request,
        seen: &Inspection,
        (own, predicted): (Estimate, u64),
        model: &Model,
    ) -> Ask {
        let limits = &model.limits;
        let reasons_outside = model
            .route
            .targets
            .iter()
            .any(|target| target.provider.reasoning_outside);
        let forms = self.forms.iter().map(|form| (&form.seen, form.estimate));
        let going = || {
            self.direct
                .then_some((seen, own))
                .into_iter()
                .chain(forms.clone())
        };
        let dearest = going()
            .map(|(_, estimate)| estimate)
            .reduce(Estimate::dearer)
            .unwrap_or(own);
        Ask {
            stream: seen.stream,
            // A family with a smallest limit may be sent more, but no more than this is sold.
            declared: seen.limit,
            choices: seen.choices,
            // A translated request's thinking budget is adapted to its limit.
            thinking_budget: seen.thinking_budget.filter(|_| self.direct),
            // No other family has predictions.
            predicted: if self.direct { predicted } else { 0 },
            images: going()
                .map(|(seen, _)| seen.content.pictures.len() as u64)
                .max()
                .unwrap_or(0),
            lifetimes: Lifetimes {
                hour: going().any(|(seen, _)| seen.one_hour_cache),
                half_day: going().any(|(seen, _)| seen.half_day_cache),
            },
            classes: seen.classes,
            cache_marked: going().any(|(seen, _)| seen.cache_marked || seen.prewarms),
            compacts_from: going().filter_map(|(seen, _)| seen.compacts_from).min(),
            in_flight: request.pass.running,
            // A tokenizer may have counted the customer's own form.
            estimate: dearest.at_least(own.known, limits),
            reasons_outside,
            unseen: false,
        }
    }

    /// The limit that a target may be sent, if it is larger than the declared one, because its family has a smallest limit.
    pub(super) fn raised(&self, declared: Option<u32>) -> Option<u32> {
        let largest = self.forms.iter().filter_map(|form| form.seen.limit).max();
        largest.filter(|largest| declared.is_some_and(|declared| declared < *largest))
    }

    /// The target that is asked first, and what it is sent.
    pub(super) fn first<'a>(
        &'a self,
        caller: Family,
        seen: &'a Inspection,
        model: &'a Model,
    ) -> Option<(&'a Target, &'a Inspection)> {
        let last = super::last_family(seen);
        let candidates = model.route.candidates_with_last(caller, last);
        candidates.into_iter().find_map(|(target, family)| {
            let sent = self.sent_to(target, family, (caller, seen), model)?;
            Some((target, sent))
        })
    }

    /// What a target is sent; `None` when it cannot carry the request.
    pub(super) fn sent_to<'a>(
        &'a self,
        target: &Target,
        family: Family,
        (caller, seen): (Family, &'a Inspection),
        model: &Model,
    ) -> Option<&'a Inspection> {
        if family == caller {
            return Some(seen);
        }
        let form = self.find(family, &model.abilities_of(target, family))?;
        Some(&form.seen)
    }

    /// Writes what the balance allows: each form's limit, and a thinking budget that fits under it.
    pub(super) fn limit(&mut self, terms: &Terms, declared: Option<u32>, model: &Model) {
        for form in &mut self.forms {
            form.limit = match (terms.limit, declared) {
                (limit, Some(_)) => limit,
                (limit, None) => limit
                    .or(form.seen.limit)
                    .map(|limit| limit.min(form.room(model))),
            };
            let Some(limit) = form.limit.or(form.seen.limit) else {
                continue;
            };
            let Some((body, off)) = translate::fit_budget(form.family, &form.body, limit) else {
                continue;
            };
            let Ok(seen) = form.family.protocol().inspect(&body, clock::seed()) else {
                continue;
            };
            (form.body, form.seen) = (body, seen);
            if off {
                form.losses.add("thinking", "off(limit)");
            }
        }
    }

    /// The request for a foreign target; `None` when the target cannot carry it.
    pub(super) fn prepare(
        &self,
        target: &Target,
        family: Family,
        model: &Model,
        pin: &[&'static str],
    ) -> Option<Prepared> {
        let form = self.find(family, &model.abilities_of(target, family))?;
        let limit_field = family.protocol().limit_field(target.chat_limit(), None);
        // The encoder wrote every member itself, so a provider's `pass` list for another family does not apply.
        let edits = Edits {
            model: &target.model,
            limit_field,
            limit: form.limit,
            pass: &form.seen.unknown,
            leave_out: &target.leave_out(),
            pin,
            ..Edits::default()
        };
        let body = family.protocol().patch(&form.body, &form.seen, &edits);
        let mut headers = Vec::new();
        classes::add_headers(&mut headers, family, form.seen.classes);
        Some(Prepared {
            body: vec![Bytes::from(body)],
            headers,
            streams: form.seen.stream,
            pinned: form.seen.pinned(pin),
        })
    }

    /// The form for the answering target: what its answer needs, what was lost, and the facts of what was sent. Drops the other
    /// forms.
    pub(super) fn take(
        &mut self,
        request: &Request,
        target: &Target,
        family: Family,
        model: &Model,
    ) -> Option<(Translation, Losses, Inspection)> {
        let abilities = model.abilities_of(target, family);
        let all = std::mem::take(self);
        let form = all
            .forms
            .into_iter()
            .find(|form| form.family == family && form.abilities == abilities)?;
        let translation = Translation {
            family,
            caller: request.family,
            memo: form.memo,
            original: all.original,
            slug: model.slug.clone(),
            id: request.id.to_string(),
            created: request.at.millis() / 1_000,
        };
        Some((translation, form.losses, form.seen))
    }
}

impl Form {
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
        let (translated, mut seen) = match encoded {
            Ok(encoded) => encoded,
            Err(bad) => return Ok(Err(bad)),
        };
        let translate::Translated { body, memo, losses } = translated;
        let body = Bytes::from(body);
        documents::read(work, &body, &mut seen).await?;
        let estimate = estimate::input(&seen.content, &model.limits);
        Ok(Ok(Self {
            family,
            abilities,
            body: body.into(),
            seen,
            memo,
            losses,
            estimate,
            limit: None,
        }))
    }

    /// The largest limit to write if the customer declared none: what is certain to fit the context. A long conversation, whose
    /// bytes say little about its tokens, still gets room for an ordinary answer.
    fn room(&self, model: &Model) -> u32 {
        let (context, estimate) = (model.limits.context, &self.estimate);
        let surely = context.saturating_sub(estimate.ceiling);
        let likely = context
            .saturating_sub(estimate.input)
            .min(u64::from(model.limits.default_output));
        u32::try_from(surely.max(likely).max(SMALLEST_OUTPUT)).unwrap_or(u32::MAX)
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
    let target = translate::Target {
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

impl Translation {
    fn wish(&self) -> Wish<'_> {
        Wish {
            slug: &self.slug,
            id: &self.id,
            created: self.created,
            request: &self.original,
        }
    }

    /// The id under which the customer sees the answer.
    pub(super) fn answer_id(&self) -> Redacted {
        redact::plain(&translate::answer_id(self.caller, &self.id))
    }

    /// A whole answer; `None` when it is broken.
    pub(super) fn read(&self, body: &[u8]) -> Option<translate::Answer> {
        Some(translate::read_answer(self.family, body))
            .filter(|answer| !matches!(answer.end, Some(Err(_))))
    }

    /// What the customer does not get of a whole answer.
    pub(super) fn losses(&self, answer: &translate::Answer) -> Losses {
        translate::answer_losses(self.caller, answer)
    }

    /// The whole answer as the customer gets it, with settled counts.
    pub(super) fn write(
        &self,
        answer: &translate::Answer,
        usage: &Usage,
        asked: UsageWish<'_>,
    ) -> Bytes {
        Bytes::from(translate::write_answer(
            self.caller,
            answer,
            &self.memo,
            &self.wish(),
            usage,
            asked,
        ))
    }

    /// A translator for its streamed answer, of which the customer gets the frames, or all of it at its end.
    pub(super) fn stream(self, frames: bool) -> Box<Streamed> {
        let answer_id = self.answer_id();
        let translator = if frames {
            Translator::new
        } else {
            Translator::folding
        };
        let translator = translator(self.family, self.caller, self.memo.clone(), &self.wish());
        Box::new(Streamed {
            translator,
            answer_id,
        })
    }
}

/// One streamed answer on its way back.
#[derive(Debug)]
pub(super) struct Streamed {
    translator: Translator,
    /// The id under which the customer sees the answer.
    pub(super) answer_id: Redacted,
}

impl Streamed {
    /// What the customer gets for a frame, if anything.
    pub(super) fn frame(&mut self, frame: &Frame) -> Option<Bytes> {
        some(self.translator.frame(frame))
    }

    /// What the customer gets while the upstream is silent.
    pub(super) fn ping(&mut self) -> Bytes {
        Bytes::copy_from_slice(self.translator.ping())
    }

    /// Ends the upstream's stream; returns what is still to be sent before the end.
    pub(super) fn end(&mut self) -> Option<Bytes> {
        some(self.translator.end())
    }

    /// Whether the frames so far form no valid answer, whatever their end says.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.translator.ended(), Some(Err(_)))
    }

    /// Whether a stop string has ended the answer that the customer gets, while its target goes on.
    pub(super) fn has_stopped(&self) -> bool {
        self.translator.has_stopped()
    }

    /// What the customer has lost of the answer so far.
    pub(super) fn losses(&self) -> Losses {
        self.translator.losses()
    }

    /// The end of a complete answer, with settled counts.
    pub(super) fn finish(&mut self, usage: &Usage, wish: UsageWish<'_>) -> Bytes {
        Bytes::from(self.translator.finish(usage, wish))
    }

    /// The end of an answer that we cut off.
    pub(super) fn cut(&mut self, words: Option<&str>, usage: &Usage, wish: UsageWish<'_>) -> Bytes {
        Bytes::from(self.translator.cut(words, usage, wish))
    }

    /// The end of an answer that broke.
    pub(super) fn fail(&mut self, error: &ErrorBody) -> Bytes {
        Bytes::from(self.translator.fail(error))
    }
}

fn some(bytes: &[u8]) -> Option<Bytes> {
    (!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes))
}

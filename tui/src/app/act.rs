//! The life of an act: form, review, sending, outcome. Only `y` in a review sends, and only once.
//!
//! After a known refusal the form can be edited again under a new operation id. After an unknown outcome the same operation is
//! queried until its outcome is known; sending it again uses the same id.

use std::path::PathBuf;

use farebox_ledger::{LinkToken, OperationId, Scope};
use farebox_selling::NewSecret;
use serde_json::Value;

use super::form::{FinishedForm, Form, FormPurpose};
use super::message::Effect;
use super::modal::{
    ActOutcome, ActReview, ApplyError, Hidden, Modal, OutcomeLookup, Receipt, RequestPage,
    SecretPage, ShownOnce, Unknown,
};
use super::party::Party;
use super::{Action, ConsoleApp};
use crate::acts::{MOVE, NEW_CUSTOMER, NEW_KEY};
use crate::field::TextField;
use crate::plan::{ActPlan, Pending};

/// No page has more lines to scroll past.
const LONGEST: u16 = 500;

/// The first visible line after a step.
fn scrolled(from: u16, step: i16) -> u16 {
    from.saturating_add_signed(step).min(LONGEST)
}

/// Reads a key or customer again.
pub(super) fn reread(of: Scope) -> Effect {
    match of {
        Scope::Key(key) => Effect::Visible(vec![key]),
        Scope::Customer(customer) => Effect::VisibleCustomers(vec![customer]),
    }
}

/// The word that closes a secret's page.
pub(crate) const SAVED: &str = "saved";

impl ConsoleApp {
    /// Handles a key on a page over the screen.
    pub(crate) fn in_modal(&mut self, action: Action) -> Vec<Effect> {
        if let Some(lines) = self.help.as_mut() {
            match action {
                Action::Scroll(step) => *lines = lines.saturating_add_signed(step).min(150),
                _ => self.help = None,
            }
            return Vec::new();
        }
        match self.modal.take() {
            Some(Modal::Form(form)) => self.in_form(form, &action),
            Some(Modal::Review(review)) => self.in_review(review, &action),
            Some(Modal::Secret(page)) => self.in_secret(page, &action),
            Some(Modal::Unknown(unknown)) => self.in_unknown(unknown, &action),
            Some(Modal::Operations(selected)) => self.in_operations(selected, &action),
            Some(Modal::Request(page)) => self.in_request(page, &action),
            Some(Modal::Find(page)) => self.in_find(page, &action),
            Some(Modal::Bulk(act)) => self.in_bulk(act, &action),
            Some(Modal::Reading(mut page)) => {
                match action {
                    Action::Escape | Action::Enter => return Vec::new(),
                    Action::Scroll(step) => page.scroll = scrolled(page.scroll, step),
                    _ => {}
                }
                self.modal = Some(Modal::Reading(page));
                Vec::new()
            }
            Some(Modal::Receipt(receipt)) => {
                match action {
                    Action::Escape | Action::Enter => {}
                    Action::Letter('c') => {
                        let id = format!("op_{}", receipt.pending.operation);
                        self.modal = Some(Modal::Receipt(receipt));
                        return vec![Effect::Copy(Hidden(id))];
                    }
                    _ => self.modal = Some(Modal::Receipt(receipt)),
                }
                Vec::new()
            }
            // While it is being sent nothing can be changed, least of all sent a second time.
            other => {
                self.modal = other;
                Vec::new()
            }
        }
    }

    fn in_request(&mut self, mut page: RequestPage, action: &Action) -> Vec<Effect> {
        let mut effects = Vec::new();
        match (action, page.of) {
            (Action::Escape | Action::Enter, _) => return effects,
            (Action::Letter('K'), Some(of)) => return self.open_party(of),
            (Action::Letter('c'), _) => {
                effects.push(Effect::Copy(Hidden(format!("req_{}", page.request))));
            }
            (Action::Scroll(step), _) => page.scroll = scrolled(page.scroll, *step),
            _ => {}
        }
        self.modal = Some(Modal::Request(page));
        effects
    }

    fn in_form(&mut self, mut form: Form, action: &Action) -> Vec<Effect> {
        match action {
            Action::Escape => return Vec::new(),
            Action::Edit(edit) => form.edit(edit),
            Action::Next => form.step(true),
            Action::Previous => form.step(false),
            Action::Enter if !form.at_last() => form.step(true),
            Action::Enter | Action::Submit => match form.finish() {
                None => {}
                Some(FinishedForm::Act(plan)) => {
                    let FormPurpose::Act(act) = &form.purpose else {
                        return Vec::new();
                    };
                    let (about, marked) = (act.about.clone(), act.marked);
                    return self.show_review(plan, about, Some(form), marked);
                }
                Some(FinishedForm::Export { what, json, path }) => {
                    self.say("exporting …", false);
                    return vec![Effect::Export {
                        what,
                        filter: self.keys.filter.clone(),
                        json,
                        path: PathBuf::from(path),
                    }];
                }
                Some(FinishedForm::SaveSecret { .. }) => {}
            },
            _ => {}
        }
        self.modal = Some(Modal::Form(form));
        Vec::new()
    }

    /// Shows the review of an act, which reads again what it is about: its balance is the one of now, not of when a form was opened.
    pub(super) fn show_review(
        &mut self,
        plan: ActPlan,
        about: Option<Party>,
        form: Option<Form>,
        marked: usize,
    ) -> Vec<Effect> {
        if marked > 0 {
            return self.review_bulk(plan, form);
        }
        let new = [&NEW_KEY, &NEW_CUSTOMER].contains(&plan.kind);
        let label = match plan.body.get("label").filter(|_| new) {
            Some(Value::String(label)) => label.clone(),
            _ => (about.as_ref()).map_or_else(String::new, |about| about.label().to_owned()),
        };
        let operation = form.as_ref().map(|form| form.operation);
        let pending = Pending {
            operation: operation.unwrap_or_else(|| self.new_operation()),
            plan,
            label,
            actor: self.options.operator.clone(),
            at: self.now,
        };
        let effects = about.as_ref().map(|about| reread(about.scope()));
        self.modal = Some(Modal::Review(ActReview {
            form,
            pending,
            about,
        }));
        effects.into_iter().collect()
    }

    fn in_review(&mut self, mut review: ActReview, action: &Action) -> Vec<Effect> {
        match action {
            Action::Yes => {
                review.pending.at = self.now;
                let send = Effect::Apply(Box::new(review.pending.clone()));
                self.modal = Some(Modal::Sending(review));
                vec![send]
            }
            // The cursor is on Cancel: enter does what esc does.
            Action::Escape | Action::Enter => {
                self.modal = review.form.map(Modal::Form);
                Vec::new()
            }
            _ => {
                self.modal = Some(Modal::Review(review));
                Vec::new()
            }
        }
    }

    /// The answer to an act that was sent.
    pub(crate) fn applied(
        &mut self,
        operation: OperationId,
        result: Result<ActOutcome, ApplyError>,
    ) -> Vec<Effect> {
        if let Some(effects) = self.bulk_applied(operation, &result) {
            return effects;
        }
        self.dirty = true;
        let review = match self.modal.take() {
            Some(Modal::Sending(review)) if review.pending.operation == operation => review,
            Some(Modal::Unknown(unknown)) if unknown.review.pending.operation == operation => {
                unknown.review
            }
            other => {
                self.modal = other;
                return Vec::new();
            }
        };
        match result {
            Ok(outcome) => self.done(review, outcome),
            Err(ApplyError::Unknown(problem)) => {
                let pending = Box::new(review.pending.clone());
                self.modal = Some(Modal::Unknown(Unknown {
                    review,
                    problem,
                    tries: 0,
                    not_applied: false,
                }));
                vec![Effect::Resolve(pending)]
            }
            Err(ApplyError::No(problem)) => {
                match review.form {
                    Some(mut form) => {
                        form.error = Some(format!("not applied: {problem}"));
                        form.operation = self.new_operation();
                        self.modal = Some(Modal::Form(form));
                    }
                    None => self.say(format!("not applied: {problem}"), true),
                }
                Vec::new()
            }
        }
    }

    fn done(&mut self, review: ActReview, mut outcome: ActOutcome) -> Vec<Effect> {
        let pending = review.pending;
        outcome.about = outcome.about.or(review.about);
        self.operations
            .retain(|listed| listed.open.id() != Some(pending.operation));
        let (kind, of) = (pending.plan.kind, outcome.about.as_ref().map(Party::scope));
        let mut effects = vec![Effect::Forget(pending.operation)];
        let named = pending.plan.of.filter(|named| Some(*named) != of);
        effects.extend(of.into_iter().chain(named).map(reread));
        match of {
            Some(Scope::Key(id)) if *kind == NEW_KEY => {
                let all = self.keys.request(super::keys::From::Start, true, false);
                effects.push(Effect::LoadKeys(all));
                self.keys.wanted = Some(id);
            }
            Some(Scope::Customer(id)) if *kind == NEW_CUSTOMER => {
                self.customers.want(id);
                let all = self.customers.request(false, false);
                effects.push(Effect::LoadCustomers(all));
            }
            // The other side of a move.
            _ if *kind == MOVE => {
                let into = pending.plan.body.get("into").and_then(Value::as_str);
                let into = into.and_then(|into| into.parse().ok());
                effects.push(Effect::VisibleCustomers(into.into_iter().collect()));
            }
            _ => {}
        }
        // A new key is on its customer's page, a payment on that of its key.
        if let Some(detail) = self.detail.as_ref().filter(|_| self.detail_open) {
            effects.push(Effect::LoadDetail {
                of: detail.of,
                debounce: false,
            });
        }
        self.modal = Some(self.outcome_page(pending, outcome));
        effects
    }

    /// The page that shows an outcome: a secret or link to hand over, else a receipt.
    fn outcome_page(&self, pending: Pending, outcome: ActOutcome) -> Modal {
        let new = *pending.plan.kind == NEW_KEY;
        match (outcome.shown_once, outcome.about) {
            (Some(NewSecret::Secret(secret)), Some(Party::Key(key))) => {
                Modal::Secret(SecretPage::new(key, ShownOnce::Secret(secret), new))
            }
            (Some(NewSecret::Link(token)), Some(Party::Key(key))) => {
                let link = Hidden(token.url(self.public_url()));
                let expires = LinkToken::expires(pending.at);
                Modal::Secret(SecretPage::new(key, ShownOnce::Link(link, expires), new))
            }
            (_, about) => Modal::Receipt(Receipt {
                pending,
                entry: outcome.entry,
                about,
                repeated: outcome.repeated,
                unapplied: outcome.unapplied,
            }),
        }
    }

    /// The ledger's answer about an operation whose outcome was unknown.
    pub(crate) fn resolved(
        &mut self,
        operation: OperationId,
        tries: u32,
        found: OutcomeLookup,
        outcome: ActOutcome,
    ) -> Vec<Effect> {
        if let Some(effects) = self.bulk_resolved(operation, &found) {
            return effects;
        }
        self.dirty = true;
        if let Some(listed) = self
            .operations
            .iter_mut()
            .find(|listed| listed.open.id() == Some(operation))
        {
            listed.found = found.clone();
        }
        let mut unknown = match self.modal.take() {
            Some(Modal::Unknown(unknown)) if unknown.review.pending.operation == operation => {
                unknown
            }
            other => {
                self.modal = other;
                return Vec::new();
            }
        };
        match found {
            OutcomeLookup::Applied(entry) => {
                return self.done(unknown.review, ActOutcome { entry, ..outcome });
            }
            OutcomeLookup::NotApplied => unknown.not_applied = true,
            OutcomeLookup::Unreadable(problem) => unknown.problem = problem,
            OutcomeLookup::Elsewhere(_) => {}
        }
        unknown.tries = tries;
        self.modal = Some(Modal::Unknown(unknown));
        Vec::new()
    }

    fn in_unknown(&mut self, unknown: Unknown, action: &Action) -> Vec<Effect> {
        let pending = Box::new(unknown.review.pending.clone());
        match action {
            Action::Yes if unknown.not_applied => {
                self.modal = Some(Modal::Sending(unknown.review));
                vec![Effect::Apply(pending)]
            }
            Action::Letter('r') => {
                self.modal = Some(Modal::Unknown(unknown));
                vec![Effect::Resolve(pending)]
            }
            Action::Escape => {
                self.say("its outcome is not known yet: see O operations", true);
                Vec::new()
            }
            _ => {
                self.modal = Some(Modal::Unknown(unknown));
                Vec::new()
            }
        }
    }

    fn in_operations(&mut self, selected: usize, action: &Action) -> Vec<Effect> {
        let last = self.operations.len().saturating_sub(1);
        let here = self.operations.get(selected).cloned();
        let mut next = selected;
        let mut effects = Vec::new();
        match (action, here) {
            (Action::Escape | Action::Enter, _) => return Vec::new(),
            (Action::Scroll(step), _) => {
                next = selected.saturating_add_signed(isize::from(*step)).min(last)
            }
            (Action::Yes, Some(listed)) if listed.found == OutcomeLookup::NotApplied => {
                if let Some(pending) = listed.open.pending().filter(|_| !self.options.read_only) {
                    let about = pending.plan.of.and_then(|of| self.listed(of));
                    self.modal = Some(Modal::Review(ActReview {
                        form: None,
                        pending,
                        about,
                    }));
                    return Vec::new();
                }
            }
            // Only operations with a known outcome may be taken off the list.
            (Action::Letter('d'), Some(listed))
                if matches!(
                    listed.found,
                    OutcomeLookup::Applied(_) | OutcomeLookup::NotApplied
                ) =>
            {
                effects.extend(listed.open.id().map(Effect::Forget));
                self.operations
                    .retain(|other| other.open.operation != listed.open.operation);
                next = selected.min(self.operations.len().saturating_sub(1));
                if self.operations.is_empty() {
                    return effects;
                }
            }
            _ => {}
        }
        self.modal = Some(Modal::Operations(next));
        effects
    }

    fn in_secret(&mut self, mut page: SecretPage, action: &Action) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(form) = page.file.as_mut() {
            match action {
                Action::Edit(edit) => form.edit(edit),
                Action::Escape => page.file = None,
                Action::Enter | Action::Submit => {
                    if let Some(FinishedForm::SaveSecret { path }) = form.finish() {
                        let text = Hidden(page.shown.reveal().to_owned());
                        effects.push(Effect::WriteSecret {
                            path: PathBuf::from(path),
                            text,
                        });
                        page.file = None;
                    }
                }
                _ => {}
            }
        } else if let Some(word) = page.leaving.as_mut() {
            match action {
                Action::Edit(edit) => word.edit(edit),
                Action::Escape => page.leaving = None,
                Action::Enter | Action::Submit
                    if word.text().trim().eq_ignore_ascii_case(SAVED) =>
                {
                    self.say(
                        format!("the secret of {} is no longer shown anywhere", page.key.id),
                        false,
                    );
                    return effects;
                }
                _ => {}
            }
        } else {
            match action {
                Action::Yes | Action::Letter('c') => {
                    effects.push(Effect::Copy(Hidden(page.shown.reveal().to_owned())))
                }
                Action::Letter('h') => page.hidden = !page.hidden,
                Action::Letter('w') => {
                    let of = Some(page.key.id.into());
                    let form = Form::file(FormPurpose::SaveSecret, of, self.new_operation());
                    page.file = Some(form);
                }
                // Another link can be made at any time; a secret is gone with its page.
                Action::Escape if matches!(page.shown, ShownOnce::Link(..)) => return effects,
                Action::Escape | Action::Enter => page.leaving = Some(TextField::default()),
                _ => {}
            }
        }
        self.modal = Some(Modal::Secret(page));
        effects
    }
}

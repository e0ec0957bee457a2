//! The life of an act: form, review, sending, outcome. Only `y` in a review sends, and only once.
//!
//! After a known refusal the form can be edited again under a new operation id. After an unknown outcome the same operation is
//! queried until its outcome is known; sending it again uses the same id.

use std::path::PathBuf;

use farebox_ledger::{OperationId, Scope};

use super::form::{FinishedForm, Form, FormPurpose};
use super::message::Effect;
use super::modal::{
    ActOutcome, ActReview, ApplyError, Hidden, Modal, OutcomeLookup, Receipt, RequestPage,
    SecretPage, ShownOnce, Unknown,
};
use super::party::Party;
use super::{Action, ConsoleApp};
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
                Some(FinishedForm::Review(plan)) => {
                    let review = self.review(form, plan);
                    let of = review.about.as_ref().map(Party::scope);
                    self.modal = Some(Modal::Review(review));
                    // The review shows the current balance, not the one when the form was opened.
                    return of.map(reread).into_iter().collect();
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
                Some(FinishedForm::Bulk(plan)) => return self.review_bulk(plan, Some(form)),
                Some(FinishedForm::SaveSecret { .. }) => {}
            },
            _ => {}
        }
        self.modal = Some(Modal::Form(form));
        Vec::new()
    }

    fn review(&self, form: Form, plan: ActPlan) -> ActReview {
        let label = match &plan {
            ActPlan::Create { settings, .. } => settings.label.clone(),
            ActPlan::CreateCustomer(settings) => settings.label.clone(),
            _ => (form.about.as_ref())
                .map(|about| about.label().to_owned())
                .unwrap_or_default(),
        };
        let pending = Pending {
            operation: form.operation,
            of: form.of,
            label,
            plan,
            actor: self.options.operator.clone(),
            at: self.now,
        };
        // A key to come has no balance of its own to show, but that of its customer.
        let about = form.about.clone();
        ActReview {
            form: Some(form),
            pending,
            about,
        }
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
            Ok(outcome) => self.done(review.pending, outcome),
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

    fn done(&mut self, pending: Pending, outcome: ActOutcome) -> Vec<Effect> {
        let of = match &outcome {
            ActOutcome::Posted { about, .. } | ActOutcome::Changed(about) => about.scope(),
            ActOutcome::Moved { from, .. } => from.id.into(),
            ActOutcome::Secret { key, .. } | ActOutcome::Link { key, .. } => key.id.into(),
        };
        self.operations
            .retain(|listed| listed.open.id() != Some(pending.operation));
        let new = matches!(pending.plan, ActPlan::Create { .. });
        let mut effects = vec![Effect::Forget(pending.operation), reread(of)];
        match (&pending.plan, of) {
            (ActPlan::Create { .. }, Scope::Key(id)) => {
                let all = self.keys.request(super::keys::From::Start, true, false);
                effects.push(Effect::LoadKeys(all));
                self.keys.wanted = Some(id);
            }
            (ActPlan::CreateCustomer(_), Scope::Customer(id)) => {
                self.customers.want(id);
                let all = self.customers.request(false, false);
                effects.push(Effect::LoadCustomers(all));
            }
            // The other side of a move.
            (ActPlan::Move { into, .. }, _) => effects.push(Effect::VisibleCustomers(vec![*into])),
            _ => {}
        }
        // A new key is on its customer's page, a payment on that of its key.
        if let Some(detail) = self.detail.as_ref().filter(|_| self.detail_open) {
            effects.push(Effect::LoadDetail {
                of: detail.of,
                debounce: false,
            });
        }
        self.modal = Some(self.outcome_page(pending, outcome, new));
        effects
    }

    /// The page that shows an outcome: a secret or link to hand over, else a receipt.
    fn outcome_page(&self, pending: Pending, outcome: ActOutcome, new: bool) -> Modal {
        let (entry, about, repeated) = match outcome {
            ActOutcome::Secret { key, secret } => {
                return Modal::Secret(SecretPage::new(key, ShownOnce::Secret(secret), new));
            }
            ActOutcome::Link {
                key,
                token,
                expires,
            } => {
                let link = Hidden(token.url(self.public_url()));
                return Modal::Secret(SecretPage::new(key, ShownOnce::Link(link, expires), new));
            }
            ActOutcome::Posted {
                entry,
                about,
                repeated,
            } => (Some(entry), about, repeated),
            ActOutcome::Changed(about) => (None, about, false),
            ActOutcome::Moved { from, repeated } => (None, Party::Customer(from), repeated),
        };
        Modal::Receipt(Receipt {
            pending,
            entry,
            about: Some(about),
            repeated,
        })
    }

    /// The ledger's answer about an operation whose outcome was unknown.
    pub(crate) fn resolved(
        &mut self,
        operation: OperationId,
        tries: u32,
        found: OutcomeLookup,
        outcome: Option<ActOutcome>,
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
        match (found, outcome) {
            (OutcomeLookup::Applied(_), Some(outcome)) => {
                return self.done(unknown.review.pending, outcome);
            }
            (OutcomeLookup::Applied(entry), None) => {
                let (pending, about) = (unknown.review.pending, unknown.review.about);
                self.modal = Some(Modal::Receipt(Receipt {
                    pending,
                    entry,
                    about,
                    repeated: false,
                }));
                return vec![Effect::Forget(operation)];
            }
            (OutcomeLookup::NotApplied, _) => unknown.not_applied = true,
            (OutcomeLookup::Unreadable(problem), _) => unknown.problem = problem,
            (OutcomeLookup::Elsewhere(_), _) => {}
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
                    let about = self.listed(pending.of);
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
                    let form = Form::new(
                        FormPurpose::SaveSecret,
                        page.key.id.into(),
                        None,
                        self.new_operation(),
                    );
                    page.file = Some(form);
                }
                Action::Escape if matches!(page.shown, ShownOnce::Link(..)) => return effects,
                Action::Escape | Action::Enter => page.leaving = Some(TextField::default()),
                _ => {}
            }
        }
        self.modal = Some(Modal::Secret(page));
        effects
    }
}

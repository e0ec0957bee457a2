//! What gateways note and no customer's money moves by: slugs, lessons, own costs, configurations, deliveries.

use crate::batch::changes::TaughtChange;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::value::text::clean;
use crate::{DeliverySteps, ForgetTarget, News, NoteFiles, OwnCost, Publish, Refusal, Taught};

impl LedgerOperation for Publish {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        let publish = |slug: &String| rows.changes.publish(slug, self.now);
        self.slugs.iter().for_each(publish);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {
        self.slugs.iter_mut().for_each(clean);
    }
}

impl LedgerOperation for Taught {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        rows.changes.teach(self);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {
        let lessons = self.lessons.iter_mut().map(|lesson| &mut lesson.target);
        let excesses = self.excesses.iter_mut().map(|excess| &mut excess.target);
        lessons.chain(excesses).for_each(clean);
    }
}

impl LedgerOperation for ForgetTarget {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        let gone = TaughtChange::Forgotten(self.0.clone());
        rows.changes.taught.push(gone);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {
        clean(&mut self.0);
    }
}

impl LedgerOperation for OwnCost {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        rows.own_cost(self);
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {
        clean(&mut self.target);
    }
}

impl LedgerOperation for NoteFiles {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        rows.tables.put(self.act.clone());
        for (News { kind, data }, number) in self.news.iter().zip(1_u32..) {
            rows.tell_all(self.act.operation, number, *kind, data.clone());
        }
        Ok(Outcome::Done)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
        clean(&mut self.act.details);
    }
}

impl LedgerOperation for DeliverySteps {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        rows.changes.deliveries.extend_from_slice(&self.0);
        Ok(Outcome::Done)
    }

    /// Its words are printable when they are written.
    fn clean(&mut self) {}
}

//! Tokens of the admin API among the rows of a batch, acts that belong to no customer, and the answers that repetitions get.

use super::{CachedRow, Rows, clear};
use crate::batch::answer::{AnswerId, KeptAnswer};
use crate::book::chain;
use crate::book::head::HouseHead;
use crate::book::house_act::{self, HouseAct};
use crate::{OperationId, Refusal, Token, TokenDay, TokenId, TokenToday};

impl Rows {
    /// A token of the admin API.
    pub(crate) fn api_token(&self, id: TokenId) -> Result<&Token, Refusal> {
        let found = self.api_tokens.get(&id).and_then(|row| row.now.as_ref());
        found.ok_or(Refusal::NoSuchToken(id))
    }

    /// What a token did today, and what its bounds are reckoned from.
    pub(crate) fn token_today(&self, id: TokenId) -> TokenToday {
        let days = self.token_days.values().filter_map(|row| row.now.as_ref());
        TokenToday::of(id, self.today(), days)
    }

    /// Stores what a token did on a day.
    pub(crate) fn put_token_day(&mut self, day: TokenDay) {
        let place = (day.token, day.day);
        self.changes.token_days.insert(place);
        self.token_days.insert(place, CachedRow::new(day));
    }

    /// Days of tokens that were changed.
    pub(crate) fn changed_token_days(&self) -> impl Iterator<Item = &TokenDay> {
        let places = self.changes.token_days.iter();
        places.filter_map(|place| self.token_days.get(place)?.now.as_ref())
    }

    /// Whether a token has this label, or had it.
    pub(crate) fn has_token_label(&self, label: &str) -> bool {
        self.api_labels.contains(label)
    }

    /// The act of an operation on a token or a lot.
    pub(crate) fn house_act(&self, operation: OperationId) -> Option<&HouseAct> {
        self.house_acts.get(&operation).map(|chained| &chained.act)
    }

    /// Stores a token.
    pub(crate) fn put_api_token(&mut self, token: Token) {
        let id = token.id;
        let was_stored = self.api_tokens.get(&id).is_some_and(|row| row.was_stored);
        let row = CachedRow {
            was_stored,
            ..CachedRow::new(token)
        };
        if let Some(token) = &row.now {
            self.api_labels.insert(token.label.clone());
        }
        self.changes.api_tokens.insert(id);
        self.api_tokens.insert(id, row);
    }

    /// Appends an act to the chain of those that belong to no customer; the state is that after it.
    pub(crate) fn append_house_act(&mut self, act: HouseAct, state: String) {
        let genesis = chain::genesis(&self.ledger);
        let chained = house_act::chained(genesis, self.house_head, act, state);
        self.house_head = HouseHead {
            seq: chained.act.seq,
            hash: chained.hash,
        };
        self.put_house_act(chained);
    }

    /// Stores an act, and nothing that follows from it.
    pub(crate) fn put_house_act(&mut self, chained: house_act::ChainedHouseAct) {
        self.changes.house_acts.push(chained.act.operation);
        self.house_acts.insert(chained.act.operation, chained);
    }

    /// Whether another gateway is about to make this answer.
    pub(crate) fn is_running(&self, id: AnswerId) -> bool {
        self.running.contains(&id)
    }

    /// The answer that is kept.
    pub(crate) fn answer(&self, id: AnswerId) -> Option<&KeptAnswer> {
        self.answers.get(&id)
    }

    /// Keeps an answer, and has the store remove those that are kept no longer.
    pub(crate) fn keep_answer(&mut self, id: AnswerId, kept: KeptAnswer) {
        let forgotten = KeptAnswer::forgotten(kept.at);
        self.changes.forget_answers = self.changes.forget_answers.max(Some(forgotten));
        self.changes.answers.insert(id);
        self.answers.insert(id, kept);
    }

    /// Tokens that were changed.
    pub(crate) fn changed_tokens(&self) -> impl Iterator<Item = (&Token, bool)> {
        let changed = self.changes.api_tokens.iter();
        changed.filter_map(|id| {
            let row = self.api_tokens.get(id)?;
            Some((row.now.as_ref()?, row.was_stored))
        })
    }

    /// Acts to insert, in the order in which they were appended.
    pub(crate) fn new_house_acts(&self) -> impl Iterator<Item = &house_act::ChainedHouseAct> {
        let operations = self.changes.house_acts.iter();
        operations.filter_map(|operation| self.house_acts.get(operation))
    }

    /// Answers to insert.
    pub(crate) fn new_answers(&self) -> impl Iterator<Item = (&AnswerId, &KeptAnswer)> {
        let ids = self.changes.answers.iter();
        ids.filter_map(|id| self.answers.get_key_value(id))
    }

    /// Notes that all of this has been written.
    pub(super) fn forget_tokens(&mut self) {
        clear(&mut self.api_tokens);
        clear(&mut self.token_days);
        clear(&mut self.house_acts);
        clear(&mut self.answers);
        self.api_labels.clear();
        self.running.clear();
        self.house_head = HouseHead::NONE;
    }
}

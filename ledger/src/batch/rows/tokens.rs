//! Tokens of the admin API among the rows of a batch, acts that belong to no customer, and the answers that repetitions get.

use super::Rows;
use crate::book::chain;
use crate::book::house_act::{self, ChainedHouseAct, HouseAct};
use crate::rule::answer::KeptAnswer;
use crate::{Amount, OperationId, Refusal, Reservation, Token, TokenId, TokenToday};

impl Rows {
    /// A token of the admin API.
    pub(crate) fn api_token(&self, id: TokenId) -> Result<&Token, Refusal> {
        self.tables.get(&id).ok_or(Refusal::NoSuchToken(id))
    }

    /// What a token did today and has reserved, and what its bounds are reckoned from. The reservation of the payment that is taken in counts
    /// no more.
    pub(crate) fn token_today(&self, id: TokenId) -> TokenToday {
        let of_others = self.tables.iter::<Reservation>().filter(|known| {
            known.token == id && known.is_live(self.now()) && Some(known.id) != self.paid_for
        });
        let reserved = Amount::checked_sum(of_others.map(|known| known.credit));
        let today = TokenToday::of(id, self.today(), self.tables.iter());
        today.reserving(reserved.unwrap_or(Amount::MAX_LIFETIME_CREDIT))
    }

    /// An act that belongs to no customer.
    pub(crate) fn house_act(&self, operation: OperationId) -> Option<&HouseAct> {
        let found = self.tables.get::<ChainedHouseAct>(&operation);
        found.map(|chained| &chained.act)
    }

    /// Appends an act to the chain of those that belong to no customer; the state is that after it.
    pub(crate) fn append_house_act(&mut self, act: HouseAct, state: String) {
        let genesis = chain::genesis(&self.ledger);
        let head = house_act::head(self.tables.iter());
        self.tables
            .put(house_act::chained(genesis, head, act, state));
    }

    /// Keeps an answer, and has the store remove those that are kept no longer.
    pub(crate) fn keep_answer(&mut self, kept: KeptAnswer) {
        let forgotten = KeptAnswer::forgotten(kept.at);
        self.changes.forget_answers = self.changes.forget_answers.max(Some(forgotten));
        self.tables.put(kept);
    }
}

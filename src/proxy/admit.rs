//! Admission: the one place where money is held.
//!
//! The ledger grants a limit for which there is room, in one transaction; here it is only told in which ways the request may be reckoned.
//! Who would not be served if nothing were held is refused without asking it. Who has to wait for money that running requests hold does so in
//! the waiting room.
//!
//! Rows of docs/interface.md: `balance_smaller_than_the_request`.

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{Amount, Hold, HoldWay, Key, LedgerError, NewHold};

use super::money::{Bottleneck, MoneyBound, MoneyRoom, Reckoned, too_little};
use super::prepare::PreparedRequest;
use super::request::{Admitted, AtRisk, GrantedRequest};
use super::under_way::Entered;
use super::waiting::{LeastNeeds, Turn};
use super::{Failure, Proxy};
use crate::billing::reserve::Reserved;
use crate::billing::running::prompt;
use crate::clock;
use crate::config::{Model, Price};
use crate::metering::bound::{Patience, ReckonedWay, least};
use crate::metering::prefixes::PromptCache;
use crate::metering::{Ask, LEAST_CACHED};

/// If the key was read longer ago than this, because the body arrived slowly, it is read again before a refusal.
///
/// Ordinary requests are admitted within a few milliseconds and cost no second read. An older account misses payments and released
/// holds; it cannot overspend, because the ledger checks.
const FRESH: Duration = Duration::from_millis(100);

/// Holds the money for a request; `key` is as authentication read it. The request is under way until what is returned beside it is dropped.
///
/// # Errors
/// 403 for a key that is no longer active, 429 without enough money, 503 without a ledger.
pub(super) async fn admit(
    proxy: &Arc<Proxy>,
    key: &Key,
    mut prepared: PreparedRequest,
) -> Result<(Box<Admitted>, Entered), Failure> {
    let entered = proxy.under_way.enter(&prepared.request);
    let OpenedHold {
        hold,
        reckoned,
        at_risk,
    } = open(proxy, key, &mut prepared, &entered).await?;
    prepared.request.work.paid();
    entered.running.goes_on();
    entered.running.limit(reckoned.terms.told());
    let grant = GrantedRequest {
        reckoned,
        hold,
        running: Arc::clone(&entered.running),
        expires: key.settings.expires_at,
        at_risk,
    };
    let admitted = Admitted::new(Arc::clone(proxy), prepared, grant);
    Ok((admitted, entered))
}

/// A hold that was opened, and what is reserved beside it of what the customer may leave unpaid.
struct OpenedHold {
    hold: Hold,
    reckoned: Reckoned,
    at_risk: AtRisk,
}

/// Opens the hold, after a wait where the money is there and held, or where streams of its customer have yet to begin.
async fn open(
    proxy: &Arc<Proxy>,
    key: &Key,
    prepared: &mut PreparedRequest,
    entered: &Entered,
) -> Result<OpenedHold, Failure> {
    let model = Arc::clone(&prepared.model);
    let mut wish = HoldWish::of(prepared);
    let mut room = MoneyRoom::of(key, &model.slug);
    let is_stale = prepared.request.arrived.elapsed() > FRESH;
    if is_stale && wish.needs(false) > room.available {
        room = read(proxy, prepared).await?;
    }
    let mut place = None;
    loop {
        let tried = wish.attempt(proxy, prepared, &mut room, place.is_some());
        let bottleneck = match tried.await? {
            Ok(opened) => return Ok(opened),
            Err(bottleneck) => bottleneck,
        };
        let waiting = match place.as_mut() {
            Some(waiting) => waiting,
            None => {
                let needs = LeastNeeds::of(&wish.ask, wish.price(), &model.limits);
                let entered = proxy
                    .waiting
                    .enter(&prepared.request, &model.slug, needs, entered);
                place.insert(entered.ok_or_else(|| wish.given_up(prepared, room.clone()))?)
            }
        };
        match waiting.turn(bottleneck).await {
            Turn::Called(patience) => wish.grow(patience),
            Turn::Over => {
                let room = read(proxy, prepared).await?;
                return Err(wish.given_up(prepared, room));
            }
            Turn::Stopping => return Err(Failure::Overloaded),
        }
    }
}

/// What a request asks the ledger for.
struct HoldWish {
    ask: Ask,
    model: Arc<Model>,
    patience: Patience,
    /// The ways in which it may be reckoned, with this patience.
    ways: Vec<ReckonedWay>,
    /// Its prompt may be one that is known, and nobody has looked.
    may_be_known: bool,
    /// It may begin as far as the streams of its customer go that have not begun.
    begins: bool,
    /// The prompt of a stream, until its first frame.
    prompt: Option<Reserved>,
}

impl HoldWish {
    fn of(prepared: &PreparedRequest) -> Self {
        let (ask, model) = (prepared.ask, Arc::clone(&prepared.model));
        let price = model.price.held(ask.classes);
        let is_cheaper = price.base.cache_read < price.base.input;
        Self {
            ask,
            patience: Patience::default(),
            ways: ask.ways(price, &model.limits, Patience::default()),
            may_be_known: is_cheaper && prepared.request.body.len() as u64 >= LEAST_CACHED,
            begins: !prepared.seen.stream,
            prompt: None,
            model,
        }
    }

    fn price(&self) -> &Price {
        self.model.price.held(self.ask.classes)
    }

    fn reckon(&mut self) {
        self.ways = self
            .ask
            .ways(self.price(), &self.model.limits, self.patience);
    }

    /// It has waited for so long.
    fn grow(&mut self, patience: Patience) {
        if self.patience != patience {
            self.patience = patience;
            self.reckon();
        }
    }

    /// Takes in what is known of the prompt.
    fn know(&mut self, cached: Option<u64>) {
        self.may_be_known = false;
        if cached.is_some() {
            self.ask.cached = cached;
            self.reckon();
        }
    }

    /// The least that it needs, beside others or alone.
    fn needs(&self, shared: bool) -> Amount {
        least(&self.ways, !shared)
    }

    /// Asks for the hold where there may be room, or where it was called because there may be. Inside: what it has to wait for.
    async fn attempt(
        &mut self,
        proxy: &Proxy,
        prepared: &mut PreparedRequest,
        room: &mut MoneyRoom,
        called: bool,
    ) -> Result<Result<OpenedHold, Bottleneck>, Failure> {
        // Before money is looked at, so that one that waits here holds none.
        self.begin(proxy, prepared)?;
        if !self.begins {
            return Ok(Err(Bottleneck::Beginning));
        }
        loop {
            let is_short =
                |wish: &Self, room: &MoneyRoom| wish.needs(room.is_shared()) > room.available;
            // Only where the bound finds no room: finding out costs a reading of the whole body.
            if self.may_be_known && is_short(self, room) {
                self.know(known(proxy, prepared).await?);
            }
            if self.needs(false) > room.at_rest() {
                let of = prepared.of();
                return Err(too_little(&self.ask, of, &self.model, room.clone()));
            }
            // The ledger would refuse it. One that was called asks all the same, because the room that it knows is an older one.
            if !called && is_short(self, room) {
                return Ok(Err(room.bottleneck()));
            }
            match self.open(proxy, prepared).await? {
                Ok(opened) => return Ok(Ok(opened)),
                // What is left may suffice for one that is alone, but not beside others.
                Err(left) => *room = left,
            }
            if self.needs(false) <= room.at_rest() && !self.may_be_known {
                return Ok(Err(room.bottleneck()));
            }
        }
    }

    /// Reserves what a stream may leave if it never begins: its likely prompt, until its first frame. Whose streams may leave too much
    /// together waits for them.
    fn begin(&mut self, proxy: &Proxy, prepared: &PreparedRequest) -> Result<(), Failure> {
        if !self.begins {
            let request = &prepared.request;
            let prompt = self.ask.prompt(self.price(), self.ask.estimate.input);
            let of = (request.payer(), &*self.model);
            self.prompt = proxy.reserve_prompt(&request.pass.rate_limits, of, prompt)?;
            self.begins = self.prompt.is_some();
        }
        Ok(())
    }

    /// Asks once. Inside: what is left, if that is too little.
    async fn open(
        &mut self,
        proxy: &Proxy,
        prepared: &PreparedRequest,
    ) -> Result<Result<OpenedHold, MoneyRoom>, Failure> {
        let (ask, model) = (self.ask, &self.model);
        let gap = self.ways.iter().map(|reckoned| reckoned.uncovered).max();
        let gap = gap.filter(|gap| gap.is_positive());
        let gap = gap.and_then(|gap| {
            let request = &prepared.request;
            proxy.reserve_gap(&request.pass.rate_limits, (request.payer(), model), gap)
        });
        // The ways after the first leave a part of the bound uncovered. Without a reservation for that part the ledger may not take them.
        let count = if gap.is_some() { self.ways.len() } else { 1 };
        let ways = self.ways.iter().take(count).map(|one| one.way).collect();
        match Hold::open(Arc::clone(&proxy.ledger), new_hold(prepared, ways)).await {
            Ok(hold) => {
                let granted = hold.granted();
                let bound = match granted.by_cap {
                    true => MoneyBound::Cap,
                    false => MoneyBound::Balance,
                };
                let reckoned = Reckoned {
                    target: prepared.first,
                    ask,
                    terms: ask.terms(&model.limits, granted.limit),
                    bound,
                };
                let at_risk = AtRisk {
                    // The first way covers the whole bound, so nothing stays reserved for it.
                    gap: gap.filter(|_| granted.way > 0),
                    prompt: self.prompt.take(),
                };
                Ok(Ok(OpenedHold {
                    hold,
                    reckoned,
                    at_risk,
                }))
            }
            Err(LedgerError::Refused(refusal)) => {
                let left = MoneyRoom::left(refusal).map_err(LedgerError::Refused)?;
                Ok(Err(left))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The refusal of one that has waited too long, or whose body found no room to wait.
    fn given_up(&self, prepared: &PreparedRequest, room: MoneyRoom) -> Failure {
        if !self.begins {
            return Failure::ExposureLimit(None);
        }
        let short = self
            .ask
            .short(self.price(), &self.model.limits, room.available);
        let twice = Amount::times(short.needed, 2).unwrap_or(Amount::MAX_COST);
        // A cap that is nearly used up will have no room when the others have ended, either.
        let is_spent = room.cap.is_some() && room.at_rest() < twice;
        match too_little(&self.ask, prepared.of(), &self.model, room) {
            Failure::BalanceInUse(balance) if is_spent => Failure::OutOfBalance(balance),
            other => other,
        }
    }
}

/// Tokens of a prompt that its target has cached, where it was counted so before.
async fn known(proxy: &Proxy, prepared: &mut PreparedRequest) -> Result<Option<u64>, Failure> {
    let Some(place) = prepared.places.all.first().copied() else {
        return Ok(None);
    };
    let Some(target) = prepared.model.route.targets.get(place.target) else {
        return Ok(None);
    };
    let (name, several) = (target.name(), target.provider.keys.accounts() > 1);
    let (body, headers) = (
        prepared.request.body.clone(),
        prepared.request.headers.clone(),
    );
    let facts = prompt::PromptFacts::of(&prepared.seen);
    let reading = move || facts.places(&body, &headers);
    let bytes = prepared.request.body.len();
    let places = prepared.request.work.read(bytes, reading).await?;
    let (calibrations, customer) = (&proxy.calibrations, prepared.request.customer);
    let cache = PromptCache {
        target: &*name,
        account: several.then(|| place.account + 1),
    };
    Ok(prompt::known(calibrations, customer, cache, &places))
}

fn new_hold(prepared: &PreparedRequest, ways: Vec<HoldWay>) -> NewHold {
    let request = &prepared.request;
    NewHold {
        request: request.id,
        customer: request.customer,
        key: request.key,
        ways,
        slug: prepared.model.slug.clone(),
        family: request.path_name().to_owned(),
        // Not the arrival time: the body may have arrived slowly, and the key may have expired meanwhile.
        at: clock::now(),
    }
}

/// What the key can hold now.
async fn read(proxy: &Proxy, prepared: &PreparedRequest) -> Result<MoneyRoom, Failure> {
    let key = proxy.ledger.find_key(prepared.request.key).await?;
    key.map(|key| MoneyRoom::of(&key, &prepared.model.slug))
        .ok_or(Failure::Unauthenticated("this key is not known"))
}

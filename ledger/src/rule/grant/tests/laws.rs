//! What holds for grants whatever happens to them in any order: a customer's purse is driven by random steps, and every amount is counted
//! a second time, by where it came from and where it went.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The slugs that requests and grants name.
const SLUGS: [&str; 2] = ["m", "x"];

#[derive(Debug, Clone)]
enum GrantStep {
    /// Money comes into the pool.
    Pay(i64),
    /// A grant of this kind is given.
    Give(GivenTerms),
    /// So many hours pass; the ledger looks.
    Wait(i64),
    /// A request holds so much, if it may.
    LawHold(usize, i64),
    /// An open hold gets another size, if it may.
    Resize(usize, i64),
    /// It ends with such a cost; caps have room for so much beyond it.
    End(usize, i64, i64),
    Void(usize),
    /// A payment goes back, as far as there is anything.
    TakeBack(i64),
}

#[derive(Debug, Clone)]
struct GivenTerms {
    amount: i64,
    is_paid: bool,
    priority: u8,
    begins: i64,
    lasts: Option<i64>,
    slug: Option<usize>,
}

fn terms() -> impl Strategy<Value = GivenTerms> {
    let of_models = prop_oneof![2 => Just(None), 1 => (0..2_usize).prop_map(Some)];
    let lasts = prop_oneof![1 => Just(None), 3 => (1..100_i64).prop_map(Some), 1 => (24..1_000_i64).prop_map(Some)];
    let priority = prop_oneof![3 => Just(50_u8), 1 => 48..53_u8];
    let begins = prop_oneof![2 => Just(0_i64), 1 => -5..40_i64];
    (1..60_i64, any::<bool>(), priority, begins, lasts, of_models).prop_map(
        |(amount, is_paid, priority, begins, lasts, slug)| GivenTerms {
            amount,
            is_paid,
            priority,
            begins,
            lasts,
            slug,
        },
    )
}

fn step() -> impl Strategy<Value = GrantStep> {
    prop_oneof![
        2 => (1..60_i64).prop_map(GrantStep::Pay),
        5 => terms().prop_map(GrantStep::Give),
        4 => prop_oneof![4 => 1..20_i64, 1 => 20..400_i64].prop_map(GrantStep::Wait),
        7 => (0..2_usize, 0..120_i64).prop_map(|(slug, size)| GrantStep::LawHold(slug, size)),
        4 => (0..6_usize, 0..120_i64).prop_map(|(hold, size)| GrantStep::Resize(hold, size)),
        6 => (0..6_usize, 0..150_i64, 0..60_i64).prop_map(|(hold, cost, room)| GrantStep::End(hold, cost, room)),
        1 => (0..6_usize).prop_map(GrantStep::Void),
        1 => (1..60_i64).prop_map(GrantStep::TakeBack),
    ]
}

#[derive(Debug, Clone)]
struct LawHold {
    slug: &'static str,
    size: Amount,
    parts: Vec<MoneyPart>,
    opened: Timestamp,
}

/// What went where, counted beside the rules. `None` is the pool.
#[derive(Debug, Clone, Default)]
struct GrantFlow {
    came: i64,
    charged: i64,
    lost: i64,
    taken: i64,
}

#[derive(Debug, Clone)]
struct Books {
    now: Timestamp,
    grants: Grants,
    account: Account,
    holds: Vec<LawHold>,
    flows: BTreeMap<Option<GrantId>, GrantFlow>,
    made: u64,
    operations: std::collections::BTreeSet<OperationId>,
}

impl Default for Books {
    fn default() -> Self {
        Self {
            now: day(0),
            grants: Grants::default(),
            account: Account::default(),
            holds: Vec::new(),
            flows: BTreeMap::new(),
            made: 0,
            operations: std::collections::BTreeSet::new(),
        }
    }
}

/// The order of use, said once more: which of two is used first. `None` is the pool.
fn by_use(one: Option<&Grant>, other: Option<&Grant>) -> Ordering {
    let priority = |of: Option<&Grant>| of.map_or(50, |grant| grant.priority);
    let end = |of: Option<&Grant>| of.and_then(|grant| grant.expires_at);
    let is_paid = |of: Option<&Grant>| of.is_none_or(|grant| grant.kind == GrantKind::Paid);
    let by_end = match (end(one), end(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    let by_begin = match (one, other) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(one), Some(other)) => (one.effective_at, one.id).cmp(&(other.effective_at, other.id)),
    };
    let by_kind = is_paid(one).cmp(&is_paid(other));
    (priority(one).cmp(&priority(other)))
        .then(by_end)
        .then(by_kind)
        .then(by_begin)
}

fn usable(grant: &Grant, slug: &str) -> bool {
    grant.status == GrantStatus::Active
        && grant
            .models
            .as_ref()
            .is_none_or(|models| models.contains(&slug.to_owned()))
}

impl Books {
    fn flow(&mut self, of: Option<GrantId>) -> &mut GrantFlow {
        self.flows.entry(of).or_default()
    }

    fn lose(&mut self, losses: Vec<GrantLoss>) {
        for loss in losses {
            self.account.credit = less(self.account.credit, loss.amount);
            self.flow(Some(loss.grant)).lost += loss.amount.picos();
        }
        self.grants = std::mem::take(&mut self.grants).open();
    }

    /// Books everything that time has done.
    fn settle(&mut self) {
        while let Some((operation, turn, grant)) = turn_of(&self.grants, self.now) {
            assert!(self.operations.insert(operation), "{turn:?} happened twice");
            match turn {
                GrantTurn::Begins => {
                    assert!(grant.effective_at <= self.now);
                    self.account.credit = sum(self.account.credit, grant.amount);
                }
                GrantTurn::Ends(free) => {
                    assert!(grant.expires_at.is_some_and(|end| end <= self.now));
                    self.account.credit = less(self.account.credit, free);
                    self.flow(Some(grant.id)).lost += free.picos();
                }
                GrantTurn::Nears(days) => assert!(Grant::NOTICES.contains(&days)),
            }
            self.grants.put(grant);
        }
        self.grants = std::mem::take(&mut self.grants).open();
    }

    fn step(&mut self, step: GrantStep) {
        match step {
            GrantStep::Pay(paid) => {
                self.account.credit = sum(self.account.credit, picos(paid));
                self.flow(None).came += paid;
            }
            GrantStep::Give(terms) => self.give(&terms),
            GrantStep::Wait(hours) => {
                self.now = Timestamp::from_millis(self.now.millis() + hours * 3_600_000);
                self.settle();
            }
            GrantStep::LawHold(slug, size) => self.hold(SLUGS[slug], picos(size)),
            GrantStep::Resize(hold, size) => self.resize(hold, picos(size)),
            GrantStep::End(hold, cost, room) => self.end(hold, picos(cost), picos(room)),
            GrantStep::Void(number) => {
                let id = self.grants.iter().map(|grant| grant.id).nth(number);
                if let Some((grant, free)) = id.and_then(|id| self.grants.void(id)) {
                    self.account.credit = less(self.account.credit, free);
                    let kept = grant.held.picos();
                    let flow = self.flow(Some(grant.id));
                    flow.lost = flow.came - flow.charged - flow.taken - kept;
                }
                self.grants = std::mem::take(&mut self.grants).open();
            }
            GrantStep::TakeBack(amount) => {
                let amount = picos(amount).min(self.grants.paid_free(self.account));
                let parts = self.grants.take_paid(self.account, amount);
                self.account.credit = less(self.account.credit, amount);
                self.grants = std::mem::take(&mut self.grants).open();
                let all_of_pool = [MoneyPart::of(None, amount)];
                let parts = if parts.is_empty() {
                    &all_of_pool[..]
                } else {
                    &parts
                };
                for part in parts {
                    self.flow(part.grant).taken += part.amount.picos();
                }
            }
        }
    }

    fn give(&mut self, terms: &GivenTerms) {
        if self.grants.check_room().is_err() {
            return;
        }
        self.made += 1;
        let at = |hours: i64| Timestamp::from_millis(self.now.millis() + hours * 3_600_000);
        let new = NewGrant {
            // Neither the order of ids nor that of their making is that of use.
            id: id(self.made * 7 % 101),
            customer: CustomerId::from_random(1),
            kind: if terms.is_paid {
                GrantKind::Paid
            } else {
                GrantKind::Promotional
            },
            amount: picos(terms.amount),
            priority: terms.priority,
            effective_at: Some(at(terms.begins)),
            expires_at: terms.lasts.map(|lasts| at(terms.begins + lasts)),
            models: terms.slug.map(|slug| vec![SLUGS[slug].to_owned()]),
            reference: format!("r-{}", self.made),
            act: Act {
                operation: OperationId::from_bytes([1; 16]),
                actor: "ada".to_owned(),
                at: self.now,
            },
        };
        if new.check().is_err() || new.check_times(self.now).is_err() || self.made > 100 {
            return;
        }
        let grant = new.grant(self.now);
        if grant.status == GrantStatus::Active {
            self.account.credit = sum(self.account.credit, grant.amount);
        }
        self.flow(Some(grant.id)).came = terms.amount;
        self.grants.put(grant);
        self.settle();
    }

    fn hold(&mut self, slug: &'static str, size: Amount) {
        if size > self.grants.available(self.account, slug, &[]) {
            return;
        }
        let mut parts = Vec::new();
        self.grants.hold(self.account, slug, &mut parts, size);
        self.account.held = sum(self.account.held, size);
        self.check_free_is_a_prefix(slug, &parts, size);
        let opened = self.now;
        self.holds.push(LawHold {
            slug,
            size,
            parts,
            opened,
        });
    }

    /// Whatever is held of a source, nothing is free of any that is used later.
    fn check_free_is_a_prefix(&self, slug: &str, parts: &[MoneyPart], size: Amount) {
        let of_pool = size.picos() - parts.iter().map(|part| part.amount.picos()).sum::<i64>();
        let mut sources: Vec<Option<&Grant>> = vec![None];
        sources.extend(
            self.grants
                .iter()
                .filter(|grant| usable(grant, slug))
                .map(Some),
        );
        for one in &sources {
            let taken = match one {
                None => of_pool > 0,
                Some(grant) => parts.iter().any(|part| part.grant == Some(grant.id)),
            };
            for later in sources
                .iter()
                .filter(|later| by_use(*one, **later) == Ordering::Less)
            {
                let free = later.map_or(self.grants.pool_free(self.account), Grant::free);
                assert!(
                    !taken || free == Amount::ZERO,
                    "{one:?} is held before {later:?}"
                );
            }
        }
    }

    fn resize(&mut self, number: usize, size: Amount) {
        let Some(hold) = self.holds.get_mut(number) else {
            return;
        };
        let (slug, now) = (hold.slug, hold.size);
        if size >= now {
            let more = less(size, now).min(self.grants.available(self.account, slug, &[]));
            self.grants.hold(self.account, slug, &mut hold.parts, more);
            (hold.size, self.account.held) = (sum(now, more), sum(self.account.held, more));
            return;
        }
        let back = less(now, size);
        let losses = self.grants.give_back(slug, (now, &mut hold.parts), back);
        hold.size = size;
        self.account.held = less(self.account.held, back);
        self.lose(losses);
    }

    fn end(&mut self, number: usize, cost: Amount, room: Amount) {
        if number >= self.holds.len() {
            return;
        }
        let hold = self.holds.remove(number);
        let before = self.clone();
        let beyond = self
            .grants
            .available(self.account, hold.slug, &[])
            .min(room);
        let charge = cost.min(sum(hold.size, beyond));
        let done = self
            .grants
            .charge(self.account, hold.slug, (hold.size, &hold.parts), charge);
        self.account.spent = sum(self.account.spent, charge);
        self.account.held = less(self.account.held, hold.size);
        let all_of_pool = [MoneyPart::of(None, charge)];
        let parts = if done.parts.is_empty() {
            &all_of_pool[..]
        } else {
            &done.parts
        };
        for part in parts {
            self.flow(part.grant).charged += part.amount.picos();
        }
        before.check_charge(&hold, charge, parts);
        self.lose(done.losses);
    }

    /// As the contract says it, source by source: what a charge takes of each is everything that it may, until it is paid.
    fn check_charge(&self, hold: &LawHold, charge: Amount, parts: &[MoneyPart]) {
        let own = |id: GrantId| {
            let parts = hold.parts.iter().filter(|part| part.grant == Some(id));
            parts.map(|part| part.amount.picos()).sum::<i64>()
        };
        let of_grants: i64 = hold.parts.iter().map(|part| part.amount.picos()).sum();
        let mut sources: Vec<Option<&Grant>> = vec![None];
        sources.extend(self.grants.iter().map(Some));
        sources.sort_by(|one, other| by_use(*one, *other));
        let (mut left, mut expected) = (charge.picos(), Vec::new());
        for source in sources {
            let may = match source {
                None => self.grants.pool_free(self.account).picos() + hold.size.picos() - of_grants,
                Some(grant) if usable(grant, hold.slug) => grant.free().picos() + own(grant.id),
                Some(grant) => own(grant.id),
            };
            let taken = may.min(left);
            left -= taken;
            if taken > 0 {
                let ended = source
                    .and_then(|grant| grant.expires_at)
                    .is_some_and(|end| end <= self.now);
                let at_end = source.and_then(|grant| grant.expires_at);
                assert!(
                    !ended || Some(hold.opened) < at_end,
                    "spent by a hold made after its end"
                );
                let grant = source.map(|grant| grant.id);
                expected.push(MoneyPart::of(grant, picos(taken)));
            }
        }
        assert_eq!(left, 0, "a charge is at most what there is");
        if charge.is_positive() {
            assert_eq!(parts, expected);
        }
    }

    fn check(&self) {
        let (account, all) = (self.account, &self.grants);
        assert!(account.is_sound(), "{account:?}");
        let holds = || self.holds.iter();
        let size: i64 = holds().map(|hold| hold.size.picos()).sum();
        assert_eq!(account.held.picos(), size);
        let (mut left, mut held) = (0, 0);
        for grant in all.iter() {
            let parts = holds().flat_map(|hold| &hold.parts);
            let parts = parts.filter(|part| part.grant == Some(grant.id));
            let of_it: i64 = parts.map(|part| part.amount.picos()).sum();
            assert_eq!(grant.held.picos(), of_it, "{grant:?}");
            assert!(Amount::ZERO <= grant.held && grant.held <= grant.remaining);
            assert!(grant.remaining <= grant.amount);
            let is_over = grant.expires_at.is_some_and(|end| end <= self.now);
            assert!(!is_over || grant.status != GrantStatus::Active, "{grant:?}");
            assert_eq!(
                grant.status == GrantStatus::Pending,
                grant.effective_at > self.now
            );
            match grant.status {
                GrantStatus::Pending => assert_eq!(grant.remaining, grant.amount),
                GrantStatus::Active => assert!(grant.remaining.is_positive()),
                GrantStatus::Exhausted => panic!("it cannot be open: {grant:?}"),
                GrantStatus::Expired | GrantStatus::Voided => {
                    assert_eq!(grant.remaining, grant.held)
                }
            }
            if grant.status != GrantStatus::Pending {
                (left, held) = (left + grant.remaining.picos(), held + of_it);
            }
        }
        let pool = account.balance().picos() - left;
        assert_eq!(all.pool(account).picos(), pool, "never below zero");
        assert_eq!(all.pool_free(account).picos(), pool - (size - held));
        for (of, flow) in &self.flows {
            let there = match of.map(|id| all.get(id)) {
                None => pool,
                Some(grant) => grant.map_or(0, |grant| grant.remaining.picos()),
            };
            assert_eq!(
                flow.came,
                there + flow.charged + flow.lost + flow.taken,
                "{of:?}"
            );
            let flow = [flow.charged, flow.lost, flow.taken];
            assert!(
                flow.into_iter().all(|amount| amount >= 0),
                "{of:?}: {flow:?}"
            );
        }
        for slug in SLUGS {
            let most = account.available();
            let available = all.available(account, slug, &[]);
            assert!(Amount::ZERO <= available && available <= most);
            assert!(available <= all.balance(account, slug, &[]));
        }
    }
}

fn cases(full: u32) -> ProptestConfig {
    let is_full = std::env::var_os("FAREBOX_FULL").is_some();
    ProptestConfig::with_cases(if is_full { full } else { full / 50 })
}

proptest! {
    #![proptest_config(cases(100_000))]

    /// No picodollar is in two places, and none is lost; the pool is what the grants leave; nothing that has ended is spent by a hold of
    /// later; a charge takes nothing of a source while an earlier one that it may use has anything.
    #[test]
    fn every_amount_is_in_one_place_and_used_in_order(steps in proptest::collection::vec(step(), 1..60)) {
        let mut books = Books::default();
        for step in steps {
            books.step(step);
            books.check();
        }
    }

    /// What a read reckons is what booking it all would be, whenever others looked in between.
    #[test]
    fn a_read_reckons_what_a_booking_would_book(
        steps in proptest::collection::vec(step(), 1..30), waits in proptest::collection::vec(0..400_i64, 1..5)
    ) {
        let mut books = Books::default();
        steps.into_iter().for_each(|step| books.step(step));
        let after = |hours: i64| Timestamp::from_millis(books.now.millis() + hours * 3_600_000);
        let (mut waited, mut seen, mut account) = (0, books.grants.clone(), books.account);
        let mut booked = books.clone();
        for hours in waits {
            waited += hours;
            (seen, account) = seen.at(account, after(waited));
            booked.step(GrantStep::Wait(hours));
        }
        let untold = |grants: &Grants| {
            let all = grants.iter().cloned().map(|grant| Grant { told: None, ..grant });
            all.collect::<Vec<_>>()
        };
        let (at_once, sums) = books.grants.clone().at(books.account, after(waited));
        prop_assert_eq!((&seen, account), (&booked.grants, booked.account));
        prop_assert_eq!((untold(&at_once), sums), (untold(&seen), account));
        // Said once more: what is pending begins, what is over keeps what is held of it.
        let mut credit = books.account.credit.picos();
        for grant in books.grants.iter() {
            let is_over = grant.expires_at.is_some_and(|end| end <= after(waited));
            match grant.status {
                GrantStatus::Pending if grant.effective_at <= after(waited) && !is_over => credit += grant.amount.picos(),
                GrantStatus::Active if is_over => credit -= grant.free().picos(),
                _ => {}
            }
        }
        prop_assert_eq!(sums.credit.picos(), credit);
    }

    /// Refunds never give more than a part, in one or in several, and give back what was taken last first.
    #[test]
    fn refunds_in_pieces_are_refunds_at_once(
        sizes in proptest::collection::vec(1..50_i64, 0..6), pieces in proptest::collection::vec(1..60_i64, 1..6)
    ) {
        // The second is the pool's.
        let parts: Vec<MoneyPart> = (1..).zip(&sizes).map(|(number, size)| MoneyPart::of((number != 2).then(|| id(number)), picos(-size))).collect();
        let charged: i64 = if sizes.is_empty() { 70 } else { sizes.iter().sum() };
        let (mut before, mut given) = (0, BTreeMap::new());
        for piece in pieces {
            let amount = piece.min(charged - before);
            let back = refunded_parts(picos(charged), &parts, picos(before), picos(amount));
            prop_assert_eq!(back.iter().map(|part| part.amount.picos()).sum::<i64>(), amount);
            for part in back {
                prop_assert!(part.amount.is_positive());
                *given.entry(part.grant).or_insert(0) += part.amount.picos();
            }
            before += amount;
        }
        // What is not given back is a beginning of the charge.
        let mut kept = charged - before;
        for (number, size) in (1..).zip(&sizes) {
            let of_it = kept.min(*size);
            kept -= of_it;
            let grant = (number != 2).then(|| id(number));
            prop_assert_eq!(given.get(&grant).copied().unwrap_or(0), size - of_it);
        }
    }
}

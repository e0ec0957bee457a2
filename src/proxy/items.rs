//! Items of answers on the responses path, for an hour, so that their customer can refer to them by their ids: here they are written
//! into a request in the place of its references, before it is inspected, so that they count and are held like any text.
//!
//! In memory alone: neither a disk nor a log gets them, and another gateway or the next start knows none. Only what a client may refer
//! to is kept, and it says with `store: false` that it will not.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{CustomerId, lock};
use farebox_protocol::json::{self, Edit};
use farebox_protocol::{items_of, references};
use tokio::time::Instant;

use super::request::Admitted;
use super::{Failure, LARGEST_BODY, Request};
use crate::turns::Work;

/// How long an item can be referred to.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// The most bytes of one customer.
const OF_ONE: usize = 1 << 20;
/// The most bytes of a generation. Two are kept.
// A full generation is dropped as a whole, so no order of use has to be kept; two of them are all that is ever in memory.
const GENERATION: usize = 128 << 20;
/// What an item takes beside its text and its id.
const AROUND: usize = 128;

/// The last items of each customer.
#[derive(Debug, Default)]
pub struct AnswerItems(Mutex<ItemGenerations>);

/// Who gets an answer, for the time after its settlement.
pub(super) struct Recipient(Option<(Arc<AnswerItems>, CustomerId)>);

impl Recipient {
    pub(super) fn of(admitted: &Admitted) -> Self {
        let items = || (Arc::clone(&admitted.proxy.items), admitted.request.customer);
        Self(admitted.count.seen.may_refer.then(items))
    }

    /// Keeps the items of an answer, or of its end, if its client may refer to them.
    pub(super) fn gets(&self, answer: &[u8]) {
        if let Some((items, customer)) = &self.0 {
            items.keep(*customer, answer, Instant::now());
        }
    }
}

/// Customers who were given items of late, and those before them: when the first are full they become the others, which are forgotten.
#[derive(Debug, Default)]
struct ItemGenerations {
    young: HashMap<CustomerId, CustomerItems>,
    old: HashMap<CustomerId, CustomerItems>,
    /// Bytes of the young ones.
    bytes: usize,
    since: Option<Instant>,
}

/// One customer's, the oldest first.
#[derive(Debug, Default)]
struct CustomerItems {
    items: VecDeque<GivenItem>,
    bytes: usize,
}

#[derive(Debug)]
struct GivenItem {
    id: Box<str>,
    text: Bytes,
    given: Instant,
}

impl GivenItem {
    fn bytes(&self) -> usize {
        self.id.len() + self.text.len() + AROUND
    }
}

impl AnswerItems {
    /// Keeps the items of a whole answer, or of the end of a stream.
    fn keep(&self, customer: CustomerId, answer: &[u8], now: Instant) {
        let items = items_of(answer).into_iter();
        let items = items.filter(|(_, text)| text.len() <= OF_ONE);
        // Copied before the lock, which every answer and every reference takes.
        let items: Vec<GivenItem> = items
            .map(|(id, text)| GivenItem {
                id: id.into(),
                text: Bytes::copy_from_slice(text),
                given: now,
            })
            .collect();
        if items.is_empty() {
            return;
        }
        let mut all = lock(&self.0);
        all.turn(now);
        all.put(customer, |own| {
            items.into_iter().for_each(|item| own.push(item));
            own.forget(now);
        });
    }

    fn find(&self, customer: CustomerId, id: &str, now: Instant) -> Option<Bytes> {
        let mut all = lock(&self.0);
        all.turn(now);
        let own = all
            .young
            .get(&customer)
            .or_else(|| all.old.get(&customer))?;
        // The same id may have been given twice: the later one counts.
        let mut items = own.items.iter().rev();
        let item = items.find(|item| *item.id == *id && now < item.given + KEPT)?;
        Some(item.text.clone())
    }

    /// A body with the items in the place of the references to them; `None` if it has none, or one to an unknown item.
    ///
    /// # Errors
    /// The customer's turn does not come, or all of it would be too large.
    pub(super) async fn write_out(
        self: &Arc<Self>,
        customer: CustomerId,
        body: &Bytes,
        work: &mut Work,
    ) -> Result<Option<Bytes>, Failure> {
        let (all, received) = (Arc::clone(self), body.clone());
        let now = Instant::now();
        let finding = work.read(body.len(), move || {
            let found = references(&received).into_iter();
            let found = found.map(|found| Some((found.at, all.find(customer, &found.id, now)?)));
            found.collect::<Option<Vec<_>>>()
        });
        let Some(found) = finding.await?.filter(|found| !found.is_empty()) else {
            return Ok(None);
        };
        let size = found.iter().map(|(_, text)| text.len());
        if size.fold(body.len(), usize::saturating_add) > LARGEST_BODY {
            return Err(Failure::TooLarge(LARGEST_BODY));
        }
        let edits = found
            .iter()
            .map(|(at, text)| Edit::replace(at.clone(), &**text));
        let mut edits: Vec<Edit<'_>> = edits.collect();
        Ok(Some(Bytes::from(json::splice(body, &mut edits))))
    }

    /// The same with a request's body, whose memory grows with it; whether that has changed it.
    ///
    /// # Errors
    /// As [`AnswerItems::write_out`], or there is no room for it.
    pub(super) async fn write_into(
        self: &Arc<Self>,
        request: &mut Request,
    ) -> Result<bool, Failure> {
        let (customer, body) = (request.customer, request.body.clone());
        let Some(written) = self.write_out(customer, &body, &mut request.work).await? else {
            return Ok(false);
        };
        let room = request.room.as_mut();
        if room.is_some_and(|room| !room.grow_to(written.len())) {
            return Err(Failure::Overloaded);
        }
        request.body = written;
        Ok(true)
    }
}

impl ItemGenerations {
    /// Begins a new generation, when this one is full or all before it have expired.
    fn turn(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        if self.bytes > GENERATION || now >= since + KEPT {
            self.old = std::mem::take(&mut self.young);
            (self.bytes, self.since) = (0, Some(now));
        }
    }

    fn put(&mut self, customer: CustomerId, change: impl FnOnce(&mut CustomerItems)) {
        let old = self.old.remove(&customer);
        let own = self.young.entry(customer).or_default();
        let before = own.bytes;
        // What is old is only there if nothing has been given since.
        if let Some(old) = old {
            *own = old;
        }
        change(own);
        self.bytes = (self.bytes + own.bytes).saturating_sub(before);
    }
}

impl CustomerItems {
    fn push(&mut self, item: GivenItem) {
        self.bytes += item.bytes();
        self.items.push_back(item);
    }

    /// Forgets the oldest beyond what is kept of one customer, and what has expired.
    fn forget(&mut self, now: Instant) {
        while let Some(oldest) = self.items.front()
            && (self.bytes > OF_ONE || now >= oldest.given + KEPT)
        {
            self.bytes -= oldest.bytes();
            self.items.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn customer(number: u64) -> CustomerId {
        CustomerId::from_random(number)
    }

    fn answer(id: &str, bytes: usize) -> String {
        format!(
            r#"{{"output":[{{"id":"{id}","text":"{}"}}]}}"#,
            "a".repeat(bytes)
        )
    }

    #[test]
    fn an_item_is_known_for_an_hour_and_to_its_customer_alone() {
        let (all, start) = (AnswerItems::default(), Instant::now());
        all.keep(customer(1), answer("msg_1", 1).as_bytes(), start);
        let item = Bytes::from_static(br#"{"id":"msg_1","text":"a"}"#);
        assert_eq!(
            all.find(customer(1), "msg_1", start + MINUTE * 59),
            Some(item)
        );
        assert_eq!(all.find(customer(1), "msg_2", start), None);
        assert_eq!(all.find(customer(2), "msg_1", start), None);
        assert_eq!(all.find(customer(1), "msg_1", start + MINUTE * 60), None);
        all.keep(customer(1), answer("msg_1", 2).as_bytes(), start + MINUTE);
        let later = all.find(customer(1), "msg_1", start + MINUTE * 2);
        assert!(
            later.is_some_and(|later| later.len() == 26),
            "the later one counts"
        );
    }

    #[test]
    fn a_customer_has_a_mebibyte_and_all_together_256() {
        let (all, now) = (AnswerItems::default(), Instant::now());
        all.keep(customer(0), answer("whole", OF_ONE).as_bytes(), now);
        assert_eq!(
            all.find(customer(0), "whole", now),
            None,
            "larger than all that is kept"
        );
        let many = match std::env::var_os("FAREBOX_FULL") {
            Some(_) => 1_000,
            None => 400,
        };
        for number in 1..many {
            for part in 0..3 {
                let answer = answer(&format!("part {part}"), 400 << 10);
                all.keep(customer(number), answer.as_bytes(), now);
            }
            let known = |part: &str| all.find(customer(number), part, now).is_some();
            assert!(!known("part 0") && known("part 1") && known("part 2"));
        }
        let known = lock(&all.0);
        let sum = |of: &HashMap<CustomerId, CustomerItems>| -> usize {
            let all = of.values().flat_map(|own| &own.items);
            all.map(GivenItem::bytes).sum()
        };
        assert_eq!(sum(&known.young), known.bytes);
        assert!(sum(&known.young) + sum(&known.old) <= 2 * GENERATION + 2 * OF_ONE);
        assert!(!known.old.is_empty());
        drop(known);
        assert_eq!(
            all.find(customer(1), "part 2", now),
            None,
            "the first are forgotten"
        );
    }
}

//! Counts the tokens of a native or a responses request without running it. Free: nothing is held, and the answer is one number.
//! Targets of the other of these two families count a translation of it; targets that speak only `chat` cannot count.

use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{CustomerId, Key};
use farebox_protocol::{BadRequest, Edits, Family, Inspection, translate};
use tokio::time::timeout;

use super::conversation::ConversationOf;
use super::prepare::{resolve, unreadable};
use super::sending::{self, CustomerName};
use super::{Failure, Proxy, RefusedFacts, capabilities, documents, holder};
use crate::clock;
use crate::config::{Model, Target};
use crate::metering::estimate;
use crate::turns::Work;
use crate::upstream::{AnswerContent, Prepared, TargetOperation, UpstreamCall};

/// How long an upstream may take to count before our own estimate is returned.
// A client asks before it sends its prompt, and waits: an estimate now is worth more to it than a count later.
const PATIENCE: Duration = Duration::from_secs(10);

/// A count of input tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputTokens {
    /// The number.
    pub tokens: u64,
    /// Whether it is our own estimate, because no target counted.
    pub estimated: bool,
}

/// Asks the model's upstream, or estimates when it must not or cannot be asked.
///
/// # Errors
/// As for a request: a bad body, an unknown model; 429 when the customer's turn does not come.
pub async fn tokens(
    proxy: &Proxy,
    key: &Key,
    (family, body): (Family, &Bytes),
    (headers, session): (Vec<(String, Bytes)>, Option<Bytes>),
    ask_upstream: bool,
    known: &mut RefusedFacts,
) -> Result<InputTokens, Failure> {
    let config = proxy.config.current();
    let mut work = Work::of(&proxy.turns, holder(key.customer.id));
    let of = (key.customer.id, family);
    let CountedBody {
        original,
        seen,
        body,
    } = read(proxy, of, body, &mut work).await?;
    let mut seen = seen.map_err(|bad| unreadable(bad, &body, &config, known))?;
    let model = resolve(&config, &seen.model, key, family, known)?;
    capabilities::check_flags(&model, family, &headers)?;
    if ask_upstream {
        let holder = holder(key.customer.id);
        let call = UpstreamCall::new(&model.route, holder, family, TargetOperation::CountTokens);
        let of = ConversationOf {
            customer: key.customer.id,
            model: &model,
            session: session.as_ref(),
            body: &body,
            seen: &seen,
            tokens: 0,
            request: clock::seed(),
        };
        let conversation = of.find(&mut work).await?;
        let carries = |target: &Target, family: Family| {
            capabilities::carries(target, &seen.content) && family.protocol().count_path.is_some()
        };
        let places = proxy.upstreams.order(&call, conversation, carries);
        let asked = (key.customer.id, &body, &seen);
        let mut prepare = |target: &Target, family: Family| {
            if family != call.family {
                return foreign((call.family, &original), target, family, &model);
            }
            Some(Prepared {
                headers: headers.clone(),
                ..direct(proxy, asked, target, family)?
            })
        };
        if let Ok(Ok(answer)) = timeout(
            PATIENCE,
            proxy.upstreams.dispatch(call, &places, &mut prepare),
        )
        .await
            && let AnswerContent::Whole(answer, ..) = answer.content
            && let Some(tokens) = counted(&answer)
        {
            return Ok(InputTokens {
                tokens,
                estimated: false,
            });
        }
    }
    documents::read(&mut work, &body, &mut seen).await?;
    Ok(InputTokens {
        tokens: estimate::input(&seen.content, &model.limits).input,
        estimated: true,
    })
}

struct CountedBody {
    /// As received, the items written out that it refers to.
    original: Bytes,
    /// Its facts.
    seen: Result<Inspection, BadRequest>,
    /// Without what other families made up: a vendor would refuse their thinking blocks.
    body: Bytes,
}

async fn read(
    proxy: &Proxy,
    (customer, family): (CustomerId, Family),
    received: &Bytes,
    work: &mut Work,
) -> Result<CountedBody, Failure> {
    let read = inspect(family, received, work).await?;
    let items = &proxy.items;
    match &read.seen {
        Err(bad) if bad.refers() => match items.write_out(customer, received, work).await? {
            Some(written) => inspect(family, &written, work).await,
            None => Ok(read),
        },
        Ok(_) | Err(_) => Ok(read),
    }
}

async fn inspect(
    family: Family,
    received: &Bytes,
    work: &mut Work,
) -> Result<CountedBody, Failure> {
    let original = received.clone();
    let reading = work.read(original.len(), move || {
        let cut = translate::cut_marks(family, &original, false).map(|cut| Bytes::from(cut.body));
        let body = cut.unwrap_or_else(|| original.clone());
        let seen = family.protocol().inspect_count(&body, clock::seed());
        CountedBody {
            original,
            seen,
            body,
        }
    });
    Ok(reading.await?)
}

/// The request in its own family for counting, which needs no id of the customer; but no end user's own name goes there either.
fn direct(
    proxy: &Proxy,
    of: (CustomerId, &Bytes, &Inspection),
    target: &Target,
    family: Family,
) -> Option<Prepared> {
    let (_, body, seen) = of;
    let field = target.provider.fields.customer_field(family.into());
    let named = field.map(|field| (field, CustomerName::of(proxy, of)));
    let named = named.filter(|(_, name)| name.own.is_some());
    let edits = Edits {
        customer: named.as_ref().map(|(field, name)| name.sent_in(field)),
        ..sending::edits(target, family, seen)
    };
    Some(Prepared {
        body: family.protocol().count_body(body, seen, &edits)?,
        ..Prepared::default()
    })
}

/// The request in another family for counting; `None` when that family cannot count it.
fn foreign(
    (caller, body): (Family, &[u8]),
    target: &Target,
    family: Family,
    model: &Model,
) -> Option<Prepared> {
    let abilities = model.abilities_of(target, family);
    let named = translate::EncodeTarget {
        model: &target.model,
        abilities: &abilities,
    };
    let body = translate::count_request(caller, family, body, &named)
        .ok()
        .flatten()?;
    let mut body = vec![Bytes::from(body)];
    if !target.fit.drop.is_empty() {
        let [written] = &*body else { return None };
        let protocol = family.protocol();
        let seen = protocol.inspect_count(written, clock::seed()).ok()?;
        let edits = Edits {
            translated: true,
            ..sending::edits(target, family, &seen)
        };
        body = protocol.count_body(written, &seen, &edits)?;
    }
    Some(Prepared {
        body,
        ..Prepared::default()
    })
}

fn counted(answer: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(answer)
        .ok()?
        .get("input_tokens")?
        .as_u64()
}

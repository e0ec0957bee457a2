//! Which account of a provider is asked, and where a conversation stays.

use std::collections::BTreeMap;

use super::*;
use crate::config::{KeysBy, Secrets, Source, load};
use farebox_door::byte_room::Holder;

/// Every variable is set.
struct Vault;

impl Secrets for Vault {
    fn variable(&self, name: &str) -> Option<String> {
        Some(format!("secret-{name}"))
    }

    fn file(&self, _: &std::path::Path) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// Keys with these weights, as the file has them.
fn keys(weights: &[u32], by: &str) -> ProviderKeys {
    let key = |(at, weight)| format!("{{ env = \"K{at}\", weight = {weight} }}");
    let listed: Vec<String> = weights.iter().enumerate().map(key).collect();
    let routes = format!(
        "[provider.a]\nbase_url = \"http://127.0.0.1:1\"\nspeaks = [\"chat\"]\nkeys_by = \"{by}\"\nkeys = [{}]\n[[route]]\nslug = \"sim\"\ntargets = [{{ provider = \"a\", model = \"m\" }}]\n",
        listed.join(", ")
    );
    let catalog = "[[model]]\nmodel = \"M\"\nslug = \"sim\"\nprovider = \"P\"\nbest_path = \"chat\"\nbest_environments = [\"x\"]\nprice = { input = \"1\", output = \"1\" }\ncapabilities = []\nlimits = { context = 1000, max_output = 100 }\n";
    let (catalog, routes) = (
        Source::new("catalog.toml", catalog),
        Source::new("routes.toml", routes),
    );
    let (config, found) = load(&catalog, &routes, &Vault);
    let config = config.unwrap_or_else(|| panic!("{found:?}"));
    config.providers[0].keys.clone()
}

/// A provider before an upstream, with three accounts of the same weight unless the test says otherwise.
fn with_accounts(name: &str, base: &str, weights: &[u32]) -> Provider {
    Provider {
        keys: keys(weights, "conversation"),
        ..provider(name, base)
    }
}

fn conversation(whole: u64) -> Conversation {
    Conversation {
        whole,
        request: 0,
        cached_for: Duration::from_secs(300),
    }
}

fn call(route: &Route) -> UpstreamCall<'_> {
    UpstreamCall::new(route, Holder(1), Family::Chat, TargetOperation::Generate)
}

impl Desk {
    fn places(&self, conversation: Conversation) -> Vec<(usize, usize)> {
        let places = self
            .upstreams
            .order(&call(&self.route), Some(conversation), |_, _| true);
        let place = |place: &AccountPlace| (place.target, place.account);
        places.all.iter().map(place).collect()
    }

    /// The account that answers.
    async fn answers(&self, conversation: Conversation) -> Option<usize> {
        let answer = dispatch(&self.upstreams, call(&self.route), Some(conversation)).await;
        answer.ok().map(|answer| answer.account.number)
    }
}

/// An upstream that refuses the accounts of which this returns a status.
async fn refusing(status: impl Fn(usize) -> Option<u16> + Send + 'static) -> ScriptedUpstream {
    ScriptedUpstream::tolerant(Script::by(move |seen, _| {
        let key = seen.header("authorization").unwrap_or_default();
        let account = key
            .rsplit('K')
            .next()
            .and_then(|number| number.parse().ok());
        match account.and_then(&status) {
            Some(status) => Reply::error(status, "error", None, "no"),
            None => Speech::new(Family::Chat, "x").whole(),
        }
    }))
    .await
}

#[test]
fn accounts_get_conversations_by_their_weights() {
    for weights in [vec![1, 1, 1], vec![1, 2, 3], vec![7, 100, 13, 5]] {
        let desk = Desk::new(route([with_accounts("a", "http://127.0.0.1:1", &weights)]));
        let mut counts = vec![0_u32; weights.len()];
        let many = 2_000 * if weights.len() > 3 { 10 } else { 1 };
        for number in 0..many {
            let places = desk.places(conversation(number * 7_919));
            assert_eq!(places.len(), weights.len());
            counts[places[0].1] += 1;
        }
        let all: u32 = weights.iter().sum();
        for (count, weight) in counts.iter().zip(&weights) {
            let expected = f64::from(*weight) / f64::from(all) * many as f64;
            let off = (f64::from(*count) - expected).abs() / expected;
            assert!(off < 0.15, "{counts:?} for {weights:?}");
        }
    }
}

#[test]
fn an_account_takes_only_its_share_and_leaves_only_its_own() {
    let three = Desk::new(route([with_accounts(
        "a",
        "http://127.0.0.1:1",
        &[1, 1, 1],
    )]));
    let four = Desk::new(route([with_accounts(
        "a",
        "http://127.0.0.1:1",
        &[1, 1, 1, 1],
    )]));
    let mut moved = 0;
    for number in 0..1_000 {
        let [before, after] = [&three, &four].map(|desk| desk.places(conversation(number)));
        if before[0] != after[0] {
            assert_eq!(after[0], (0, 3), "only to the new one");
            moved += 1;
        }
        let without: Vec<_> = after.into_iter().filter(|place| place.1 != 3).collect();
        assert_eq!(before, without, "the others keep their order");
    }
    assert!((200..300).contains(&moved), "{moved}");
}

#[test]
fn requests_are_divided_one_by_one_where_the_file_says_so() {
    let mut by_request = provider("a", "http://127.0.0.1:1");
    by_request.keys = keys(&[1, 1, 1], "request");
    assert_eq!(by_request.keys.by, KeysBy::Request);
    let desk = Desk::new(route([by_request]));
    let mut used = BTreeMap::<usize, u32>::new();
    for request in 0..300 {
        let one = Conversation {
            request,
            ..conversation(5)
        };
        *used.entry(desk.places(one)[0].1).or_default() += 1;
    }
    assert!(
        used.len() == 3 && used.values().all(|count| *count > 70),
        "{used:?}"
    );
}

#[test]
fn one_account_has_nothing_to_decide() {
    let alone = route([provider("a", "http://127.0.0.1:1")]);
    assert!(!alone.has_a_choice());
    let desk = Desk::new(alone);
    assert_eq!(desk.places(conversation(1)), [(0, 0)]);
    assert!(route([with_accounts("a", "", &[1, 1])]).has_a_choice());
    assert!(route([provider("a", ""), provider("b", "")]).has_a_choice());
}

#[tokio::test(start_paused = true)]
async fn what_an_account_may_not_do_is_asked_of_the_next_and_nobody_is_asked_twice() {
    for status in [401, 402, 403, 404, 429] {
        let upstream = refusing(move |_| Some(status)).await;
        let second = refusing(|_| None).await;
        let first = with_accounts("a", &upstream.base_url(), &[1, 1, 1]);
        let desk = Desk::new(route([first, provider("b", &second.base_url())]));
        let places = desk.places(conversation(9));
        let answer = dispatch(&desk.upstreams, call(&desk.route), Some(conversation(9)))
            .await
            .unwrap();
        assert_eq!(answer.target.name(), "b/b-model", "{status}");
        let tried: Vec<String> = answer.attempts.iter().map(ToString::to_string).collect();
        let expected = places[..3]
            .iter()
            .map(|place| format!("key {}: {status}", place.1 + 1));
        assert_eq!(tried.len(), 3, "{tried:?}");
        for (tried, expected) in tried.iter().zip(expected) {
            assert!(tried.contains(&expected), "{tried} is not of {expected}");
        }
    }
    // What is no account's fault is not asked of the others.
    for status in [500, 503, 529] {
        let upstream = refusing(move |_| Some(status)).await;
        let desk = Desk::new(route([with_accounts(
            "a",
            &upstream.base_url(),
            &[1, 1, 1],
        )]));
        let asked = dispatch(&desk.upstreams, call(&desk.route), Some(conversation(9))).await;
        assert_eq!((attempts(asked).len(), upstream.requests().len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_left_stays_while_its_prompt_is_cached_there() {
    let bad = Arc::new(std::sync::atomic::AtomicUsize::new(usize::MAX));
    let refused = Arc::clone(&bad);
    let upstream =
        refusing(move |account| (refused.load(Ordering::Relaxed) == account).then_some(401)).await;
    let desk = Desk::new(route([with_accounts(
        "a",
        &upstream.base_url(),
        &[1, 1, 1],
    )]));
    let ours = conversation(11);
    let order = desk.places(ours);
    let (home, next) = (order[0].1, order[1].1);
    assert_eq!(desk.answers(ours).await, Some(home));
    bad.store(home, Ordering::Relaxed);
    assert_eq!(desk.answers(ours).await, Some(next));
    let tries = upstream.requests().len();
    bad.store(usize::MAX, Ordering::Relaxed);
    for _ in 0..3 {
        tokio::time::advance(SECOND * 200).await;
        assert_eq!(
            desk.answers(ours).await,
            Some(next),
            "it is sound, but cold"
        );
    }
    assert_eq!(upstream.requests().len(), tries + 3, "and is not asked");
    let spilled: Vec<u64> = desk
        .upstreams
        .accounts("a")
        .iter()
        .map(|one| one.spills)
        .collect();
    assert_eq!((spilled[home], spilled.iter().sum::<u64>()), (1, 1));
    tokio::time::advance(SECOND * 300).await;
    assert_eq!(desk.answers(ours).await, Some(home));
    assert_eq!(desk.answers(ours).await, Some(home));

    // An account that is gone holds nobody.
    bad.store(home, Ordering::Relaxed);
    assert_eq!(desk.answers(ours).await, Some(next));
    bad.store(usize::MAX, Ordering::Relaxed);
    let fewer = Desk::new(route([with_accounts("a", &upstream.base_url(), &[1])]));
    let known = desk.upstreams.conversations.find(11, Instant::now).unwrap();
    fewer
        .upstreams
        .conversations
        .began(11, (known.seat, false), SECOND * 300, Instant::now());
    assert_eq!(fewer.answers(ours).await, Some(0));
}

#[tokio::test]
async fn a_cached_conversation_waits_a_moment_for_its_account_and_others_do_not() {
    let gate = Gate::new();
    let waits = Speech::new(Family::Chat, "x").whole().gated(&gate);
    let speaks = Speech::new(Family::Chat, "x").whole();
    let upstream = ScriptedUpstream::tolerant(Script::by(move |_, number| {
        if number == 1 {
            waits.clone()
        } else {
            speaks.clone()
        }
    }))
    .await;
    let mut narrow = with_accounts("a", &upstream.base_url(), &[1, 1]);
    narrow.max_concurrent = Some(1);
    let desk = Desk::new(route([narrow]));
    let of_account =
        |account| (0..).find(|whole| desk.places(conversation(*whole))[0].1 == account);
    let ours = conversation(of_account(0).unwrap());
    let other = conversation(
        (ours.whole + 1..)
            .find(|whole| desk.places(conversation(*whole))[0].1 == 0)
            .unwrap(),
    );
    assert_eq!(desk.answers(ours).await, Some(0));
    // Its account is taken by another request of it.
    let (held, _) = tokio::join!(desk.answers(ours), async {
        upstream.request(1).await;
        let began = Instant::now();
        assert_eq!(desk.answers(other).await, Some(1), "cold: at once");
        assert!(began.elapsed() < SECOND);
        assert_eq!(desk.answers(ours).await, Some(1), "after a moment");
        assert!((SECOND * 2..SECOND * 10).contains(&began.elapsed()));
        gate.open();
    });
    assert_eq!(held, Some(0));
}

#[tokio::test]
async fn room_at_any_account_ends_the_wait() {
    let gates = [Gate::new(), Gate::new()];
    let held = gates.clone();
    let upstream = ScriptedUpstream::tolerant(Script::by(move |_, number| {
        let speaks = Speech::new(Family::Chat, "x").whole();
        match held.get(number) {
            Some(gate) => speaks.gated(gate),
            None => speaks,
        }
    }))
    .await;
    let mut narrow = with_accounts("a", &upstream.base_url(), &[1, 1]);
    narrow.max_concurrent = Some(1);
    let desk = Desk::new(route([narrow]));
    let ours = conversation(3);
    let order = desk.places(ours);
    let (first, second, third, ()) = tokio::join!(
        desk.answers(ours),
        async {
            upstream.request(0).await;
            desk.answers(ours).await
        },
        async {
            upstream.request(1).await;
            desk.answers(ours).await
        },
        async {
            upstream.request(1).await;
            tokio::time::sleep(SECOND / 5).await;
            gates[1].open();
            upstream.request(2).await;
            gates[0].open();
        }
    );
    let accounts = [first, second, third].map(Option::unwrap);
    assert_eq!(accounts, [order[0].1, order[1].1, order[1].1]);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_returns_from_another_target() {
    let [first, second] = [
        ScriptedUpstream::tolerant(Reply::error(500, "server_error", None, "no")).await,
        ScriptedUpstream::tolerant(Speech::new(Family::Chat, "x").whole()).await,
    ];
    let desk = Desk::before(&[&first, &second]);
    let ours = conversation(1);
    let asked = async || {
        let answer = dispatch(&desk.upstreams, call(&desk.route), Some(ours)).await;
        let answer = answer.unwrap();
        (answer.target.provider.name.clone(), answer.account)
    };
    let (target, _) = asked().await;
    assert_eq!(target, "b");
    first.follow(Speech::new(Family::Chat, "x").whole());
    // Its prompt is cached there: it stays, although its first target is sound.
    for _ in 0..21 {
        let (target, account) = asked().await;
        assert_eq!(target, "b");
        desk.upstreams
            .counted(&account, Instant::now(), (5_000, 4_000));
        tokio::time::advance(SECOND * 170).await;
    }
    assert_eq!(first.requests().len(), 1);
    // After an hour it returns, whatever is warm.
    tokio::time::advance(SECOND * 40).await;
    let (target, _) = asked().await;
    assert_eq!(target, "a");

    // It returns at once when its prompt turns out not to be cached there.
    first.follow(Reply::error(500, "server_error", None, "no"));
    assert_eq!(asked().await.0, "b");
    first.follow(Speech::new(Family::Chat, "x").whole());
    for turn in 0..2 {
        let (target, account) = asked().await;
        assert_eq!(target, "b", "turn {turn}");
        desk.upstreams.counted(&account, Instant::now(), (5_000, 0));
        tokio::time::advance(SECOND).await;
    }
    assert_eq!(asked().await.0, "a");
    // What is too small to be cached anywhere keeps no place.
    first.follow(Reply::error(500, "server_error", None, "no"));
    let small = Conversation {
        cached_for: Duration::ZERO,
        ..conversation(2)
    };
    let asked = async || {
        dispatch(&desk.upstreams, call(&desk.route), Some(small))
            .await
            .unwrap()
    };
    assert_eq!(asked().await.target.provider.name, "b");
    first.follow(Speech::new(Family::Chat, "x").whole());
    assert_eq!(asked().await.target.provider.name, "a");
}

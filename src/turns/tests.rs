//! Who waits for whom.

use std::sync::{Arc, mpsc};

use super::*;

fn turns(places: usize) -> &'static Arc<Turns> {
    Box::leak(Box::new(Arc::new(Turns::here(places))))
}

fn work(turns: &'static Arc<Turns>, holder: u64) -> Work {
    Work::of(turns, Holder(holder))
}

/// A job that is running and ends when told to.
async fn blocked(
    turns: &'static Arc<Turns>,
    holder: u64,
) -> (
    tokio::task::JoinHandle<Result<(), WorkUndone>>,
    mpsc::Sender<()>,
) {
    let (end, ended) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let job = tokio::spawn(async move {
        let job = move || {
            begin.send(()).unwrap();
            // It also ends when the test does.
            let _ = ended.recv();
        };
        work(turns, holder).aside(job).await
    });
    begun.await.unwrap();
    (job, end)
}

fn spend(turns: &'static Arc<Turns>, holder: u64, time: Duration) {
    let mut state = turns.lock();
    state
        .budgets
        .book(Holder(holder), time, true, Instant::now());
}

#[tokio::test]
async fn a_customer_with_many_jobs_delays_another_by_one() {
    let turns = turns(2);
    let (_first, _end) = blocked(turns, 8).await;
    let (_running, end) = blocked(turns, 9).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut jobs = Vec::new();
    for (key, count) in [(1, 20), (2, 2), (3, 1)] {
        for _ in 0..count {
            let order = Arc::clone(&order);
            jobs.push(tokio::spawn(async move {
                let note = move || order.lock().unwrap().push(key);
                work(turns, key).aside(note).await
            }));
            tokio::task::yield_now().await;
        }
    }
    end.send(()).unwrap();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert_eq!(order.lock().unwrap()[..6], [1, 2, 3, 1, 2, 1]);
    assert_eq!(turns.lock().free, 1);
}

#[tokio::test]
async fn the_last_thread_is_for_those_within_their_budget() {
    let turns = turns(2);
    spend(turns, 1, OF_CUSTOMER.burst);
    let (_running, _end) = blocked(turns, 1).await;
    let waiting = tokio::spawn(async move { work(turns, 1).aside(|| ()).await });
    tokio::task::yield_now().await;
    assert_eq!(turns.lock().free, 1);
    for _ in 0..3 {
        work(turns, 2).aside(|| ()).await.unwrap();
    }
    assert!(!waiting.is_finished(), "beyond its budget");
    // Whoever is within the budget has one job there, not two.
    let (_other, _end_of_other) = blocked(turns, 2).await;
    assert_eq!(turns.lock().free, 0);
    waiting.abort();
}

#[tokio::test]
async fn a_job_that_was_left_keeps_its_place_until_it_ends_and_one_that_waits_does_not() {
    let turns = turns(2);
    let (_first, _end) = blocked(turns, 8).await;
    let (running, end) = blocked(turns, 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let left = tokio::spawn(async move { work(turns, 1).aside(|| ()).await });
    tokio::task::yield_now().await;
    left.abort();
    let (begin, mut begun) = oneshot::channel();
    let waiting =
        tokio::spawn(async move { work(turns, 2).aside(move || begin.send(()).unwrap()).await });
    tokio::task::yield_now().await;
    assert!(
        begun.try_recv().is_err(),
        "the work that was left still runs"
    );
    end.send(()).unwrap();
    waiting.await.unwrap().unwrap();
    begun.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_come_within_five_seconds_is_refused() {
    let turns = turns(2);
    let (one, two) = (
        turns.turn(Holder(1)).await.unwrap(),
        turns.turn(Holder(2)).await.unwrap(),
    );
    let begun = Instant::now();
    assert_eq!(work(turns, 3).aside(|| ()).await, Err(WorkUndone::Late));
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    assert_eq!(turns.refused.load(Ordering::Relaxed), 1);
    drop((one, two));
    assert_eq!(work(turns, 3).aside(|| 7).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn small_work_is_done_at_once_while_the_budget_lasts() {
    let turns = turns(2);
    let here = std::thread::current().id();
    let thread = || std::thread::current().id();
    let mut request = work(turns, 1);
    assert_eq!(request.read(1_000, thread).await, Ok(here));
    assert_ne!(
        request.read(300 * 1024, thread).await,
        Ok(here),
        "too large"
    );
    spend(turns, 1, OF_CUSTOMER.burst);
    assert_ne!(request.read(1_000, thread).await, Ok(here));
    assert_eq!(work(turns, 2).read(1_000, thread).await, Ok(here));
    // A tenth of a second for each second.
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(request.read(1_000, thread).await, Ok(here));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_paid_for_has_a_small_budget() {
    let turns = turns(2);
    let within = |holder| {
        let mut state = turns.lock();
        state.budgets.is_within(Holder(holder), Instant::now())
    };
    let burn = || {
        let begun = farebox_door::cpu::measured(|| ()).1;
        assert!(begun < UNPAID.burst);
        let mut state = turns.lock();
        for holder in [1, 2] {
            let holder = Holder(holder);
            state
                .budgets
                .book(holder, UNPAID.burst, false, Instant::now());
        }
        state.budgets.pay(Holder(2), UNPAID.burst, Instant::now());
    };
    burn();
    assert!(!within(1), "refused");
    assert!(within(2), "admitted");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(within(1), "ten milliseconds a second");
}

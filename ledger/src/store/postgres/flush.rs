//! Second round trip of a batch: writes what the operations changed in a few multi-row statements, then COMMIT.
//!
//! Everything is sent at once, COMMIT last. If a statement fails, the server turns COMMIT into a rollback; if COMMIT gets no
//! answer, or a warning, the outcome is unknown.

use std::pin::Pin;
use std::task::Poll;

use super::link::Link;
use super::tables::writes;
use super::trouble::TransactionTrouble;
use crate::batch::rows::Rows;

/// The pending result of a statement.
type PendingStatement<'link> =
    Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send + 'link>>;

/// Writes a batch and commits it.
pub(super) async fn flush(link: &Link, rows: &Rows) -> Result<(), TransactionTrouble> {
    // A batch that changes nothing has still locked its keys, and so waits for a standby: what it repeats is confirmed only then.
    let writes = writes(rows)?;
    let mut prepared = Vec::with_capacity(writes.len());
    for write in &writes {
        prepared.push((link.prepared(&write.sql).await?, write.values()));
    }
    link.take_warning();
    let mut answers: Vec<PendingStatement<'_>> = Vec::new();
    for (statement, values) in &prepared {
        answers.push(Box::pin(async move {
            link.client.execute(statement, values).await.map(drop)
        }));
    }
    answers.push(Box::pin(link.client.batch_execute("COMMIT")));
    in_order(answers).await?;
    if link.take_warning() {
        Err(TransactionTrouble::Unknown(
            "the server committed with a warning".into(),
        ))
    } else {
        Ok(())
    }
}

/// Writes a batch and leaves the transaction open.
pub(super) async fn write_all(link: &Link, rows: &Rows) -> Result<(), TransactionTrouble> {
    for write in &writes(rows)? {
        link.client
            .execute(&link.prepared(&write.sql).await?, &write.values())
            .await?;
    }
    Ok(())
}

/// Sends all in order, waits for all, and returns the first failure.
async fn in_order(mut answers: Vec<PendingStatement<'_>>) -> Result<(), TransactionTrouble> {
    let mut failed: Vec<Option<TransactionTrouble>> = Vec::new();
    failed.resize_with(answers.len(), || None);
    let mut open: Vec<usize> = (0..answers.len()).collect();
    std::future::poll_fn(|context| {
        open.retain(|at| {
            match answers
                .get_mut(*at)
                .map(|answer| answer.as_mut().poll(context))
            {
                Some(Poll::Pending) => true,
                Some(Poll::Ready(Err(error))) => {
                    if let Some(place) = failed.get_mut(*at) {
                        *place = Some(TransactionTrouble::of_commit(error));
                    }
                    false
                }
                Some(Poll::Ready(Ok(()))) | None => false,
            }
        });
        if open.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    failed.into_iter().flatten().next().map_or(Ok(()), Err)
}

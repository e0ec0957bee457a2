//! What is asked of a database by those who do not open its ledger as a gateway: operators who make one or accept a loss, and a gateway
//! that reads its own files first.

use super::confirmations::{self, AcceptedLoss, Confirmed};
use super::connector::Connector;
use super::facts::ServerPurpose;
use super::trouble::TransactionTrouble;
use super::{PostgresLedger, facts, migrations, now, standby};
use crate::store::address::Database;
use crate::store::copy::CopyIdentity;
use crate::value::clock;
use crate::{Ledger as _, LedgerError, OpenMode, Opening, Timestamp};

impl PostgresLedger {
    /// Makes a ledger in an empty database, and opens it.
    ///
    /// # Errors
    /// [`LedgerError::Misplaced`] when there is one already; else as [`PostgresLedger::open`].
    pub async fn create(database: &Database, opening: &Opening) -> Result<Self, LedgerError> {
        let made = make(database, opening).await;
        made.map_err(|error| error.at(&database.to_string()))?;
        Self::open(database, opening).await
    }

    /// Accepts the loss of what the state file remembers but the database no longer has: begins a new generation of the ledger, in
    /// which gateways sell again.
    ///
    /// # Errors
    /// As [`PostgresLedger::open`], and when nothing is missing; [`LedgerError::Unknown`] when the commit got no answer.
    pub async fn accept_lost(
        database: &Database,
        opening: &Opening,
        actor: &str,
        at: Timestamp,
    ) -> Result<AcceptedLoss, LedgerError> {
        let connector = Connector::new(database, ServerPurpose::Write, opening.allow_single)?;
        let mut link = connector.connect().await.map_err(LedgerError::Unusable)?;
        migrations::prepare(&mut link.client, OpenMode::Write).await?;
        standby::require(&link, &connector, opening.allow_single).await?;
        let known = Confirmed::load(opening.state.clone(), opening.anchors.as_deref())?;
        confirmations::accept(&link, &known, actor, at)
            .await
            .map_err(|trouble| match trouble {
                TransactionTrouble::Unknown(why) => LedgerError::Unknown(why),
                other => other.unusable(),
            })
    }

    /// Every loss that operators have accepted, oldest first.
    ///
    /// # Errors
    /// As [`PostgresLedger::open`].
    pub async fn accepted_losses(database: &Database) -> Result<Vec<AcceptedLoss>, LedgerError> {
        let mut link = Connector::new(database, ServerPurpose::Read, false)?
            .connect()
            .await
            .map_err(LedgerError::Unusable)?;
        migrations::prepare(&mut link.client, OpenMode::ReadOnly).await?;
        confirmations::accepted(&link)
            .await
            .map_err(TransactionTrouble::unusable)
    }

    /// Brings a ledger up to date as a later version with these further steps does. For tests.
    ///
    /// # Errors
    /// As [`PostgresLedger::open`].
    #[cfg(feature = "reference")]
    pub async fn migrate_by(database: &Database, steps: &[&str]) -> Result<(), LedgerError> {
        let connector = Connector::new(database, ServerPurpose::Write, true)?;
        let mut link = connector.connect().await.map_err(LedgerError::Unusable)?;
        let steps = [migrations::STEPS.as_slice(), steps].concat();
        migrations::migrate(&mut link.client, &steps).await
    }

    /// Every slug that the ledger in a database ever published; empty if there is no ledger yet. For the gateway, which reads its
    /// own files before it takes the ledger.
    ///
    /// # Errors
    /// As [`PostgresLedger::open`].
    pub async fn published_in(database: &Database) -> Result<Vec<String>, LedgerError> {
        let connector = Connector::new(database, ServerPurpose::Read, false)?;
        let link = connector.connect().await.map_err(LedgerError::Unusable)?;
        if migrations::is_empty(&link.client).await? {
            return Ok(Vec::new());
        }
        drop(link);
        let ledger = Self::open(database, &Opening::new(OpenMode::ReadOnly)).await?;
        Ok(ledger
            .published()
            .await?
            .into_iter()
            .map(|published| published.slug)
            .collect())
    }
}

async fn make(database: &Database, opening: &Opening) -> Result<(), LedgerError> {
    let connector = Connector::new(database, ServerPurpose::Write, opening.allow_single)?;
    let mut link = connector.connect().await.map_err(LedgerError::Unusable)?;
    facts::refuse_clock(&link.facts)?;
    migrations::check_server(&link.client).await?;
    standby::require(&link, &connector, opening.allow_single).await?;
    let identity = CopyIdentity {
        ledger: clock::random(),
        generation: 1,
        made_at: now(),
    };
    let transaction = link.client.transaction().await;
    let transaction = transaction.map_err(migrations::failed)?;
    migrations::make(&transaction, &identity).await?;
    transaction.commit().await.map_err(migrations::failed)
}

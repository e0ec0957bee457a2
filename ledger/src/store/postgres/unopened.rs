//! What is asked of a database by those who do not open its ledger as a gateway: operators who accept a loss, and a gateway that reads
//! its own files first.

use super::confirmed::{self, AcceptedLoss, Confirmed};
use super::connector::Connector;
use super::facts::ServerPurpose;
use super::trouble::TransactionTrouble;
use super::{PostgresLedger, migrations, now, standby};
use crate::store::address::Database;
use crate::{Ledger as _, LedgerError, OpenMode, Opening, Standby, Timestamp};

impl PostgresLedger {
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
        let mut link = Connector::new(database, ServerPurpose::Write, opening.allow_single)?
            .connect()
            .await
            .map_err(LedgerError::Unusable)?;
        migrations::prepare(&mut link.client, OpenMode::Write, at).await?;
        if let Standby::Missing(why) = standby::look(&link, opening.allow_single)
            .await
            .map_err(TransactionTrouble::unusable)?
        {
            return Err(LedgerError::unusable(why));
        }
        let known = Confirmed::load(opening.state.clone(), opening.anchors.as_deref())?;
        confirmed::accept(&link, &known, actor, at)
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
        migrations::prepare(&mut link.client, OpenMode::ReadOnly, now()).await?;
        confirmed::accepted(&link)
            .await
            .map_err(TransactionTrouble::unusable)
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

//! Opens the store on its thread: connects, prepares the schema, and starts the writer and the node.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Builder, Handle, Runtime};

use super::confirmations::{Comparison, Confirmed};
use super::connector::Connector;
use super::node::{self, NodeLease};
use super::readers::Readers;
use super::state::Shared;
use super::trouble::TransactionTrouble;
use super::writer::Lanes;
use super::{blockers, events, facts, migrations, standby};
use crate::{LedgerError, OpenMode, Opening};

/// The purpose for which the thread was started.
pub(super) struct Started {
    pub(super) readers: Arc<Readers>,
    pub(super) writer: Option<Arc<Shared>>,
    /// Its identity.
    pub(super) ledger: [u8; 16],
}

/// The runtime of the thread. `crowded` says whether several requests run here.
pub(super) fn runtime(crowded: &Arc<AtomicBool>) -> io::Result<Runtime> {
    let crowded = Arc::clone(crowded);
    let woken = move || {
        // On a busy CPU, waking up interrupted a caller. Let it go on until it has nothing else to do: what it brings meanwhile
        // shares the statements. Not where a request is alone: nobody would bring anything, and beside other programs a yield
        // costs a turn of theirs.
        if crowded.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    };
    Builder::new_current_thread()
        .enable_all()
        .on_thread_unpark(woken)
        .build()
}

/// On the thread: connects, prepares the schema, and starts the writer and the node.
pub(super) async fn start(
    connector: Connector,
    opening: Opening,
    crowded: Arc<AtomicBool>,
) -> Result<Started, LedgerError> {
    let mode = opening.mode;
    let mut link = connector
        .connect_for_batches()
        .await
        .map_err(LedgerError::Unusable)?;
    let confirmed = match mode {
        OpenMode::Serve => Confirmed::load(opening.state.clone(), opening.anchors.as_deref())?,
        OpenMode::Write | OpenMode::ReadOnly => Confirmed::default(),
    };
    if mode == OpenMode::Write {
        facts::refuse_clock(&link.facts)?;
    }
    let record = Arc::clone(connector.record());
    let shared = Arc::new(Shared::new(&opening, confirmed, crowded, record));
    if mode != OpenMode::ReadOnly {
        migrations::check_server(&link.client).await?;
        // Before the schema is changed: that is a commit too.
        let standby = standby::require(&link, &connector, opening.allow_single).await?;
        standby::note(&shared, Ok(standby));
    }
    let ledger = migrations::prepare(&mut link.client, mode).await?;
    if mode == OpenMode::Serve {
        let renumbered = events::renumber(&link).await;
        renumbered.map_err(TransactionTrouble::unusable)?;
        shared.keep_beside(opening.state.as_deref(), ledger);
    }
    let found = shared.confirmed.look(&link).await;
    if let Comparison::Lost { lost, stale } = found.map_err(TransactionTrouble::unusable)? {
        shared.lost(&lost, stale);
        return Err(LedgerError::unusable(
            shared.uncertain().unwrap_or_default(),
        ));
    }
    let readers = Arc::new(Readers::new(connector.clone(), Handle::current()));
    if mode == OpenMode::ReadOnly {
        return Ok(Started {
            readers,
            writer: None,
            ledger,
        });
    }
    tokio::spawn(
        Lanes {
            shared: Arc::clone(&shared),
            connector: connector.clone(),
            ledger,
        }
        .run(link),
    );
    if mode == OpenMode::Serve {
        if connector.has_several() {
            tokio::spawn(node::watch_servers(Arc::clone(&shared), connector.clone()));
        }
        tokio::spawn(blockers::watch(Arc::clone(&shared), connector.clone()));
        tokio::spawn(NodeLease::new(Arc::clone(&shared), connector).run());
    }
    Ok(Started {
        readers,
        writer: Some(shared),
        ledger,
    })
}

//! Every statement of the writer, under a typed name. Each is prepared once and stays prepared.
//!
//! Looking a statement up by its text, as the connection's own cache does, takes a tenth of the time of all writing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, PrepFlags, Result, Statement};

use super::rows::{SELECT_KEY_RECORD, select_act, select_entry, select_hold};
use super::totals;
use crate::store::rows::rollup_columns;
use crate::store::select::SELECT_CUSTOMER;
use crate::table::description::RowChange;

macro_rules! statements {
    ($($name:ident = $text:expr;)+) => {
        /// A statement of the writer.
        #[derive(Debug, Clone, Copy)]
        pub(super) enum Sql { $($name),+ }

        const COUNT: usize = [$(stringify!($name)),+].len();

        fn text(of: Sql) -> Cow<'static, str> {
            match of {
                $(Sql::$name => $text.into(),)+
            }
        }
    };
}

statements! {
    Begin = "BEGIN IMMEDIATE";
    Commit = "COMMIT";
    Totals = totals::ROW;
    EntriesAfter = totals::AFTER;
    // WHERE makes it evident that this is one row. SQLite copies the pages of a statement that may change more.
    UpdateTotals = "UPDATE totals SET keys = ?1, entries = ?2, audits = ?3, epoch = ?4, credit = ?5, spent = ?6, loss = ?7,
         charges = ?8, exposure = ?9, cost = ?10 WHERE id = 1";

    // Each names the values it replaces. The pair of seq and held changes with everything that happens to an account.
    SetHeld = "UPDATE accounts SET held = ?2, opened = ?3 WHERE id = ?1 AND credit = ?4 AND spent = ?5 AND held = ?6";
    // The claim with the account in one statement: what pays it moves both.
    MoveAccount = "UPDATE accounts SET credit = ?2, spent = ?3, held = ?4, seq = ?5, last = ?6, last_at = ?7, hash = ?8,
         claim = ?9, opened = ?10 WHERE id = ?1 AND held = ?11 AND seq = ?12";

    NewestOperation = "SELECT max(operation) FROM entries";
    NewestHold = "SELECT max(request) FROM holds";
    Hold = concat!(select_hold!(), " WHERE request = ?1");
    HoldsOfKey = concat!(select_hold!(), " WHERE h.key = ?1 OR h.key IN (SELECT id FROM keys WHERE counts_in = ?1)");
    HoldsOfCustomer = concat!(select_hold!(), " WHERE h.key IN (SELECT id FROM keys WHERE customer = ?1)");
    HoldsBefore = concat!(select_hold!(), " WHERE h.epoch < ?1 LIMIT ?2");
    InsertHold = "INSERT INTO holds VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    UpdateHold = "UPDATE holds SET amount = ?2, used = ?3, checkpoint = ?4, moves = ?5, parts = ?6 WHERE request = ?1";
    DeleteHold = "DELETE FROM holds WHERE request = ?1";
    InsertEpoch = "INSERT INTO epochs VALUES (?1, ?2)";

    Entry = concat!(select_entry!(), " WHERE e.operation = ?1");
    EntryByReference = concat!(select_entry!(), " WHERE e.reference = ?1");
    EntryByName = concat!(select_entry!(), " JOIN refs r ON r.operation = e.operation WHERE r.folded = ?1");
    InsertReference = "INSERT INTO refs VALUES (?1, ?2)";
    Refunds = "SELECT amount FROM entries WHERE refunds = ?1";
    InsertEntry = "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
         ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37)";
    // Two statements, because SQLite copies the pages of a statement that may do either. min() keeps an hour of absurd losses an
    // integer; sums of plausible counts come nowhere near.
    UpdateUsage = "UPDATE usage SET requests = requests + ?5, input = input + ?6, cache_read = cache_read + ?7,
             cache_write = cache_write + ?8, output = output + ?9, reasoning = reasoning + ?10,
             charge = min(charge + ?11, 9223372036854775807)
         WHERE hour = ?1 AND key = ?2 AND slug = ?3 AND target = ?4";
    // Most requests have none of these, and so need no second update of their hour.
    UpdateRare = "UPDATE usage SET exposure = min(exposure + ?5, 9223372036854775807), cost = min(cost + ?6, 9223372036854775807),
             cache_write_1h = cache_write_1h + ?7, cache_write_12h = cache_write_12h + ?8, calls = calls + ?9, images = images + ?10,
             loss = min(loss + ?11, 9223372036854775807), told = min(told + ?12, 9223372036854775807)
         WHERE hour = ?1 AND key = ?2 AND slug = ?3 AND target = ?4";
    InsertUsage = concat!("INSERT INTO usage (hour, key, slug, target, ", rollup_columns!(), ")
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9, ?10, 0, ?11, 0, 0, 0, 0, 0, 0)");
    // For a target that failed before another one answered.
    InsertRare = concat!("INSERT INTO usage (hour, key, slug, target, ", rollup_columns!(), ")
         VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, ?7, 0, 0, ?10, 0, ?11, ?5, ?6, ?8, ?9, ?12)");
    InsertSlug = "INSERT OR IGNORE INTO slugs (slug) VALUES (?1)";
    Slug = "SELECT id FROM slugs WHERE slug = ?1";
    InsertTarget = "INSERT OR IGNORE INTO targets (target, tier, place, context_band, account) VALUES (?1, ?2, ?3, ?4, ?5)";
    Target = "SELECT id FROM targets WHERE target = ?1 AND tier = ?2 AND place = ?3 AND context_band = ?4 AND account = ?5";
    Identity = "SELECT ledger FROM identity";
    Publish = "INSERT INTO slugs (slug, published_at) VALUES (?1, ?2)
         ON CONFLICT (slug) DO UPDATE SET published_at = coalesce(published_at, excluded.published_at)";

    // What others hold is counted by their rows.
    KeysCountedIn = format!("{SELECT_KEY_RECORD} WHERE k.counts_in = ?1 AND k.id IN (SELECT key FROM holds)");
    Made = "SELECT (SELECT count(*) FROM keys WHERE customer = ?1 AND counts_in IS NOT NULL AND status <> 3
             AND coalesce(expires_at, 9223372036854775807) > ?2),
         (SELECT count(*) FROM keys WHERE customer = ?1 AND created_at > ?3 AND counts_in IS NOT NULL)";
    KeysOfCustomer = format!("{SELECT_KEY_RECORD} WHERE k.customer = ?1");
    SpentHoursOfCustomer = "SELECT u.hour, s.slug, sum(u.charge) FROM usage u JOIN slugs s ON s.id = u.slug
         WHERE u.key IN (SELECT id FROM keys WHERE customer = ?1) GROUP BY u.hour, u.slug";
    SpentHours = "SELECT u.hour, s.slug, sum(u.charge) FROM usage u JOIN slugs s ON s.id = u.slug
         WHERE u.key IN (SELECT ?1 UNION ALL SELECT id FROM keys WHERE counts_in = ?1) GROUP BY u.hour, u.slug";

    // A sum is halved when what it is divided by has reached five million tokens.
    Lesson = "INSERT INTO lessons AS t VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET
         tokens = (t.tokens + excluded.tokens) / CASE WHEN t.tokens + excluded.tokens >= 5000000 THEN 2 ELSE 1 END,
         millis = (t.millis + excluded.millis) / CASE WHEN t.tokens + excluded.tokens >= 5000000 THEN 2 ELSE 1 END,
         theirs = (t.theirs + excluded.theirs) / CASE WHEN t.ours + excluded.ours >= 5000000 THEN 2 ELSE 1 END,
         ours = (t.ours + excluded.ours) / CASE WHEN t.ours + excluded.ours >= 5000000 THEN 2 ELSE 1 END,
         facts = t.facts | excluded.facts";
    ForgetLessons = "DELETE FROM lessons WHERE target = ?1";
    OldExcesses = "DELETE FROM excesses WHERE target = ?1 AND at <= ?2";
    Excess = "INSERT INTO excesses AS t VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET
         tokens = max(t.tokens, excluded.tokens), at = max(t.at, excluded.at)";
    ForgetExcesses = "DELETE FROM excesses WHERE target = ?1";

    ForgetAnswers = "DELETE FROM answers WHERE at <= ?1";
    ForgetEvents = "DELETE FROM events WHERE position < (SELECT min(position) FROM events) + ?2 AND at < ?1";
    ForgetDeliveries = "DELETE FROM deliveries WHERE event IN
         (SELECT id FROM events WHERE position < (SELECT min(position) FROM events) + ?2 AND at < ?1)";
    InsertWebhook = "INSERT INTO webhooks (id, url, since, handed) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    SetHanded = "UPDATE webhooks SET handed = ?2 WHERE id = ?1";
    DisableWebhook = "UPDATE webhooks SET disabled = ?2, why = ?3 WHERE id = ?1 AND disabled IS NULL";
    EnableWebhook = "UPDATE webhooks SET disabled = NULL, why = NULL WHERE id = ?1";
    InsertDelivery = "INSERT INTO deliveries (event, webhook, status, tries, due) VALUES (?1, ?2, 1, 0, ?3) ON CONFLICT DO NOTHING";
    PutDelivery = "INSERT INTO deliveries (event, webhook, status, tries, due) VALUES (?1, ?2, 1, 0, ?3)
         ON CONFLICT DO UPDATE SET status = 1, tries = 0, due = excluded.due";
    UpdateDelivery = "UPDATE deliveries SET status = ?3, tries = ?4, due = coalesce(?5, due), why = ?6 WHERE event = ?1 AND webhook = ?2";
    ReviveDeliveries = "UPDATE deliveries SET status = 1, tries = 0, due = ?2 WHERE webhook = ?1 AND status IN (1, 3)";
    // The most names of a month, and who of its customers comes later, are decided in the order of the statements.
    AddToRun = "INSERT INTO runs (customer, month, run, key, requests, charge) VALUES (?1, ?2,
             CASE WHEN EXISTS (SELECT 1 FROM runs WHERE customer = ?1 AND month = ?2 AND run = ?3)
                 OR (SELECT count(DISTINCT run) FROM runs WHERE customer = ?1 AND month = ?2 AND run <> '') < ?7
             THEN ?3 ELSE '' END, ?4, ?5, ?6)
         ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, charge = min(charge + excluded.charge, 9223372036854775807)";
    OwnCost = "INSERT INTO own_costs VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET cost = excluded.cost";

    Act = concat!(select_act!(), " WHERE operation = ?1");
    InsertAct = "INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    MoveAudit = "UPDATE accounts SET audit_last = ?2, audit_hash = ?3, audit_seq = ?4 WHERE id = ?1";

    Key = format!("{SELECT_KEY_RECORD} WHERE k.id = ?1");
    SetKeyCaps = "UPDATE keys SET caps = ?2 WHERE id = ?1";

    Customer = format!("{SELECT_CUSTOMER} WHERE a.id = ?1");
    SetWatch = "UPDATE accounts SET event_seq = ?2, last_top_up = ?3, told = ?4 WHERE id = ?1";
    SetNextGrant = "UPDATE accounts SET next_grant_at = ?2 WHERE id = ?1";
    SetAutoTopUp = "UPDATE accounts SET auto_top_up = ?2 WHERE id = ?1";
    SetCustomerCaps = "UPDATE accounts SET caps = ?2 WHERE id = ?1";
    PutPersonal = "INSERT INTO personal_data VALUES (?1, ?2) ON CONFLICT DO UPDATE SET data = excluded.data";
    ErasePersonal = "DELETE FROM personal_data WHERE customer = ?1";
    EraseAddressees = "UPDATE addressees SET data = NULL WHERE customer = ?1 AND data IS NOT NULL";
    PutAddressee = "INSERT INTO addressees VALUES (?1, ?2, ?3)";
    AddressToCustomer = "INSERT INTO addressees SELECT ?1, customer, data FROM personal_data WHERE customer = ?2";
    MoveAddressee = "UPDATE addressees SET customer = ?2 WHERE folded = ?1";

    EndSessions = "DELETE FROM sessions WHERE key = ?1";
    EndLinks = "DELETE FROM links WHERE key = ?1";
    ForgetLinks = "DELETE FROM links WHERE expires <= ?1";
    ForgetSessions = "DELETE FROM sessions WHERE expires <= ?1";
    TrimSessions = "DELETE FROM sessions WHERE key = ?1 AND token NOT IN
         (SELECT token FROM sessions WHERE key = ?1 ORDER BY at DESC, token LIMIT ?2)";
    TrimSessionsOfCustomer = "DELETE FROM sessions WHERE token IN (SELECT s.token FROM keys k JOIN sessions s ON s.key = k.id
         WHERE k.customer = (SELECT customer FROM keys WHERE id = ?1) ORDER BY s.at DESC, s.token LIMIT -1 OFFSET ?2)";
}

/// Marked as long-lived, a statement stays out of the small fast memory that running statements share.
fn prepare<'c>(conn: &'c Connection, text: &str) -> Result<Statement<'c>> {
    conn.prepare_with_flags(text, PrepFlags::SQLITE_PREPARE_PERSISTENT)
}

/// The statements of one connection, prepared when they are first used.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    conn: &'c Connection,
    prepared: [Option<Statement<'c>>; COUNT],
    /// Those that write described rows.
    of_tables: HashMap<(&'static str, RowChange), Statement<'c>>,
}

impl<'c> Statements<'c> {
    /// Whether what is deleted from now on is also overwritten.
    pub(super) fn overwrite_deleted(&self, wanted: bool) -> Result<()> {
        self.conn.pragma_update(None, "secure_delete", wanted)
    }

    pub(super) fn new(conn: &'c Connection) -> Self {
        Self {
            conn,
            prepared: [const { None }; COUNT],
            of_tables: HashMap::new(),
        }
    }

    /// The statement that makes a change to a table.
    pub(super) fn of_table(
        &mut self,
        change: (&'static str, RowChange),
        text: impl FnOnce() -> String,
    ) -> Result<&mut Statement<'c>> {
        match self.of_tables.entry(change) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(prepare(self.conn, &text())?)),
        }
    }

    pub(super) fn get(&mut self, sql: Sql) -> Result<&mut Statement<'c>> {
        let Some(place) = self.prepared.get_mut(sql as usize) else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        match place {
            Some(statement) => Ok(statement),
            None => Ok(place.insert(prepare(self.conn, &text(sql))?)),
        }
    }

    /// How many times the statements have run.
    #[cfg(test)]
    pub(super) fn runs(&self) -> i32 {
        self.prepared
            .iter()
            .flatten()
            .chain(self.of_tables.values())
            .map(|statement| statement.get_status(rusqlite::StatementStatus::Run))
            .sum()
    }
}

//! What a database's answer means to an operator: the kind of trouble, in words, and what ends it. Reads and judges; asks nothing.

use tokio_postgres::error::SqlState;

use super::trouble::TransactionTrouble;
use crate::{Cause, Fault, TroubleKind};

/// How many connections a gateway may need.
const CONNECTIONS: &str = "a gateway needs up to 12";

/// The server's SQLSTATE, if the error is its answer.
pub(super) fn sqlstate(cause: &Cause) -> Option<&str> {
    let error = cause.came_from::<tokio_postgres::Error>()?;
    error.code().map(SqlState::code)
}

/// A failure, with what ends it.
pub(super) fn of(cause: &Cause) -> Fault {
    let (words, sqlstate) = (cause.words(), sqlstate(cause));
    let (kind, remedy) = match sqlstate {
        Some(sqlstate) => of_server(sqlstate, words),
        None => of_connection(words),
    };
    let verb = match kind {
        TroubleKind::Unreachable => "the database cannot be reached",
        TroubleKind::Stopped
        | TroubleKind::Displaced
        | TroubleKind::Uncertain
        | TroubleKind::ClockWrong
        | TroubleKind::DiskFull
        | TroubleKind::LogLimit
        | TroubleKind::Blocked
        | TroubleKind::Refused
        | TroubleKind::Slow
        | TroubleKind::LogHeld
        | TroubleKind::ClockJumped => "the database refuses to be written",
    };
    let state = match sqlstate {
        Some(sqlstate) if !words.contains(sqlstate) => format!(" (SQLSTATE {sqlstate})"),
        _ => String::new(),
    };
    let fault = Fault::new(kind, format!("{verb}: {words}{state}"), remedy).answered(sqlstate);
    let waited = sqlstate == Some(SqlState::LOCK_NOT_AVAILABLE.code());
    if waited || sqlstate.is_none() && words.contains("in time") {
        return fault.vaguely();
    }
    fault
}

/// The failure of a batch, unless it is one of a single operation, or of two gateways that met.
pub(super) fn of_batch(trouble: &TransactionTrouble) -> Option<Fault> {
    match trouble {
        TransactionTrouble::Lost(why)
        | TransactionTrouble::Unknown(why)
        | TransactionTrouble::Busy(why) => Some(of(why)),
        // Classes 22 and 23 are about a value: only the operation that has it fails.
        TransactionTrouble::Rejected { sqlstate, why } => {
            let of_value = ["22", "23"].iter().any(|class| sqlstate.starts_with(class));
            (!of_value).then(|| of(why))
        }
        TransactionTrouble::Retry(_)
        | TransactionTrouble::Failed(_)
        | TransactionTrouble::Fenced => None,
    }
}

/// What nobody has explained yet.
pub(super) fn unexplained(what: &str) -> Fault {
    let cause = format!(
        "the database cannot be reached: {what} has been under way for more than a second without an answer"
    );
    Fault::new(TroubleKind::Unreachable, cause, SILENT).vaguely()
}

/// A second connection got no answer either.
pub(super) fn silent(place: &str) -> Fault {
    let cause =
        format!("the database cannot be reached: {place} does not answer, nor a second connection");
    Fault::new(TroubleKind::Unreachable, cause, SILENT)
}

const SILENT: &str = "is the database's server frozen, overloaded or cut off? Wake it or mend the network; if it is gone for good, fence it \
     and promote the standby (docs/FLEET.md)";
const READ_ONLY: &str = "ALTER DATABASE … RESET default_transaction_read_only (or ALTER ROLE, ALTER SYSTEM: wherever it was set)";

/// By the code that the server answered.
fn of_server(sqlstate: &str, words: &str) -> (TroubleKind, String) {
    use TroubleKind::{Blocked, Refused, Unreachable};
    let (kind, remedy) = match sqlstate {
        "53300" if words.contains("for role") => (
            Unreachable,
            format!("ALTER ROLE … CONNECTION LIMIT n with a higher n ({CONNECTIONS}), or end sessions of this role"),
        ),
        "53300" if words.contains("for database") => (
            Unreachable,
            format!("ALTER DATABASE … CONNECTION LIMIT n with a higher n ({CONNECTIONS}), or end sessions of this database"),
        ),
        "53300" => (
            Unreachable,
            format!("end sessions that nobody needs, or raise max_connections of the server ({CONNECTIONS})"),
        ),
        "53100" => (Refused, "free space on the disk of the database's server".to_owned()),
        "28P01" | "28000" => (
            Unreachable,
            "give the role the password of the address again (ALTER ROLE … PASSWORD), or correct the address (--ledger, FAREBOX_LEDGER) and \
             start the gateway again; pg_hba.conf says who may come"
                .to_owned(),
        ),
        "3D000" => (
            Unreachable,
            "the database was dropped or renamed: restore it, or correct the address (--ledger, FAREBOX_LEDGER)".to_owned(),
        ),
        "25006" => (Refused, READ_ONLY.to_owned()),
        "57014" => (
            Refused,
            "ALTER ROLE … RESET statement_timeout (or ALTER DATABASE, ALTER SYSTEM: wherever it was set); Farebox bounds its waits itself"
                .to_owned(),
        ),
        "42501" => (
            Refused,
            "GRANT the right back, or let the role own the table again (ALTER TABLE … OWNER TO)".to_owned(),
        ),
        "55P03" => (
            Blocked,
            "pg_stat_activity and pg_blocking_pids tell who has the lock: let it finish, or end it".to_owned(),
        ),
        "57P01" | "57P02" | "57P03" => (
            Unreachable,
            "the server is stopping or starting: wait for it, or start it".to_owned(),
        ),
        _ => (Refused, "the server's log says more".to_owned()),
    };
    (kind, remedy)
}

/// By the words of whoever tried to connect.
fn of_connection(words: &str) -> (TroubleKind, String) {
    use TroubleKind::{Refused, Unreachable};
    let (kind, remedy) = if words.contains("default_transaction_read_only") {
        (Refused, READ_ONLY)
    } else if words.contains("Expired") || words.contains("expired") {
        (
            Unreachable,
            "renew the certificate of the database's server (ssl_cert_file), then SELECT pg_reload_conf()",
        )
    // Only now: one that has expired is also called a certificate.
    } else if words.contains("ertificate") {
        (
            Unreachable,
            "the server's certificate must name it as the address does, and be signed by an authority that this machine knows (sslrootcert)",
        )
    } else if words.contains("cannot be resolved") {
        (
            Unreachable,
            "make the name known again (getent hosts NAME tells whether it is: DNS, /etc/hosts), or correct the address",
        )
    } else if words.contains("refused") || words.contains("No such file") {
        (
            Unreachable,
            "start the database's server, or correct the address",
        )
    } else {
        (Unreachable, SILENT)
    };
    (kind, remedy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_connection_lead_to_what_ends_it() {
        for (words, kind, remedy) in [
            (
                "a:5432: invalid peer certificate: Expired",
                TroubleKind::Unreachable,
                "ssl_cert_file",
            ),
            (
                "the name cannot be resolved: unknown",
                TroubleKind::Unreachable,
                "getent",
            ),
            (
                "takes no writes (default_transaction_read_only)",
                TroubleKind::Refused,
                "RESET",
            ),
            (
                "Connection refused (os error 111)",
                TroubleKind::Unreachable,
                "start the database",
            ),
            (
                "a:5432: does not answer",
                TroubleKind::Unreachable,
                "frozen",
            ),
        ] {
            let fault = of(&words.into());
            assert!(
                fault.kind == kind && fault.remedy.contains(remedy),
                "{fault}"
            );
            assert!(fault.cause.contains(words), "{fault}");
        }
    }

    #[test]
    fn codes_of_the_server_lead_to_what_ends_them() {
        for (sqlstate, words, remedy) in [
            ("53300", "too many connections for role \"f\"", "ALTER ROLE"),
            (
                "53300",
                "sorry, too many clients already",
                "max_connections",
            ),
            ("28P01", "password authentication failed", "PASSWORD"),
            (
                "57014",
                "canceling statement due to statement timeout",
                "statement_timeout",
            ),
            ("42501", "permission denied for table entries", "GRANT"),
            ("XX000", "odd", "log"),
        ] {
            let (_, told) = of_server(sqlstate, words);
            assert!(told.contains(remedy), "{sqlstate}: {told}");
        }
    }
}

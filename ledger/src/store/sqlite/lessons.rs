//! What targets have taught, in a file: what a batch writes of it, and how all of it is read.

use rusqlite::{Connection, Result, params};

use super::batch::{BatchTables, Changed};
use super::rows::Columns;
use super::statements::Sql;
use crate::Taught;
use crate::batch::changes::{Changes, TaughtChange};
use crate::store::lesson_rows::{self, EXCESS, LESSON};
use crate::store::rows::number;

impl BatchTables<'_> {
    /// Adds what is new, in its order, or removes what is forgotten.
    pub(super) fn taught(&mut self, changes: &Changes) -> Result<()> {
        for change in &changes.taught {
            match change {
                TaughtChange::Added(taught) => {
                    self.teach(taught)?;
                    // The keys cached for readers need not be forgotten for it.
                    self.mark(Changed::Rows);
                }
                TaughtChange::Forgotten(target) => {
                    self.statements.get(Sql::ForgetLessons)?.execute([target])?;
                    let excesses = self.statements.get(Sql::ForgetExcesses)?;
                    excesses.execute([target])?;
                }
            }
        }
        Ok(())
    }

    fn teach(&mut self, Taught { lessons, excesses }: &Taught) -> Result<()> {
        for lesson in lessons {
            self.statements.get(Sql::Lesson)?.execute(params![
                lesson.target,
                lesson.class,
                number(lesson.tokens),
                number(lesson.millis),
                number(lesson.theirs),
                number(lesson.ours),
                lesson.facts.to_i64(),
            ])?;
        }
        for excess in excesses {
            let old = params![excess.target, excess.forgets()];
            self.statements.get(Sql::OldExcesses)?.execute(old)?;
        }
        for excess in excesses {
            self.statements.get(Sql::Excess)?.execute(params![
                excess.target,
                excess.customer,
                number(excess.tokens),
                excess.at,
            ])?;
        }
        Ok(())
    }
}

pub(super) fn taught(conn: &Connection) -> Result<Taught> {
    let sql = format!("SELECT {LESSON} FROM lessons ORDER BY target, class");
    let mut lessons = conn.prepare_cached(&sql)?;
    let lessons = lessons.query_map([], |row| Ok(lesson_rows::lesson(&mut Columns::of(row))?))?;
    let lessons = lessons.collect::<Result<_>>()?;
    let sql = format!("SELECT {EXCESS} FROM excesses ORDER BY target, customer");
    let mut excesses = conn.prepare_cached(&sql)?;
    let excesses = excesses.query_map([], |row| Ok(lesson_rows::excess(&mut Columns::of(row))?))?;
    let excesses = excesses.collect::<Result<_>>()?;
    Ok(Taught { lessons, excesses })
}

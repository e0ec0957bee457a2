//! The defaults of the house. A gateway sets them at its start and whenever it loads its catalog; the newest load counts.

use super::check_unused;
use crate::batch::needs::Needs;
use crate::batch::operation::{AskableOperation, LedgerOperation};
use crate::batch::outcome::Outcome;
use crate::batch::rows::Rows;
use crate::book::house_act::{self, HouseAct, HouseSubject};
use crate::rule::defaults::{DefaultsRow, StandingDefaults};
use crate::table::needs::RowName;
use crate::value::text::clean;
use crate::{Refusal, SetDefaults};

/// The word of the act.
const SET: &str = "set_defaults";

fn set(rows: &mut Rows, SetDefaults { defaults, act }: &SetDefaults) -> Result<(), Refusal> {
    if rows
        .house_act(act.operation)
        .is_some_and(|known| known.act == SET)
    {
        return Ok(());
    }
    check_unused(rows, act.operation)?;
    defaults.check()?;
    let known = rows.tables.get::<DefaultsRow>(&DefaultsRow::ID);
    let known = known.map(|row| (*row.state).clone()).unwrap_or_default();
    if known.is(defaults) {
        return Ok(());
    }
    let number = house_act::head(rows.tables.iter()).seq.saturating_add(1);
    let state = known.changed(defaults, (number, rows.today()));
    let row = (state != StandingDefaults::default()).then(|| DefaultsRow::of(state));
    rows.append_house_act(
        HouseAct {
            seq: 0,
            at: act.at,
            actor: act.actor.clone(),
            act: SET.to_owned(),
            of: HouseSubject::Defaults,
            operation: act.operation,
            details: defaults.details().to_string(),
        },
        house_act::state_of_defaults(row.as_ref()),
    );
    match row {
        Some(row) => rows.tables.put(row),
        None => drop(rows.tables.take::<DefaultsRow>(&DefaultsRow::ID)),
    }
    Ok(())
}

impl LedgerOperation for SetDefaults {
    fn askable(&self) -> Option<&dyn AskableOperation> {
        None
    }

    fn needs(&self) -> Needs<'_> {
        let standing = RowName::Defaults(DefaultsRow::ID);
        Needs::of_house(self.act.operation).with([standing])
    }

    fn apply(&self, rows: &mut Rows) -> Result<Outcome, Refusal> {
        set(rows, self).map(|()| Outcome::Done)
    }

    fn clean(&mut self) {
        clean(&mut self.act.actor);
        let caps = [&mut self.defaults.key, &mut self.defaults.customer];
        let caps = caps.into_iter().flat_map(|of| &mut of.caps);
        caps.filter_map(|cap| cap.model.as_mut()).for_each(clean);
    }
}

//! The books: entries and administrative acts, their hash chains and anchors, and the pages and documents made of them.

pub mod anchor;
pub mod audit;
pub(crate) mod chain;
pub mod credit;
pub mod csv;
pub mod document;
pub mod entry;
pub(crate) mod grant_act;
pub(crate) mod grant_answer;
mod grant_check;
pub(crate) mod head;
mod history;
mod hold_check;
pub mod house_act;
pub mod margin;
pub(crate) mod money_acts;
pub mod page;
pub(crate) mod payment_answer;
pub(crate) mod plan_act;
pub mod plan_answer;
mod reader;
pub(crate) mod run;
pub mod statement;
pub(crate) mod verify;

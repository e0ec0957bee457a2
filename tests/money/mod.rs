//! Money: holds, charges and balances, in races, through crashes and on failing storage.

mod balance;
mod billing;
mod crash;
mod fields;
mod fleet;
mod lies;
mod prices;
mod races;
mod storage;

//! Money: holds, charges and balances, in races, through crashes and on failing storage.

mod adversary;
mod attacks;
mod balance;
mod billing;
mod bodies;
mod bypasses;
mod counting;
mod crash;
mod ends;
mod esc;
mod exposure;
mod failover;
mod fields;
mod fleet;
mod hidden;
mod leaving;
mod lies;
mod limits;
mod month_end;
mod oddities;
mod owed;
mod passes;
mod prices;
mod races;
mod stop;
mod storage;

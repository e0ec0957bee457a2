//! The figures of the rule about money, from real gateways before a provider that bills: attacks, honest people, and bad input.
//!
//! Each row of the tables in `docs/results/money.md` is a test of that name; a row is data, and one harness runs all of them. Every day
//! rows are small and one seed is asked. `FAREBOX_FULL=1` has the real sizes, and with `FAREBOX_BLESS=1` the page is written.

mod asks;
mod attacks;
mod crowd;
mod foreign;
mod inputs;
mod page;
mod people;
mod scenario;
mod world;

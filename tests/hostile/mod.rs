//! Hostile customers, strangers and providers: none keeps the others from being served, and none reads what is not theirs.

mod account_names;
mod breakers;
mod busy_core;
mod canary;
mod crowd;
mod descriptors;
mod door;
mod fuzz;
mod kept;
mod memory;
mod probe_lease;
mod recovery;
mod strangers;
mod unknown;
mod work;

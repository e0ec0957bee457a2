//! Requests and answers on the customer's paths: who may call, what is refused, what goes upstream and what comes back.

mod addresses;
mod auth;
mod bad_input;
mod blame;
mod chat;
mod cors;
mod crossing;
mod cut_here;
mod failover;
mod front_door;
mod instream;
mod messages;
mod models;
mod moves;
mod open_responses;
mod presets;
mod refusals;
mod replay;
mod responses;
mod routes;
mod seals;
mod stops;
mod streaming;
mod translation;
mod turns;
mod versions;

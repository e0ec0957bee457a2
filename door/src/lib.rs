//! The one door of a listener, for the gateway and for the shop.
//!
//! A path enters a router only as a [`DoorPath`], which names the body that it takes and who calls it. The door takes the body out of
//! every request before anything else sees it: what reads it is [`UnreadBody`], within the path's limits. What needs no key is done
//! within the budget that strangers have ([`Strangers`]), and is refused before any work beyond it. Memory for bodies is a
//! [`byte_room::ByteRoom`], whose size follows the machine ([`memory`]).

pub mod body;
pub mod byte_room;
mod calls;
pub mod cpu;
mod members;
pub mod memory;
mod path;
mod router;
mod sender;
mod strangers;

pub use body::{BodyFault, BodyPayer, FormFields, NoBodyRoom, NotRead, UnreadBody};
pub use calls::{CallPlace, CallPlaces};
pub use members::JsonMembers;
pub use path::{BodyRule, DoorPath, FORM, LARGEST_TREE, Method, PathCaller};
pub use router::{Door, TurnAway, TurnedAway, Visit};
pub use sender::{RequestSender, network, peer};
pub use strangers::Strangers;

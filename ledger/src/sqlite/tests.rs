//! What only this room can test.

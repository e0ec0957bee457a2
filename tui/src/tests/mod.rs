//! Tests of the console without a terminal.

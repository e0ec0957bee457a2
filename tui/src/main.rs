//! Console. 
fn main() {}

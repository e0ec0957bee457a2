//! Walks JSON bytes without building a tree, and splices them.

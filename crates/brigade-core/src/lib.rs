//! The house itself: what a team does with the files that [`brigade_wire`] knows.
//!
//! Empty for now. Mail, board and roster over a `Store` come to live here.

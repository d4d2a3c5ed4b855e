//! What a team does with the files that [`brigade_wire`] knows. Empty so far.

//! Prints the public surface of a crate, an item a line, from what rustdoc says of it as JSON.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args_os().nth(1).ok_or("which file of rustdoc's?")?;
    // What every type has, or has by its fields, says nothing of ours.
    let surface = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    for item in surface.items() {
        println!("{item}");
    }
    Ok(())
}

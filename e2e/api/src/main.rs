//! Prints the public API of a crate, one item per line, from rustdoc's JSON output.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args_os().nth(1).ok_or("the path of the JSON file is missing")?;
    // Blanket and auto trait implementations say nothing about our API.
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    for item in api.items() {
        println!("{item}");
    }
    Ok(())
}

#![no_main]

#[path = "../laws.rs"]
#[expect(dead_code, reason = "each target uses one of the functions")]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::team(bytes));

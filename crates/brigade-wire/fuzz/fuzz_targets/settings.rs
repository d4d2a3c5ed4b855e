#![no_main]

#[path = "../laws.rs"]
#[expect(dead_code, reason = "each target checks one law of several")]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::settings(bytes));

// SPDX-License-Identifier: MIT
//! FILE ROUNDS: from a path to all tensors in fresh memory, each in a Vec of its own, by the safetensors
//! crate over a mapping, as its documentation shows. Freeing is not counted. Prints one JSON object.
use std::{env, error::Error, fs::File, time::Instant};

fn load(path: &str) -> Result<(f64, usize), Box<dyn Error>> {
    let start = Instant::now();
    let file = File::open(path)?;
    let map = unsafe { memmap2::MmapOptions::new().map(&file)? };
    let tensors = safetensors::SafeTensors::deserialize(&map)?;
    let held: Vec<(String, Vec<u8>)> =
        tensors.iter().map(|(name, view)| (name.to_string(), view.data().to_vec())).collect();
    Ok((start.elapsed().as_secs_f64(), held.len()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    if arguments.len() != 3 {
        return Err("usage: tenfold-bench-rust FILE ROUNDS".into());
    }
    let rounds: usize = arguments[2].parse()?;
    let mut seconds = Vec::new();
    for round in 0..=rounds {
        let (took, count) = load(&arguments[1])?;
        if count == 0 {
            return Err("no tensors".into());
        }
        if round > 0 {
            seconds.push(took.to_string());
        }
    }
    println!("{{\"seconds\": [{}]}}", seconds.join(", "));
    Ok(())
}

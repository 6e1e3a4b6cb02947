//! `aneforge devices`

use crate::failure::Failure;
use crate::output;
use serde::Serialize;

/// List the devices: those of this machine and those that are not to be had here.
#[derive(clap::Args)]
pub struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    available: bool,
    description: String,
}

/// Lists them.
pub fn run(options: &Options) -> Result<(), Failure> {
    let rows: Vec<Row> = aneforge::devices()
        .into_iter()
        .map(|info| Row { name: info.name, available: info.available, description: info.description })
        .collect();
    if options.json {
        #[derive(Serialize)]
        struct Devices {
            devices: Vec<Row>,
        }
        return output::json(&Devices { devices: rows });
    }
    let cells: Vec<_> = rows
        .into_iter()
        .map(|row| vec![row.name, if row.available { "here" } else { "not here" }.to_string(), row.description])
        .collect();
    output::data(&output::table(&cells, &[]))
}

//! `aneforge chips`

use crate::failure::Failure;
use crate::output;
use aneforge::core::{Features, Limits, Tier, compiler_targets};
use serde::Serialize;

/// List the chips and the 28 targets of Apple's engine compiler: families, units, limits, features.
#[derive(clap::Args)]
pub struct Options {
    /// Print JSON, with all limits and their sources.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    target: &'static str,
    silicon: &'static str,
    tier: Tier,
    family: Option<String>,
    units: u32,
    chips: Vec<Product>,
    features: Features,
    limits: Limits,
}

#[derive(Serialize)]
struct Product {
    name: &'static str,
    product: &'static str,
    memory_gigabytes_per_second: u32,
    source: &'static str,
}

/// Lists them.
pub fn run(options: &Options) -> Result<(), Failure> {
    let rows: Vec<Row> = compiler_targets()
        .iter()
        .map(|target| Row {
            target: target.name,
            silicon: target.silicon,
            tier: target.tier,
            family: target.family().map(|family| family.to_string()),
            units: target.units,
            chips: target
                .products()
                .map(|chip| Product {
                    name: chip.name,
                    product: chip.product,
                    memory_gigabytes_per_second: chip.memory_bandwidth,
                    source: chip.source,
                })
                .collect(),
            features: target.features,
            limits: target.limits(),
        })
        .collect();
    if options.json {
        #[derive(Serialize)]
        struct Targets {
            targets: Vec<Row>,
        }
        return output::json(&Targets { targets: rows });
    }
    let head = ["target", "silicon", "family", "units", "chips", "extent", "kernel", "has"].map(str::to_string).to_vec();
    let cells = rows.iter().map(|row| {
        let kernel = format!("{}x{}", row.limits.max_kernel_height, row.limits.max_kernel_width[0]);
        vec![
            row.target.to_string(),
            row.silicon.to_string(),
            row.family.clone().unwrap_or_else(|| row.tier.to_string()),
            row.units.to_string(),
            row.chips.iter().map(|chip| chip.name).collect::<Vec<_>>().join(" "),
            row.limits.max_extent.to_string(),
            kernel,
            features(&row.features),
        ]
    });
    output::data(&output::table(&std::iter::once(head).chain(cells).collect::<Vec<_>>(), &[3, 5, 6]))
}

fn features(features: &Features) -> String {
    if !features.mil {
        return "takes no MIL".to_string();
    }
    let named = [(features.texture, "texture"), (features.sine, "sine"), (features.dropout, "dropout"), (features.fp8, "fp8")];
    named.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

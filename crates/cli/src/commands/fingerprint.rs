//! `aneforge fingerprint`

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use aneforge::conform::fingerprint::{self, Filter, Row};
use aneforge::conform::published::Status;

/// Recompute the engine's published error figures on the emulator; ends with 1 where an exact one is missed.
#[derive(clap::Args)]
pub struct Options {
    /// Only workloads with this in their name.
    #[arg(long)]
    filter: Option<String>,
    /// Only this chip, for example m1.
    #[arg(long)]
    chip: Option<String>,
    /// Print JSON: an array of objects.
    #[arg(long)]
    json: bool,
}

/// Computes, prints, judges.
pub fn run(options: &Options) -> Result<(), Failure> {
    let filter = Filter { workload: options.filter.clone(), chip: options.chip.clone() };
    let mut bar: Option<(Progress, usize)> = None;
    let rows = fingerprint::run(&filter, &mut |now| {
        let (bar, shown) = bar.get_or_insert_with(|| (Progress::new(now.total, "computing"), 0));
        bar.advance(now.done - *shown);
        *shown = now.done;
    });
    drop(bar);
    let rows = rows.map_err(|error| Failure::input(&error))?;
    if rows.is_empty() {
        return Err(Failure::Input("no published figure matches; without --filter and --chip all are computed".to_string()));
    }
    if options.json {
        output::bare_json(&rows)?
    } else {
        output::data(&table(&rows))?
    }
    let exact = rows.iter().filter(|row| row.status == Status::Exact).count();
    let missed = rows.iter().filter(|row| !row.holds()).count();
    output::note(&format!(
        "{} figures; {exact} claimed exact, {} of them within {:e}",
        rows.len(),
        exact - missed,
        fingerprint::EXACT_TOLERANCE
    ));
    if missed > 0 {
        return Err(Failure::Check(format!("{missed} of {exact} exact figures are missed")));
    }
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let heading = ["workload", "chips", "published", "ours", "difference", "status"].map(String::from).to_vec();
    let cells = rows.iter().map(|row| {
        vec![
            row.workload.clone(),
            row.chips.clone(),
            format!("{:.16e}", row.published),
            format!("{:.16e}", row.ours),
            format!("{:+.1e}", row.difference),
            match row.status {
                Status::Exact if row.holds() => "exact",
                Status::Exact => "missed",
                Status::Close => "close",
                Status::Modelled => "modelled",
            }
            .to_string(),
        ]
    });
    output::table(&std::iter::once(heading).chain(cells).collect::<Vec<_>>(), &[2, 3, 4])
}

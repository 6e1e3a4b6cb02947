//! A page with a roofline for each chip: how fast each operation of a model would run, over how much arithmetic it does per byte.

use aneforge::core::CompilerTarget;
use aneforge::cost::body::Item;
use aneforge::cost::{Basis, ChipModel, Kind};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Size of a plot and of its frame, in pixels.
const SIZE: (f64, f64) = (640.0, 320.0);
const FRAME: (f64, f64) = (56.0, 36.0);
/// Range of the axes: operations per byte, operations per second.
const ACROSS: (f64, f64) = (0.05, 2e4);
const UP: (f64, f64) = (1e8, 1e14);

const STYLE: &str = "body{font:14px/1.4 system-ui,sans-serif;margin:2rem auto;max-width:680px;color:#222}\
    h2{margin:2rem 0 .2rem}p{margin:.2rem 0}svg{width:100%;height:auto}text{font-size:11px;fill:#555}\
    .grid{stroke:#e4e4e4}.roof{stroke:#333;fill:none;stroke-width:1.5}.product{fill:#1f6fb2}.vector{fill:#c8641b}";

/// The page.
pub fn page(description: &str, chips: &[(&'static CompilerTarget, ChipModel)], items: &[Item]) -> String {
    let page: Markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Rooflines: " (description) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (description) }
                p {
                    "Each dot is an operation (its area grows with its time): blue multiplies matrices, orange does not. Lines are the \
                     chip's roofs: bandwidth of weights, products, convolutions with larger kernels. All values are estimates from \
                     published measurements."
                }
                @for (target, chip) in chips {
                    h2 { (chip.chip.product) " (" (target.name) ")" }
                    p {
                        @match &chip.basis {
                            Basis::Fitted { machines } => { "fitted to " (machines.join(", ")) }
                            Basis::Extrapolated { rule } => { "extrapolated: " (rule) }
                        }
                    }
                    (plot(chip, items))
                }
            }
        }
    };
    page.into_string()
}

fn across(value: f64) -> f64 {
    let part = (value.clamp(ACROSS.0, ACROSS.1) / ACROSS.0).ln() / (ACROSS.1 / ACROSS.0).ln();
    FRAME.0 + part * (SIZE.0 - FRAME.0 - 12.0)
}

fn up(value: f64) -> f64 {
    let part = (value.clamp(UP.0, UP.1) / UP.0).ln() / (UP.1 / UP.0).ln();
    SIZE.1 - FRAME.1 - part * (SIZE.1 - FRAME.1 - 12.0)
}

fn plot(chip: &ChipModel, items: &[Item]) -> Markup {
    let (product, convolution, stream) = chip.rates.roofs();
    let roof = |peak: f64| {
        let ridge = peak / stream;
        format!(
            "{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}",
            across(ACROSS.0),
            up(ACROSS.0 * stream),
            across(ridge),
            up(peak),
            across(ACROSS.1),
            up(peak)
        )
    };
    html! {
        svg viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) role="img" aria-label=(format!("roofline of {}", chip.chip.product)) {
            @for power in -1..=4 {
                @let x = across(10f64.powi(power));
                line.grid x1=(place(x)) x2=(place(x)) y1=(place(up(UP.0))) y2=(place(up(UP.1))) {}
                text x=(place(x)) y=(place(SIZE.1 - FRAME.1 + 14.0)) text-anchor="middle" { (number(10f64.powi(power))) }
            }
            @for power in 8..=14 {
                @let y = up(10f64.powi(power));
                line.grid x1=(place(across(ACROSS.0))) x2=(place(across(ACROSS.1))) y1=(place(y)) y2=(place(y)) {}
                text x=(place(FRAME.0 - 6.0)) y=(place(y + 4.0)) text-anchor="end" { (rate(10f64.powi(power))) }
            }
            text x=(place(SIZE.0 / 2.0)) y=(place(SIZE.1 - 6.0)) text-anchor="middle" { "operations per byte" }
            polyline.roof points=(roof(product)) {}
            polyline.roof points=(roof(convolution)) stroke-dasharray="4 3" {}
            @for item in items {
                @for work in item.work.iter().filter(|work| work.kind != Kind::Free) {
                    @let (time, _) = chip.operation(work);
                    @let done = work.flops.max(work.elements) * work.count / (time * 1e-3).max(1e-12);
                    @let radius = (time.max(1e-4) * 1e4).powf(0.25) * 1.2;
                    circle class=(if work.is_product() { "product" } else { "vector" }) cx=(place(across(work.intensity())))
                        cy=(place(up(done))) r=(place(radius)) fill-opacity="0.6" {
                        title { (item.op) " " (item.name) ": " (format!("{time:.4} ms, {}", rate(done))) }
                    }
                }
            }
        }
    }
}

fn place(value: f64) -> String {
    format!("{value:.1}")
}

fn number(value: f64) -> String {
    if value < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn rate(value: f64) -> String {
    match value {
        value if value >= 1e12 => format!("{} T/s", number(value / 1e12)),
        value if value >= 1e9 => format!("{} G/s", number(value / 1e9)),
        value => format!("{} M/s", number(value / 1e6)),
    }
}

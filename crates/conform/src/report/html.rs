//! The report as one page of HTML.

/// The page.
pub fn page() -> String {
    String::new()
}

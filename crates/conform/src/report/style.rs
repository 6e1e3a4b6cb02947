//! Looks and behaviour of the page.

/// Light and dark; the first column stays, the page itself never scrolls sideways.
pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --text: #1b1f24; --back: #fff; --line: #d0d7de; --on: #c6efce; --around: #fff1b8; --gated: #ffd8b0;
  --off: #f8c8c8; --silent: #eceff2; --link: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --back: #0d1117; --line: #30363d; --on: #12502b; --around: #5c4a08;
  --gated: #6b3a0c; --off: #6e1f24; --silent: #21262d; --link: #79c0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 0 .75rem 3rem; font: 1rem/1.45 system-ui, sans-serif; color: var(--text);
  background: var(--back); overflow-wrap: anywhere; }
a { color: var(--link); } h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; list-style: none; font-size: .9rem; }
.key { display: inline-block; width: 1.5em; text-align: center; border-radius: .2rem; }
input { font: inherit; width: min(100%, 22rem); padding: .35rem .5rem; border: 1px solid var(--line); border-radius: .3rem;
  color: inherit; background: var(--back); }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .875rem; overflow-wrap: normal; }
th, td { border: 1px solid var(--line); padding: .2rem .35rem; text-align: left; vertical-align: top; }
.matrix td { text-align: center; padding: 0; } .matrix td a { display: block; padding: .2rem .4rem; color: inherit;
  text-decoration: none; } .matrix td .outcome { padding: .2rem .4rem; display: block; }
.matrix th[scope=row], .matrix thead th:first-child { position: sticky; left: 0; z-index: 1; background: var(--back);
  max-width: 11rem; overflow-wrap: anywhere; }
.on { background: var(--on); } .around { background: var(--around); } .gated { background: var(--gated); }
.off { background: var(--off); } .silent { background: var(--silent); }
.outcome.fail, .outcome.refused { background: var(--off); } .outcome.pass { background: var(--on); }
.contradicted td { border-style: dashed; } sup { font-size: .65em; }
details { border-top: 1px solid var(--line); padding: .35rem 0; } details:target { outline: 2px solid var(--link); }
summary { cursor: pointer; } pre { overflow-x: auto; max-width: 100%; font-size: .8rem; background: var(--silent); padding: .5rem; }
cite { font-style: normal; opacity: .8; } [hidden] { display: none; }
";

/// Filters rows and details by every word typed, and opens the detail that a link leads to.
pub(super) const SCRIPT: &str = "
const field = document.getElementById('filter');
const rows = [...document.querySelectorAll('[data-words]')];
field.addEventListener('input', () => {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every(word => row.dataset.words.toLowerCase().includes(word));
});
const open = () => {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (found instanceof HTMLDetailsElement) { found.hidden = false; found.open = true; found.scrollIntoView(); }
};
addEventListener('hashchange', open);
open();
";

"""Look of the study's page: light and dark, the colours of methods, plots that fade on hover."""

from __future__ import annotations

LOOKS = 10
"""Colours there are; further methods begin again, with broken lines."""

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2024; --soft: #60666c; --rule: #e3e6e8;
  --shade: #f5f7f8; --oracle: #8b9197;
  --c0: #0b6bcb; --c1: #c2410c; --c2: #6d8b3c; --c3: #22262a; --c4: #8b5cb8; --c5: #a08a2c;
  --c6: #0f8a8a; --c7: #c43d78; --c8: #5468c4; --c9: #8a5a3c; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181b; --ink: #e6e8ea; --soft: #9aa1a8;
  --rule: #2b3035; --shade: #1d2125; --oracle: #858c93;
  --c0: #5aaaf5; --c1: #f08a4b; --c2: #a3c46a; --c3: #f1f3f5; --c4: #bb92e3; --c5: #d3bd58;
  --c6: #4cc4c4; --c7: #ef7fae; --c8: #8d9df0; --c9: #c4926e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 66rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .3rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .3rem 0 .7rem; max-width: 46rem; }
.soft, figcaption, caption { color: var(--soft); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr));
  gap: 1rem 1.5rem; }
figure { margin: 0; min-width: 0; }
figcaption, caption { font-size: .85rem; text-align: left; padding: .2rem 0; }
svg { width: 100%; height: auto; display: block; --c: var(--oracle); }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
svg .name { fill: var(--c); }
.grid { stroke: var(--rule); } .zero { stroke: var(--soft); stroke-width: 1.2; }
.series { transition: opacity .12s; }
.line { fill: none; stroke: var(--c); stroke-width: 1.6; stroke-linejoin: round; }
.reach { fill: none; stroke: transparent; stroke-width: 12; }
.lead { stroke: var(--c); stroke-width: .6; opacity: .6; }
.band { fill: var(--c); opacity: .05; }
.series.main .band, .series:hover .band { opacity: .16; }
.series.main .line { stroke-width: 2.6; } .series.main .name, text.main { font-weight: 650; }
.series circle { fill: var(--c); }
.whisker { stroke: var(--c); stroke-width: 2; }
.hollow circle, .dot.hollow { fill: var(--paper); stroke: var(--c); stroke-width: 1.6; }
.hollow .whisker { stroke-width: 1.2; }
.dot { opacity: .8; }
.broken .line, .oracle .line { stroke-dasharray: 5 4; }
svg:has(.series:hover) .series:not(:hover) { opacity: .18; }
.scroll { overflow-x: auto; margin-bottom: .9rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .55rem; text-align: right; white-space: nowrap; }
thead th { white-space: normal; max-width: 7rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { border-bottom: 1px solid var(--soft); font-weight: 600; vertical-align: bottom; }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
tbody th { font-weight: 400; } tr.main th { font-weight: 650; } tr.oracle { color: var(--soft); }
td small { color: var(--soft); font-size: .95em; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
li { overflow-wrap: anywhere; }
""" + "\n".join(f".m{at} {{ --c: var(--c{at}); }}" for at in range(LOOKS))
"""CSS. A series has the class ``m<i>`` of its method, ``oracle``, and ``main`` for the default."""

"""The style of the picture, light and dark."""

STYLE = """
:root { color-scheme: light dark; }
svg {
  --paper: #ffffff; --ink: #1f2328; --quiet: #59636e; --grid: #d8dee4;
  --up: #2da44e; --waits: #d4a72c; --down: #cf222e; --outage: #cf222e;
  --s0: #0969da; --s1: #8250df; --s2: #bc4c00; --s3: #1b7c83; --s4: #bf3989; --s5: #57606a;
  font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
@media (prefers-color-scheme: dark) {
  svg {
    --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --grid: #2a313a;
    --up: #3fb950; --waits: #bb8009; --down: #ff7b72; --outage: #ff7b72;
    --s0: #58a6ff; --s1: #bc8cff; --s2: #f0883e; --s3: #39c5cf; --s4: #f778ba; --s5: #8b949e;
  }
}
.paper { fill: var(--paper); }
text { fill: var(--ink); }
.heading { font-size: 19px; font-weight: 600; }
.heading.long { font-size: 16px; }
.name { font-weight: 600; }
.small { font-size: 12px; font-weight: 400; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--grid); stroke-width: 1; }
.up { fill: var(--up); }
.waits { fill: var(--waits); }
.outage { fill: var(--outage); fill-opacity: 0.09; }
.cross { stroke: var(--down); stroke-width: 2.5; stroke-linecap: round; fill: none; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.series-0 { stroke: var(--s0); } .dot.series-0 { fill: var(--s0); }
.series-1 { stroke: var(--s1); } .dot.series-1 { fill: var(--s1); }
.series-2 { stroke: var(--s2); } .dot.series-2 { fill: var(--s2); }
.series-3 { stroke: var(--s3); } .dot.series-3 { fill: var(--s3); }
.series-4 { stroke: var(--s4); } .dot.series-4 { fill: var(--s4); }
.series-5 { stroke: var(--s5); } .dot.series-5 { fill: var(--s5); }
"""

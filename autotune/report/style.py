"""The CSS of an HTML report, for paper, phones and dark screens."""

from autotune.pictures.files import variable
from autotune.pictures.palette import DARK

_DARK = "".join(f"{variable(light)}:{dark};" for light, dark in DARK.items())

STYLE = (
    """
:root{--paper:#fefefe;--ink:#1d2125;--soft:#555d66;--line:#d5dae0;--shade:#f4f6f8;--good:#00664a;--plain:#5b4a00;
--link:#00548a}
@media screen and (prefers-color-scheme:dark){:root{--paper:#16191d;--ink:#e6e8ea;--soft:#a9b1ba;--line:#3a4048;
--shade:#20252b;--good:#4fdcae;--plain:#e9c46a;--link:#7cc4f5;"""
    + _DARK
    + """}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif}
main{max-width:56rem;margin:0 auto;padding:1.25rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-top:.5rem;border-top:1px solid var(--line)}
p,li,dd,figcaption,caption{overflow-wrap:anywhere}
td,th{overflow-wrap:break-word;max-width:34rem}
.about{color:var(--soft);font-size:.9rem;margin:1rem 0 0}
a{color:var(--link)}
.verdict{font-size:1.2rem;line-height:1.4;margin:1rem 0;padding:.75rem 1rem;background:var(--shade);
border-left:.35rem solid var(--plain)}
.verdict.gain{border-left-color:var(--good)}
.remarks{margin:.5rem 0;padding-left:1.25rem;color:var(--plain)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.75rem 1.5rem;margin:1.25rem 0}
.figures dt{color:var(--soft);font-size:.85rem}
.figures dd{margin:0;font-weight:600}
nav ul{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;font-size:.95rem}
.scroll{overflow-x:auto}
.scroll:focus-visible{outline:2px solid var(--link);outline-offset:2px}
table{border-collapse:collapse;font-size:.9rem;margin:.5rem 0 1rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding-bottom:.35rem}
th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{border-bottom:2px solid var(--line)}
tbody th{font-weight:400}
.number{text-align:right}
pre{background:var(--shade);padding:.75rem 1rem;margin:.5rem 0 1rem;font-size:.82rem;line-height:1.45;width:max-content;
min-width:100%}
figure{margin:1.25rem 0 1.75rem}
figure svg{display:block;width:100%;height:auto;min-width:36rem}
figcaption{font-size:.92rem;color:var(--soft);margin-top:.35rem}
figcaption strong{color:var(--ink)}
details{font-size:.92rem;margin-top:.35rem}
summary{cursor:pointer;color:var(--link)}
@media print{body{font-size:10.5pt}main{max-width:none;padding:0}nav,details{display:none}h2{break-after:avoid}
figure,tr,.verdict,pre{break-inside:avoid}.about{break-after:avoid}figure svg{min-width:0}.scroll{overflow:visible}
pre{white-space:pre-wrap;overflow-wrap:anywhere;width:auto}}
"""
)
"""CSS. Pictures have colours as variables (`autotune.pictures.files.to_svg`), which are set on dark screens only."""

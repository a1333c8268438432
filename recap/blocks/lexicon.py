"""Words and file endings that tell identifiers from the rest of a text: data, no code."""

from __future__ import annotations

_STOP_WORDS = """
    about above after again all also and any are because been before being below between both but
    can could did does doing done down each few for from further get give had has have having her
    here him his how however into its itself just let like make many may maybe might more most
    much must need not now off once only other our out over own please same see should since some
    still such sure than that the their them then there these they this those though through too
    under until upon use used using very want was way well were what when where which while who
    whom why will with within without would yes yet you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that tell requests nothing; neither parts nor request words."""

_EXTENSIONS = """
    adoc astro bak bash bat bin bmp c cc cfg cjs class cmake cmd conf cpp cs css csv cu cuh cxx
    dart db diff dll doc docx ejs env erb ex exe exs fish gif gguf go gql gradle graphql groovy gz
    h hcl hh hpp hs htm html ico ini ipynb jar java jl jpeg jpg js json json5 jsonl jsx kt kts
    less lock log lua m map md mdx mjs mk ml mm mod mp3 mp4 npy npz parquet patch pb pdf php pkl
    pl png ppt pptx prisma properties proto ps1 pt py pyc pyi pyx r rb rs rst safetensors sass
    scala scss sh sol sql sqlite sum svelte svg swift tar tcl tex tf toml traj ts tsv tsx txt vim
    vue wasm wav webp whl xls xlsx xml yaml yml zig zip zsh
"""
EXTENSIONS = frozenset(_EXTENSIONS.split())
"""File endings: they mark a file name, and are no parts of their own."""

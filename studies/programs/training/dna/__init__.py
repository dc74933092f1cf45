"""DNA sequence decoding with a U-Net at single-base resolution: where, base by base, does CTCF bind?

A program of its own, run by a Python that has torch and numpy: `python -P -m dna --help`, with the folder above this
one in PYTHONPATH. Imports nothing of this project but the files beside this folder.

The network is the one of H. Li and Y. Guan, "Fast decoding cell type-specific transcription factor binding landscape
at single-nucleotide resolution", Genome Research 31 (2021), 721, as used in the APAC HPC-AI competition of 2022. The
code was written from that description.
"""

"""The emulated machines of the loop nest: compiler flags and number of cores."""

from dataclasses import dataclass

from autotune.records.measurement import Facts

# Width of the vector registers of each instruction set, in bits.
_VECTOR_BITS = {"x86-64": 128, "x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}


@dataclass(frozen=True)
class LoopMachine:
    """An emulated processor: its instruction set, optimisation level of the compiler, and number of cores."""

    isa: str
    optimisation: str
    cores: int

    @property
    def name(self) -> str:
        return f"{self.isa}-{self.optimisation}-{self.cores}"

    @property
    def flags(self) -> tuple[str, ...]:
        return f"-march={self.isa}", f"-{self.optimisation}"

    @property
    def facts(self) -> Facts:
        return {
            "cpu_vendor": "amd",
            "cpu_microarchitecture": self.isa,
            "cpu_vector_bits": _VECTOR_BITS[self.isa],
            "cores_per_node": self.cores,
            "compiler_optimisation": self.optimisation,
        }


MACHINES = (
    LoopMachine("x86-64", "O1", 1),
    LoopMachine("x86-64", "O3", 2),
    LoopMachine("x86-64-v2", "O3", 1),
    LoopMachine("x86-64-v2", "O1", 2),
    LoopMachine("x86-64-v3", "Ofast", 1),
    LoopMachine("x86-64-v3", "O3", 2),
    LoopMachine("x86-64-v4", "O1", 1),
    LoopMachine("x86-64-v4", "Ofast", 2),
)

"""Loading of the programs of a run from environment modules, Spack packages and container images."""

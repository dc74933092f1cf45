"""Where the programs of a run come from: environment modules, Spack packages, container images."""

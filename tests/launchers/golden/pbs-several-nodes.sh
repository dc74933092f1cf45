#!/bin/bash -l
#PBS -N at-1a2b3c4d-00013-2
#PBS -l select=2:ncpus=48:mpiprocs=3:ngpus=4:mem=190GB:model=sky:gpu_type=a100+2:ncpus=32:mpiprocs=2:ngpus=4:mem=190GB:model=sky:gpu_type=a100
#PBS -l place=scatter:excl
#PBS -l walltime=01:32:00
#PBS -r n
#PBS -j oe
#PBS -o .autotune-scheduler.log
#PBS -P jx00
#PBS -q normal
#PBS -A grant-7
#PBS -W group_list=climate
#PBS -l software=qe
#PBS -l abaqus=2
#PBS -m n
#PBS -W umask=022
export OMPI_MCA_orte_default_hostfile="$PBS_NODEFILE"
export PRTE_MCA_prte_default_hostfile="$PBS_NODEFILE"
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
module load openmpi/4.1.2 || exit 1
module load 'it'"'"'s a/module' || exit 1
ulimit -s unlimited
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

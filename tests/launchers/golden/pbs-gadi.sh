#!/bin/bash -l
#PBS -N at-1a2b3c4d-00012-1
#PBS -l ncpus=1200
#PBS -l mem=760GB
#PBS -l walltime=00:10:00
#PBS -r n
#PBS -j oe
#PBS -o .autotune-scheduler.log
#PBS -P jx00
#PBS -q normal
#PBS -l software=qe
#PBS -l wd
#PBS -l storage=scratch/jx00
export OMPI_MCA_orte_default_hostfile="$PBS_NODEFILE"
export PRTE_MCA_prte_default_hostfile="$PBS_NODEFILE"
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
module load openmpi/4.1.2 || exit 1
module load qe/7.0 || exit 1
exec /scratch/jx00/venv/bin/python -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

#!/bin/bash -l
#SBATCH --job-name=at-1a2b3c4d-00013-2
#SBATCH --nodes=4
#SBATCH --ntasks=10
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=4
#SBATCH --mem=194560M
#SBATCH --time=01:32:00
#SBATCH --exclusive
#SBATCH --output=/dev/null
#SBATCH --no-requeue
#SBATCH --export=NONE
#SBATCH --account=jx00
#SBATCH --partition=normal
#SBATCH --qos=high
#SBATCH --licenses=abaqus:2,qe
#SBATCH --constraint=haswell
#SBATCH --hint=nomultithread
export SLURM_EXPORT_ENV=ALL
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
module load openmpi/4.1.2 || exit 1
module load 'it'"'"'s a/module' || exit 1
ulimit -s unlimited
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

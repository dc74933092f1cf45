#!/bin/bash -l
#SBATCH --job-name=at-1a2b3c4d-00012-1
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --threads-per-core=1
#SBATCH --time=01:00:00
#SBATCH --output=/dev/null
#SBATCH --no-requeue
#SBATCH --export=NONE
export SLURM_EXPORT_ENV=ALL
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
export PATH='/opt/it'"'"'s mine/bin:/usr/bin'
export HOME=/home/me
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

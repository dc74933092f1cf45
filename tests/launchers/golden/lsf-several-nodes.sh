#!/bin/bash -l
#BSUB -J at-1a2b3c4d-00013-2
#BSUB -P jx00
#BSUB -q normal
#BSUB -sla high
#BSUB -n 160
#BSUB -R "span[ptile=40]"
#BSUB -R "rusage[mem=194560MB/host,abaqus=2,qe=1]"
#BSUB -gpu "num=4"
#BSUB -W 01:32
#BSUB -x
#BSUB -rn
#BSUB -env none
#BSUB -oo .autotune-scheduler.log
#BSUB -app training
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
module load openmpi/4.1.2 || exit 1
module load 'it'"'"'s a/module' || exit 1
ulimit -s unlimited
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

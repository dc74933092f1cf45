#!/bin/bash -l
#$ -N at-1a2b3c4d-00013-2
#$ -pe orte 192
#$ -l gpu=4
#$ -l h_vmem=4054M
#$ -l h_rt=01:32:00
#$ -wd /
#$ -j y
#$ -o /dev/null
#$ -S /bin/bash
#$ -r n
#$ -notify
#$ -P jx00
#$ -q normal
#$ -l abaqus=2
#$ -l qe=1
#$ -m n
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
module load openmpi/4.1.2 || exit 1
module load 'it'"'"'s a/module' || exit 1
ulimit -s unlimited
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

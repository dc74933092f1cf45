#!/bin/bash -l
#BSUB -J at-1a2b3c4d-00012-1
#BSUB -n 1
#BSUB -R "span[ptile=1]"
#BSUB -W 01:00
#BSUB -rn
#BSUB -env none
#BSUB -oo .autotune-scheduler.log
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
export PATH='/opt/it'"'"'s mine/bin:/usr/bin'
export HOME=/home/me
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

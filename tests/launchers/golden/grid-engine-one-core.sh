#!/bin/bash -l
#$ -N at-1a2b3c4d-00012-1
#$ -l h_rt=01:00:00
#$ -wd /
#$ -j y
#$ -o /dev/null
#$ -S /bin/bash
#$ -r n
#$ -notify
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
export PATH='/opt/it'"'"'s mine/bin:/usr/bin'
export HOME=/home/me
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

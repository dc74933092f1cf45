#!/bin/bash -l
#PBS -N at-1a2b3c4d-00012-1
#PBS -l ncpus=12
#PBS -l mem=48640MB
#PBS -l walltime=00:13:00
#PBS -r n
#PBS -j oe
#PBS -o .autotune-scheduler.log
#PBS -P jx00
#PBS -q normal
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
export PATH='/opt/it'"'"'s mine/bin:/usr/bin'
export HOME=/home/me
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

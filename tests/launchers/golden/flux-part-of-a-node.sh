#!/bin/bash -l
#flux: --job-name=at-1a2b3c4d-00012-1
#flux: --bank=jx00
#flux: --queue=normal
#flux: --nodes=1
#flux: --nslots=1
#flux: --cores-per-slot=12
#flux: --time-limit=780s
#flux: --output=.autotune-scheduler.log
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
export PATH='/opt/it'"'"'s mine/bin:/usr/bin'
export HOME=/home/me
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

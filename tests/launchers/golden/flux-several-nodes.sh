#!/bin/bash -l
#flux: --job-name=at-1a2b3c4d-00013-2
#flux: --bank=jx00
#flux: --queue=normal
#flux: --nodes=4
#flux: --nslots=4
#flux: --cores-per-slot=40
#flux: --gpus-per-slot=4
#flux: --time-limit=5520s
#flux: --exclusive
#flux: --output=.autotune-scheduler.log
#flux: --setattr=system.alloc-bypass.R=no
umask 0022
exec >>/scratch/jx00/study/runs/00012-1/.autotune-queue.log 2>&1
module load openmpi/4.1.2 || exit 1
module load 'it'"'"'s a/module' || exit 1
ulimit -s unlimited
exec /opt/python/bin/python3 -I /opt/autotune/launchers/node.py /scratch/jx00/study/runs/00012-1 TOKEN

#!/usr/bin/env bash
# scripts/sweep.sh against a real Slurm on this machine alone (Debian's slurmctld, slurmd and munge, configured in a
# temporary folder and stopped afterwards). As root; about a minute; not part of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "test_slurm.sh: only root can start slurmd" >&2; exit 1; }
missing=()
for package in slurmctld slurmd slurm-client munge; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
fi
export HYPEROFFLOAD=${HYPEROFFLOAD:-$PWD/build/hyperoffload}
[ -x "$HYPEROFFLOAD" ] || scripts/build.sh

work=$(mktemp -d)
pids=()
finish() {
  if [ $? -ne 0 ]; then tail -n 20 "$work"/job-*.log "$work"/slurm*.log >&2 || true; fi
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait || true
  rm -rf "$work"
}
trap finish EXIT

# Its own munge: socket and key in the temporary folder.
install -d -m 0755 "$work/munge"
install -d -o munge -g munge -m 0755 "$work/munge/run" "$work/munge/log" "$work/munge/lib"
chmod 0755 "$work"
dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 status=none
chown munge "$work/munge/key"
chmod 0400 "$work/munge/key"
setpriv --reuid=munge --regid=munge --clear-groups /usr/sbin/munged --foreground --socket="$work/munge/run/socket" --key-file="$work/munge/key" \
  --pid-file="$work/munge/run/pid" --log-file="$work/munge/log/log" --seed-file="$work/munge/lib/seed" 2>"$work/munged.out" &
pids+=($!)

name=$(hostname -s)
mkdir "$work/state" "$work/spool"
cat > "$work/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/run/socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
NodeName=$name NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$name Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
for _ in $(seq 50); do [ -S "$work/munge/run/socket" ] && break; sleep 0.2; done
/usr/sbin/slurmctld -D -f "$SLURM_CONF" >"$work/slurmctld.out" 2>&1 &
pids+=($!)
/usr/sbin/slurmd -D -f "$SLURM_CONF" >"$work/slurmd.out" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  [ "$(sinfo -h -o %t 2>/dev/null)" = idle ] && break
  sleep 0.3
done
if [ "$(sinfo -h -o %t)" != idle ]; then
  echo "test_slurm.sh: the node doesn't come up" >&2
  tail -n 20 "$work"/slurm*.log "$work"/*.out >&2
  exit 1
fi

experiment=configs/experiments/prefill-sweep.yaml
settings=(--set 'policies=[on_demand, graph]' --set 'sweep.hbm=[12GB, 24GB]')
export SBATCH_ARGS="--output=$work/job-%a.log"
scripts/sweep.sh --slurm 3 $experiment -o "$work/slurm" "${settings[@]}" >"$work/slurm.txt"
HYPEROFFLOAD_JOBS=1 "$HYPEROFFLOAD" sweep $experiment -o "$work/here" "${settings[@]}" >"$work/here.txt"
diff -r "$work/slurm" "$work/here"
[ "$(find "$work/slurm" -name result.json | wc -l)" -eq 20 ]
grep -h "run now" "$work"/job-*.log

# A job that is cancelled half way loses nothing, and the array run again does the rest.
find "$work/slurm" -name result.json | head -n 7 | xargs rm
rm "$work/slurm/results.csv"
scripts/sweep.sh --slurm 2 $experiment -o "$work/slurm" "${settings[@]}" >"$work/slurm.txt"
diff -r "$work/slurm" "$work/here"

# Wrong input is told before anything is submitted.
if scripts/sweep.sh --slurm 2 $experiment -o "$work/never" --set 'sweep.hbm=[]' 2>"$work/wrong.txt"; then exit 1; fi
grep -q "found an empty list" "$work/wrong.txt"
[ ! -e "$work/never" ]
echo "Slurm: the same bytes as here"

#!/bin/sh
# Boots one machine and stays until it is down; 133 means that it asked for a reboot.
#   boot.sh GROUP ROOT UUID NETNS HOSTNAME
set -eu

group=$1
for hierarchy in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    [ -f "$hierarchy/cgroup.procs" ] || continue
    # A group that has seen cgroup.kill kills what is forked into it later, too.
    [ ! -d "$hierarchy/$group" ] || find "$hierarchy/$group" -depth -type d -exec rmdir {} + || :
    mkdir -p "$hierarchy/$group"
    echo $$ > "$hierarchy/$group/cgroup.procs"
done

export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_SECCOMP=0 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
exec systemd-nspawn -q -b -M "$group" -D "$2" --register=no --keep-unit --uuid="$3" \
    --network-namespace-path="/run/netns/$4" --hostname="$5" \
    --resolv-conf=off --timezone=off --capability=all --link-journal=no \
    --console=pipe --notify-ready=no

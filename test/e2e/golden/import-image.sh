#!/bin/sh
# Imports the jobs' image into the runner user's own store, as that user, in a short
# nspawn of the tree: a store copied from elsewhere would belong to nobody.
#   import-image.sh ROOT
set -eu

group=sle2e-golden
forget_groups() {
    for hierarchy in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
        [ ! -d "$hierarchy/$group" ] || find "$hierarchy/$group" -depth -type d -exec rmdir {} +
    done
}
trap forget_groups EXIT

(
    for hierarchy in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
        [ -f "$hierarchy/cgroup.procs" ] || continue
        mkdir -p "$hierarchy/$group"
        sh -c 'echo "$PPID"' > "$hierarchy/$group/cgroup.procs"
    done
    export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_SECCOMP=0 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
    # shellcheck disable=SC2016 # for the shell inside
    exec systemd-nspawn -q -M "$group" -D "$1" --register=no --keep-unit --as-pid2 --private-network \
        --capability=all --resolv-conf=off --timezone=off --link-journal=no --console=pipe \
        /bin/sh -euc '
            /usr/local/sbin/e2e-guest
            install -d -o fedora -g fedora -m 0700 /run/user/1000
            cd /
            runuser -u fedora -- env HOME=/home/fedora XDG_RUNTIME_DIR=/run/user/1000 \
                podman --cgroup-manager cgroupfs import --quiet \
                /usr/local/share/e2e/job-image.tar localhost/job:latest
            umount /run/unmasked/proc /run/unmasked/sys
        '
)
rm -f "$1"/etc/ssh/ssh_host_*
: > "$1/etc/machine-id"

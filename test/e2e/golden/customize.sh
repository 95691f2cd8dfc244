#!/bin/sh
# Turns a copy of the base tree into the golden tree: users, masks, and the files
# under tree/.
#   customize.sh ROOT TREE-DIR
set -eu

root=$1
tree=$2

cp -R --preserve=mode "$tree/." "$root/"
chown -R root:root "$root/etc/systemd/system" "$root/etc/containers" "$root/usr/local/sbin"

# A machine's identity is its own: an empty machine-id is filled in at the first boot.
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_*

in_root() { chroot "$root" "$@"; }

in_root useradd --create-home --shell /bin/bash --uid 1000 fedora
in_root useradd --create-home --shell /bin/bash --uid 1001 ops
in_root useradd --create-home --shell /bin/sh --uid 1002 sluice
# /etc/gitlab-runner is the runner user's: it keeps .runner_system_id there.
in_root install -d -o fedora -g fedora -m 0755 /etc/gitlab-runner
for user in fedora ops sluice; do
    in_root install -d -o "$user" -g "$user" -m 0700 "/home/$user/.ssh"
done

grep -q '^fedora:' "$root/etc/subuid" || echo 'fedora:100000:65536' >> "$root/etc/subuid"
grep -q '^fedora:' "$root/etc/subgid" || echo 'fedora:100000:65536' >> "$root/etc/subgid"
install -d "$root/var/lib/systemd/linger"
: > "$root/var/lib/systemd/linger/fedora"

# A language in which programs say other things than the scripts expect.
in_root localedef --inputfile=de_DE --charmap=UTF-8 de_DE.UTF-8

# What would touch the kernel all machines share, or only costs time.
for unit in \
    systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
    systemd-udev-trigger.service systemd-udev-settle.service systemd-sysctl.service \
    systemd-modules-load.service kmod-static-nodes.service systemd-binfmt.service \
    proc-sys-fs-binfmt_misc.automount systemd-networkd.service systemd-networkd.socket \
    systemd-networkd-wait-online.service systemd-resolved.service systemd-timesyncd.service \
    systemd-random-seed.service systemd-pcrlock-make-policy.service systemd-firstboot.service \
    systemd-journal-catalog-update.service systemd-hwdb-update.service ldconfig.service \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    getty.target console-getty.service ssh.socket podman-auto-update.timer podman-auto-update.service \
    podman-restart.service podman-clean-transient.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
systemctl --quiet --root="$root" enable ssh.service e2e-guest.service gitlab-runner.service

# The image of the jobs: static busybox and its links.
image=$(mktemp -d)
trap 'rm -rf "$image"' EXIT
mkdir -p "$image/bin" "$image/tmp"
chmod 755 "$image"
cp "$root/bin/busybox" "$image/bin/busybox"
for applet in sh sleep echo cat true false test ls kill ps env date touch rm seq; do
    ln -s busybox "$image/bin/$applet"
done
install -d "$root/usr/local/share/e2e"
tar -C "$image" --owner=0 --group=0 -cf "$root/usr/local/share/e2e/job-image.tar" .

# What every script stands on. The lines sent before it set nonce, unit, config
# and runner_user. Nothing runs until the last line calls main: a script that
# arrives in part does nothing.
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
umask 022
root=${SLUICE_ROOT-} # empty on a host; a simulated one lives below a directory
systemd=$root/run/systemd/system
dropin=$systemd/$unit.d/zz-sluice-drain.conf
last_order=$systemd/$unit.d/zz-sluice-drain.order
draft=$systemd/$unit.d/zz-sluice-drain.new
nl='
'

field() { printf '%s=%s\n' "$1" "$2"; }

# lines KEY: standard input, each line as KEY=line.
lines() { sed "s/^/$1=/"; }

last_line() { printf '%s' "${1##*"$nl"}"; }

prop() { systemctl show "$unit" --property="$1" 2>/dev/null | sed -n "s/^$1=//p"; }

boot_id() { IFS= read -r id <"$root/proc/sys/kernel/random/boot_id" && printf '%s' "$id"; }

# refuse REASON DETAIL ends the script: nothing further is done, and what undo
# names is taken back.
undo=
refuse() {
    $undo
    field refused "$1"
    field detail "$(printf '%s' "$2" | tr '\n' ' ')"
    printf 'sluice-end %s\n' "$nonce"
    exit 0
}

login=$(id -un)
as_root() { if [ "$login" = root ]; then "$@"; else sudo -n "$@"; fi; }

# must COMMAND: as root, or refuse with what it said.
must() {
    if said=$(as_root "$@" 2>&1 >/dev/null); then return 0; fi
    case $said in
    *sudo:* | *'not allowed to'*) refuse sudo "$*" ;;
    *) refuse failed "$*: $said" ;;
    esac
}

# main: a login banner may stand before the first mark, so it begins a line.
main() {
    cd /
    printf '\nsluice-begin %s\n' "$nonce"
    run
    printf 'sluice-end %s\n' "$nonce"
}

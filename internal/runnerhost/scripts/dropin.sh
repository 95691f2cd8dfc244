# The drain drop-in: what it says, and whether it holds. Its name sorts behind
# a 90-local.conf in /etc. ExecStop= and ExecStopPost= are cleared: they run
# before the signal and after the end, and may unregister a shared token.
write_dropin() {
    must tee "$draft" <<EOF
# Written by Sluice: this runner is drained. It finishes its jobs and takes no
# new one. To give intake back: sluice undrain
# owner: $owner
# operation: $operation
# number: $number
[Service]
Restart=no
KillSignal=SIGQUIT
KillMode=mixed
TimeoutStopSec=infinity
TimeoutStopFailureMode=terminate
ExecStop=
ExecStopPost=
WatchdogSec=0
RuntimeMaxSec=infinity
EOF
    must mv -f "$draft" "$dropin"
}

# note KEY FILE: a comment of a drop-in or of the last order.
note() { sed -n "/^# $1: /{s///p;q;}" "$2" 2>/dev/null; }

dropin_is_ours() {
    [ "$(note owner "$dropin")" = "$owner" ] && [ "$(note number "$dropin")" = "$number" ]
}

drain_values=Restart,KillSignal,KillMode,TimeoutStopUSec,TimeoutStopFailureMode,WatchdogUSec,RuntimeMaxUSec,ExecStop,ExecStopPost

# deviations ANSWER: the values, as systemctl show gave them, that are not the
# drop-in's. Effective values count, not the file. Nothing = all are.
deviations() {
    for want in Restart=no KillSignal=3 KillMode=mixed TimeoutStopUSec=infinity \
        TimeoutStopFailureMode=terminate RuntimeMaxUSec=infinity; do
        case "$nl$1$nl" in
        *"$nl$want$nl"*) ;;
        *) deviation "$1" "${want%%=*}" ;;
        esac
    done
    case "$nl$1$nl" in # systemd prints "no watchdog" in either way
    *"${nl}WatchdogUSec=0$nl"* | *"${nl}WatchdogUSec=infinity$nl"*) ;;
    *) deviation "$1" WatchdogUSec ;;
    esac
    printf '%s\n' "$1" | grep -E '^ExecStop(Post)?=.' || true
}

deviation() { printf '%s\n' "$1" | grep "^$2=" || printf '%s=(no answer)\n' "$2"; }

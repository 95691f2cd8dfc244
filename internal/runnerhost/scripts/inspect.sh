# Everything that preflight asks. It changes nothing.
run() {
    field clock "$(date +%s)"
    reading
    unit_facts
    process_facts
    config_facts
    shutdown_facts
    sudo_facts
    field systemd.version "$(systemctl --version 2>/dev/null | sed 1q)"
    field podman.version "$(podman --version 2>/dev/null | sed 1q)"
    if command -v pidwait >/dev/null 2>&1; then field pidwait yes; else field pidwait no; fi
}

unit_facts() {
    facts=$(systemctl show "$unit" --property=FragmentPath,DropInPaths,UnitFileState,ExecStart,User,ExecMainExitTimestampMonotonic 2>&1)
    field uptime "$(cut -d ' ' -f 1 "$root/proc/uptime" 2>/dev/null)"
    printf '%s\n' "$facts" | sed -n '/^[A-Za-z]*=/s/^/unit./p'
    case $facts in
    *FragmentPath=*) ;;
    *) field systemd.error "$(last_line "${facts:-no answer}")" ;;
    esac
    overrides "$(printf '%s\n' "$facts" | sed -n 's/^DropInPaths=//p')"
    prop Environment | tr ' ' '\n' | sed -n 's/^"\{0,1\}\([A-Za-z_][A-Za-z0-9_]*\)=.*/environment=\1/p'
}

# overrides PATHS: which drop-in sets what a drain sets too. Ours is none of them.
overrides() {
    for path in $1; do
        [ "$root$path" != "$dropin" ] || continue
        sed -nE 's/^[[:space:]]*(Restart|Kill(Signal|Mode)|Timeout(Stop)?Sec|TimeoutStopFailureMode|ExecStop(Post)?|WatchdogSec|RuntimeMaxSec)[[:space:]]*=.*/\1/p' \
            "$root$path" 2>/dev/null | sort -u | while IFS= read -r key; do field override "$key $path"; done
    done
}

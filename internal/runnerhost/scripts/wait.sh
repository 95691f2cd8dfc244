# Waits, for at most limit seconds, until the main process main_pid is gone and
# systemd has noticed it; then reads the host, as look does, and says how long
# after the beginning of the script that was.
run() {
    left=$((limit * 20)) # looks, 0.05 s apart
    began=$(up)
    pid=$(prop MainPID)
    if [ "$main_pid" -ne 0 ] && [ "$pid" != "$main_pid" ]; then return; fi
    [ "$main_pid" -eq 0 ] || await_process
    while [ "$left" -gt 0 ] && going_down; do pause; done
    [ "$left" -gt 0 ] || return 0
    field wait.began "$began"
    field wait.ended "$(up)"
    containers | { # systemd is asked meanwhile: both is after the end
        state
        cat
    }
}

# up is how long the host has been up, in seconds with two decimals.
up() {
    { read -r seconds _ <"$root/proc/uptime"; } 2>/dev/null || true
    printf '%s' "${seconds-}"
}

going_down() {
    said=$nl$(systemctl show "$unit" --property=ActiveState,MainPID 2>/dev/null)$nl
    case $said in *"${nl}ActiveState=deactivating$nl"*) ;; *) return 1 ;; esac
    case $said in *"${nl}MainPID=0$nl"*) ;; *) return 1 ;; esac
}

await_process() {
    process=$(start_time)
    if command -v pidwait >/dev/null 2>&1; then # systemd gives a main process a session of its own
        timeout "$limit" pidwait -P 1 -s "$main_pid"
        [ "$?" -ne 124 ] || left=0
    fi
    while [ "$left" -gt 0 ] && [ -n "$process" ] && [ "$(start_time)" = "$process" ]; do
        pause
    done
}

pause() {
    left=$((left - 1))
    sleep 0.05
}

# start_time tells a process from a later one with the same id: field 22 of
# stat, counted from behind the name, which may hold anything.
start_time() {
    stat=
    { read -r stat <"$root/proc/$main_pid/stat"; } 2>/dev/null || true
    set -f
    # shellcheck disable=SC2086 # split into fields
    set -- ${stat##*)}
    printf '%s' "${20-}"
}

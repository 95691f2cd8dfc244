# Waits, for at most limit seconds, until the main process main_pid is gone and
# systemd has noticed it. Only a hint: the reading after it is what counts.
run() {
    left=$((limit * 20)) # looks, 0.05 s apart
    pid=$(prop MainPID)
    if [ "$main_pid" -ne 0 ] && [ "$pid" != "$main_pid" ]; then return; fi
    [ "$main_pid" -eq 0 ] || await_process
    while [ "$left" -gt 0 ] && [ "$(prop ActiveState)" = deactivating ] && [ "$(prop MainPID)" = 0 ]; do
        pause
    done
}

await_process() {
    began=$(start_time)
    if command -v pidwait >/dev/null 2>&1; then # systemd gives a main process a session of its own
        timeout "$limit" pidwait -P 1 -s "$main_pid"
        [ "$?" -ne 124 ] || left=0
    fi
    while [ "$left" -gt 0 ] && [ -n "$began" ] && [ "$(start_time)" = "$began" ]; do
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

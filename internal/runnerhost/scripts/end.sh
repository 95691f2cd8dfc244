# Ends the jobs: SIGTERM to the main process, which fails them as interrupted.
run() {
    lock
    admit
    pid=$(prop MainPID)
    [ -n "$pid" ] || refuse systemd "systemctl show gives no answer"
    if [ "$pid" -ne 0 ] && [ -d "$root/proc/$pid" ]; then
        must systemctl kill --signal=SIGTERM --kill-whom=main "$unit"
    fi
    field ended "$pid"
}

# Stops intake: drop-in, reload, read-back, and only then a stop, which is a
# SIGQUIT that waits for the jobs. A stop before the reload would be a SIGTERM.
run() {
    lock
    admit
    [ -e "$dropin" ] || undo=withdraw
    write_dropin
    must systemctl daemon-reload
    answer=$(systemctl show "$unit" --property="$drain_values" 2>/dev/null)
    [ -n "$answer" ] || refuse systemd "systemctl show gives no answer"
    wrong=$(deviations "$answer")
    [ -z "$wrong" ] || refuse overridden "$wrong (drop-ins of the unit: $(prop DropInPaths))"
    dropin_is_ours || refuse failed "$dropin is not as it was written"
    must systemctl stop --no-block "$unit"
    undo=
    unlock
    reading
}

# withdraw leaves a unit that nobody has stopped as it was found.
withdraw() {
    undo=
    case $(prop ActiveState) in
    active | inactive | failed)
        as_root rm -f "$dropin" && as_root systemctl daemon-reload
        ;;
    esac
} >/dev/null 2>&1

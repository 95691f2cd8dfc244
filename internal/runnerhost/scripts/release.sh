# Removes the drop-in, once nothing is being stopped: a reload without it puts
# the unit's own stop timeout back, counted from the beginning of the stop.
run() {
    lock
    admit
    settled || refuse busy "$unit is ${state:-in an unknown state}${job:+, with job $job pending}"
    must rm -f "$dropin"
    must systemctl daemon-reload
    if ! settled; then # somebody stopped it in this very moment
        write_dropin
        must systemctl daemon-reload
        refuse busy "$unit is ${state:-in an unknown state}${job:+, with job $job pending}"
    fi
    case " $(prop DropInPaths) " in
    *" $dropin "*) refuse failed "systemd still uses $dropin" ;;
    esac
    unlock
    reading
}

settled() {
    state=$(prop ActiveState)
    job=$(prop Job)
    [ "$job" != 0 ] || job=
    case $state in
    active | inactive | failed) [ -z "$job" ] ;;
    *) return 1 ;;
    esac
}

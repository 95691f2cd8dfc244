# Orders change the host one at a time and in the order of their numbers. The
# lines sent before it set owner, operation, number, order_boot and take_over.

# The lock is an existing directory of root's: it needs no room in /run, no
# writable root, and no right but to read.
lock() {
    [ -d "$systemd" ] || refuse systemd "$systemd is missing: systemd does not run this host"
    exec 9<"$systemd"
    flock -w 10 9 || refuse lock "another order has held the lock on $systemd for 10 s"
}

# unlock: what the login leaves behind (podman's pause process) must not hold it.
unlock() { exec 9<&-; }

# admit refuses an order that is not for this boot, comes too late, or meets
# another owner's drop-in; then it records the order, before any effect. The
# record outlives the drop-in: that is how a late stop is known after a restore.
admit() {
    if [ -n "$order_boot" ] && [ "$order_boot" != "$(boot_id)" ]; then
        refuse boot "the order was for boot $order_boot, this is $(boot_id)"
    fi
    state=$(prop LoadState)
    [ -n "$state" ] || refuse systemd "systemctl show gives no answer"
    [ "$state" = loaded ] || refuse unit "systemd says of $unit: $state"
    refuse_foreign
    refuse_late
    must mkdir -p "$systemd/$unit.d"
    must tee "$draft" <<EOF
# owner: $owner
# operation: $operation
# number: $number
EOF
    must mv -f "$draft" "$last_order"
}

refuse_foreign() {
    if [ "$take_over" = yes ] || [ ! -e "$dropin" ]; then return 0; fi
    for file in "$dropin" "$last_order"; do
        other=$(note owner "$file")
        if [ -e "$file" ] && [ "$other" != "$owner" ]; then
            refuse foreign "${other:-an unknown owner} (operation $(note operation "$file")), by $file"
        fi
    done
}

refuse_late() {
    [ "$(note owner "$last_order")" = "$owner" ] || return 0
    last=$(note number "$last_order")
    case $last in
    '' | *[!0-9]*) refuse damaged "$last_order names no number" ;;
    esac
    [ "$number" -ge "$last" ] && return 0
    field obeyed "$last"
    refuse late "$(note operation "$last_order")"
}

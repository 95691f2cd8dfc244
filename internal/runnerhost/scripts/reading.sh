# One reading of the host: unit, drop-in, boot id, system_id, containers. The
# containers come last: what is gone before them was gone when they were read.
reading() {
    state
    containers
}

# state is the reading without the containers.
state() {
    field boot_id "$(boot_id)"
    field system_id "$(system_id "${config%/*}")"
    answer=$(systemctl show "$unit" --property="LoadState,ActiveState,SubState,Result,MainPID,$drain_values" 2>/dev/null)
    printf '%s\n' "$answer" | sed -n '/=/s/^/unit./p'
    if [ -e "$dropin" ]; then
        field dropin.present yes
        sed -n -e 's/^# owner: /dropin.owner=/p' -e 's/^# operation: /dropin.operation=/p' \
            -e 's/^# number: /dropin.number=/p' "$dropin" 2>/dev/null
        deviations "$answer" | lines dropin.deviation
    else
        field dropin.present no
    fi
}

# system_id DIRECTORY: as gitlab-runner keeps it beside config.toml.
system_id() { read_file "$root$1/.runner_system_id" | tr -d '[:space:]'; }

# read_file FILE: with sudo only where it is needed; nothing if it is not there.
read_file() {
    if [ -r "$1" ]; then
        cat "$1"
    elif [ ! -x "${1%/*}" ] || [ -e "$1" ]; then
        as_root cat "$1" 2>/dev/null
    fi
}

# containers of the runner's user. Root's own list is empty with status 0: a
# false idle.
containers() {
    exec 3>&1
    said=$({
        list=$(as_runner timeout -k 1 8 podman ps --format json)
        status=$?
        if [ "$status" -eq 127 ] && shells_only; then list='[]' status=0; fi
        [ "$status" -ne 0 ] || printf '%s\n' "$list" | lines podman.line >&3
        exit "$status"
    } 2>&1)
    field podman.status "$?"
    field podman.error "$(last_line "$said")"
    exec 3>&-
}

# shells_only: every entry of config.toml runs its jobs in the host's own shell,
# so a host without podman has no container of a job.
shells_only() {
    executors=$(read_file "$root$config" | sed -n 's/^[[:space:]]*executor[[:space:]]*=[[:space:]]*//p')
    [ -n "$executors" ] || return 1
    ! printf '%s\n' "$executors" | grep -Eqv "^[\"']shell[\"'][[:space:]]*(#.*)?$"
}

as_runner() {
    if [ "$login" = "$runner_user" ]; then
        "$@"
    elif [ "$login" = root ]; then
        home=$(getent passwd "$runner_user" | cut -d: -f6)
        runuser -u "$runner_user" -- env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS "HOME=$home" "$@"
    else
        sudo -n -u "$runner_user" "$@"
    fi
}

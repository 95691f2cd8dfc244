# What would unregister the runner when a unit stops or the host goes down. With
# a shared token that can end the whole fleet (cattle-ops' runner module had it
# so: a shutdown script removed the token of its replacement).
shutdown_facts() {
    unit_files | while IFS= read -r file; do
        printf '\n[file] %s\n' "$file"
        cat "$file"
    done 2>/dev/null | commands | while IFS=$tab read -r file command; do
        name=$(owner_unit "$file")
        if suspicious "$name $command"; then
            report_unit "$name" "$command"
        else
            for script in $(paths "$command"); do
                ! script_unregisters "$root$script" || report_unit "$name" "$script"
            done
        fi
    done | sort -u
    for script in "$root"/etc/rc[06].d/K* "$root"/usr/lib/systemd/system-shutdown/* \
        "$root"/lib/systemd/system-shutdown/* "$root"/etc/systemd/system-shutdown/*; do
        ! script_unregisters "$script" || field unregisters "${script#"$root"}"
    done
}

# unit_files lists unit files and drop-ins; a masked unit is a link to /dev/null.
unit_files() {
    for directory in etc/systemd/system run/systemd/system usr/local/lib/systemd/system usr/lib/systemd/system lib/systemd/system; do
        [ "$directory" != lib/systemd/system ] || [ ! -L "$root/lib" ] || continue
        for file in "$root/$directory"/*.service "$root/$directory"/*.service.d/*.conf; do
            [ ! -f "$file" ] || printf '%s\n' "$file"
        done
    done
}

# commands prints the file, a tab and the command, for what runs at a unit's
# stop or is wanted by the host's shutdown. Before each file stands its name.
commands() {
    awk '
    function flush_unit(i) {
        for (i = 0; i < stops; i++) print file "\t" stop[i]
        for (i = 0; late && i < starts; i++) print file "\t" start[i]
        stops = starts = late = 0
    }
    function value(text) { sub(/^[^=]*=[ \t]*/, "", text); gsub(/\t/, " ", text); return text }
    /^\[file\] / { flush_unit(); file = substr($0, 8); held = ""; next }
    /^[ \t]*[#;]/ { next }
    { line = held $0; held = "" }
    line ~ /\\$/ { sub(/\\$/, " ", line); held = line; next }
    line ~ /^ExecStop(Post)?[ \t]*=[ \t]*[^ \t]/ { stop[stops++] = value(line) }
    line ~ /^ExecStart(Pre|Post)?[ \t]*=[ \t]*[^ \t]/ { start[starts++] = value(line) }
    line ~ /^(WantedBy|RequiredBy)[ \t]*=.*(shutdown|poweroff|halt|reboot|kexec)\.target/ { late = 1 }
    END { flush_unit() }'
}

owner_unit() {
    case $1 in
    *.conf) set -- "${1%/*}" && set -- "${1%.d}" ;;
    esac
    printf '%s' "${1##*/}"
}

# suspicious TEXT: it unregisters a runner. Other things are unregistered too
# (systemd-binfmt does so at every stop).
suspicious() {
    case $1 in
    *runners/managers*) true ;;
    *[Uu]nregister*) case $1 in *gitlab* | *runner*) true ;; *) false ;; esac ;;
    *api/v4/runners*) case $1 in *DELETE*) true ;; *) false ;; esac ;;
    *) false ;;
    esac
}

paths() { printf '%s\n' "$1" | tr "\"'; " '[\n*]' | sed -n 's/^[-@+!:|]*\(\/[^$%*?]*\)$/\1/p'; }

# script_unregisters FILE: a text file that would; programs do not count.
script_unregisters() {
    [ -f "$1" ] || return 1
    if [ ! -r "$1" ]; then
        suspicious "$1"
        return
    fi
    text=$(grep -Is . "$1" | sed '/^[[:space:]]*#/d' | tr '\n' ' ')
    suspicious "$text"
}

# report_unit NAME WHAT, unless the unit can not run: off and not enabled.
report_unit() {
    case $(systemctl show "$1" --property=LoadState,UnitFileState,ActiveState 2>/dev/null | sort | tr '\n' ' ') in
    *LoadState=masked*) ;;
    *ActiveState=inactive*UnitFileState=disabled* | *ActiveState=failed*UnitFileState=disabled*) ;;
    *) field unregisters "$1: $2" ;;
    esac
}

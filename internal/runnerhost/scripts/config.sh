# The [[runners]] entries of config.toml and the system_ids. A token never
# leaves the host: its prefix and its hash do.
config_facts() {
    for id in $(config_directories | while IFS= read -r directory; do system_id "$directory" && echo; done | sort -u); do
        field system_id.found "$id"
    done
    for file in "$root/var/lib/dbus/machine-id" "$root/etc/machine-id"; do
        [ ! -r "$file" ] || field machine_id "$(tr -d '[:space:]' <"$file")"
    done
    text=$(read_file "$root$config")
    if [ -z "$text" ]; then
        field config.known no
        return
    fi
    field config.known yes
    printf '%s\n' "$text" | entries | while IFS=$tab read -r key value; do
        case $key in
        *.token) token "$key" "$value" ;;
        *) field "$key" "$value" ;;
        esac
    done
}

tab=$(printf '\t')

config_directories() {
    printf '%s\n' "${config%/*}"
    home=$(getent passwd "$runner_user" 2>/dev/null | cut -d: -f6)
    if [ -n "$home" ] && [ -r "$root$home/.gitlab-runner/.runner_system_id" ]; then
        printf '%s\n' "$home/.gitlab-runner"
    fi
}

# token KEY VALUE: printf is the shell's own, so the value is in no argument list.
token() {
    field "$1_prefix" "$(printf '%s' "$2" | sed -n 's/^\([a-z][a-z]*-\).*/\1/p')"
    field "$1_sha256" "$(printf '%s' "$2" | sha256sum | cut -d ' ' -f 1)"
}

# entries prints entry.N.KEY, a tab and the value, for the keys of [[runners]].
entries() {
    awk -v quote="'" '
    /^[ \t]*\[\[[ \t]*runners[ \t]*\]\]/ { n++; inside = 1; print "entry." n ".begin\tyes"; next }
    /^[ \t]*\[/ { inside = 0; next }
    inside && /^[ \t]*(name|url|id|executor|token|token_expires_at)[ \t]*=/ {
        key = value = $0
        sub(/[ \t]*=.*/, "", key); sub(/^[ \t]*/, "", key)
        sub(/^[^=]*=[ \t]*/, "", value)
        mark = substr(value, 1, 1)
        if (mark == "\"" || mark == quote) {
            value = substr(value, 2)
            end = index(value, mark)
            value = end ? substr(value, 1, end - 1) : ""
        } else sub(/[ \t]*(#.*)?$/, "", value)
        print "entry." n "." key "\t" value
    }'
}

# Everything that preflight asks. It changes nothing.
run() {
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
    facts=$(systemctl show "$unit" --property=FragmentPath,DropInPaths,UnitFileState,ExecStart 2>&1)
    printf '%s\n' "$facts" | sed -n '/^[A-Za-z]*=/s/^/unit./p'
    case $facts in
    *FragmentPath=*) ;;
    *) field systemd.error "$(last_line "${facts:-no answer}")" ;;
    esac
    prop Environment | tr ' ' '\n' | sed -n 's/^"\{0,1\}\([A-Za-z_][A-Za-z0-9_]*\)=.*/environment=\1/p'
}

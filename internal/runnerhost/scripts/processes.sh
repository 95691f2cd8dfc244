# The processes that are `gitlab-runner run`, the unit of each, and the main
# process of ours.
process_facts() {
    main=$(prop MainPID)
    [ "${main:-0}" -eq 0 ] || arguments "$main" | lines main.argument
    for file in "$root"/proc/[0-9]*/cmdline; do
        line= # the shell's own read drops the zero bytes, which is enough here
        { IFS= read -r line <"$file"; } 2>/dev/null
        case $line in
        *gitlab-runner* | *gitlab-ci-multi-runner*) ;;
        *) continue ;;
        esac
        pid=${file%/cmdline}
        pid=${pid##*/}
        is_runner "$pid" || continue
        field runner.pid "$pid"
        sed -n 's|.*/\([^/]*\.service\).*|runner.unit=\1|p' "$root/proc/$pid/cgroup" 2>/dev/null | sort -u
    done
}

arguments() { tr '\0' '\n' <"$root/proc/$1/cmdline"; }

is_runner() {
    arguments "$1" 2>/dev/null | {
        IFS= read -r program
        case ${program##*/} in
        gitlab-runner | gitlab-ci-multi-runner) grep -qx run ;;
        *) false ;;
        esac
    }
}

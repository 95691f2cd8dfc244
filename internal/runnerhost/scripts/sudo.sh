# Which of the commands sudo refuses to this login. The line sent before it
# defines wanted, which calls may for each of them.
sudo_facts() {
    [ "$login" = root ] || wanted
}

# may COMMAND: asks sudo, which runs nothing. What it would say at the real
# call counts then: a rule that asks for a password passes here.
may() {
    sudo -n -l "$@" >/dev/null 2>&1 || field sudo.refused "$*"
}

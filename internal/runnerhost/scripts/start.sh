# Starts intake and keeps the drop-in: without it a stop in flight would be cut
# short. A process that was told to quit is replaced when its jobs have ended.
run() {
    lock
    admit
    must systemctl start --no-block "$unit"
    unlock
    reading
}

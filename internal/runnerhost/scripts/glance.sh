run() { state; }

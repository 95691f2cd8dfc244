run() { reading; }

package machines

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Start runs a program inside the cloud's network until the world goes down; its output
// goes to logs/NAME.log.
func (w *World) Start(name string, argv ...string) (Handle, error) {
	log, err := os.OpenFile(filepath.Join(w.Dir(), "logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Handle{}, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("nsenter", w.InCloud(argv...)[1:]...) //nolint:gosec,noctx // outlives the caller on purpose
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Handle{}, err
	}
	handle := HandleOf(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }()
	return handle, writeJSON(filepath.Join(w.Dir(), "service-"+name+".json"), handle)
}

// InCloud yields the command line that runs argv inside the cloud's network, and only
// that: files, processes and users stay the host's.
func (w *World) InCloud(argv ...string) []string {
	return append([]string{"nsenter", "--net=" + w.cloud().path(), "--"}, argv...)
}

// DialContext connects from inside the cloud's network; address must be IP:port.
func (w *World) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return w.cloud().dial(ctx, network, address)
}

// Listen listens inside the cloud's network; address must be IP:port.
func (w *World) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return w.cloud().listen(ctx, network, address)
}

func (w *World) services() []Handle {
	files, _ := filepath.Glob(filepath.Join(w.Dir(), "service-*.json"))
	var handles []Handle
	for _, file := range files {
		var handle Handle
		if readJSON(file, &handle) == nil {
			handles = append(handles, handle)
		}
	}
	return handles
}

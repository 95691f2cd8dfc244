package cli_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

const idleConfig = `fleets:
  lab:
    vms: {prefix: runner-, count: 50, width: 2}
    provider: {exec: {list: ["true"], describe: ["true"], prepare: ["true"], create: ["true"], delete: ["true"]}}
    host: {user: fedora, key: {file: %[1]s/key}}
store: {sqlite: %[1]s/a.db}
server: {socket: %[1]s/s}
`

// idleFor is how long the idle controller is watched.
const idleFor = 10 * time.Second

// BenchmarkIdleController prints what `sluice serve` costs when nothing is
// asked for: resident memory (bar 60 MB) and percent of a core (bar 3), and
// how long it took from its start to the first answer (bar 0.5 s).
func BenchmarkIdleController(b *testing.B) {
	for b.Loop() {
		dir, err := os.MkdirTemp("", "sl")
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		began := time.Now()
		cmd := startServer(b, dir)
		ready := awaitAnswer(b, filepath.Join(dir, "s")).Sub(began)
		before := cpu(b, cmd.Process.Pid)
		<-time.After(idleFor)
		used := cpu(b, cmd.Process.Pid) - before
		b.ReportMetric(float64(resident(b, cmd.Process.Pid))/1e6, "MB")
		b.ReportMetric(100*used.Seconds()/idleFor.Seconds(), "%core")
		b.ReportMetric(float64(ready.Milliseconds()), "ms-to-ready")
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	}
}

func startServer(b *testing.B, dir string) *exec.Cmd {
	b.Helper()
	writeIdle(b, dir)
	cmd := exec.CommandContext(context.Background(), "sluice", "serve", "--config", filepath.Join(dir, "sluice.yaml"))
	cmd.Stderr = new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return cmd
}

// awaitAnswer waits until the socket takes connections.
func awaitAnswer(b *testing.B, socket string) time.Time {
	b.Helper()
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); <-time.After(time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			return time.Now()
		}
	}
	b.Fatal("the server never answered")
	return time.Time{}
}

// cpu is the processor time of a process (proc(5), utime and stime).
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

// resident is the resident memory of a process in bytes (proc(5), VmRSS).
func resident(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return n * 1024
}

// writeIdle writes the configuration of a server that nobody asks for anything,
// and what belongs to it.
func writeIdle(b testing.TB, dir string) {
	b.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"key": string(pem.EncodeToMemory(block)), "sluice.yaml": fmt.Sprintf(idleConfig, dir)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

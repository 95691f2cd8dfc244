package machines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The world's addresses. Each world is a network of its own that nothing leaves, so
// all may use the same.
const (
	cloudAddress = "10.77.0.1"
	prefix       = "/24"
	firstHost    = 10
	lastHost     = 250
)

// namespace is a named network namespace.
type namespace string

func (n namespace) path() string { return "/run/netns/" + string(n) }

func (n namespace) exists() bool {
	_, err := os.Stat(n.path())
	return err == nil
}

// makeCloud makes the namespace with the bridge that stands for the cloud's network.
func (n namespace) makeCloud(ctx context.Context) error {
	return ipBatch(ctx,
		[]string{"netns", "add", string(n)},
		[]string{"-n", string(n), "link", "set", "lo", "up"},
		[]string{"-n", string(n), "link", "add", "br0", "type", "bridge"},
		[]string{"-n", string(n), "addr", "add", cloudAddress + prefix, "dev", "br0"},
		[]string{"-n", string(n), "link", "set", "br0", "up"},
	)
}

// makeMachine makes a machine's namespace and plugs it into the cloud's bridge with the
// cable port.
func (n namespace) makeMachine(ctx context.Context, cloud namespace, port, address string) error {
	return ipBatch(ctx,
		[]string{"netns", "add", string(n)},
		[]string{"-n", string(cloud), "link", "add", port, "type", "veth", "peer", "name", "host0", "netns", string(n)},
		[]string{"-n", string(cloud), "link", "set", port, "master", "br0", "up"},
		[]string{"-n", string(n), "link", "set", "lo", "up"},
		[]string{"-n", string(n), "addr", "add", address + prefix, "dev", "host0"},
		[]string{"-n", string(n), "link", "set", "host0", "up"},
	)
}

// plug sets a machine's cable in or out of the cloud's bridge.
func (n namespace) plug(ctx context.Context, port string, in bool) error {
	state := "down"
	if in {
		state = "up"
	}
	return ip(ctx, "-n", string(n), "link", "set", port, state)
}

// remove deletes the namespace; its cables go with it.
func (n namespace) remove(ctx context.Context) error {
	if !n.exists() {
		return nil
	}
	return ip(ctx, "netns", "del", string(n))
}

// dial connects from inside the namespace. address must be an IP, so that no other
// goroutine makes the socket.
func (n namespace) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return inside(n, func() (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, address)
	})
}

// listen listens inside the namespace; address must be an IP.
func (n namespace) listen(ctx context.Context, network, address string) (net.Listener, error) {
	return inside(n, func() (net.Listener, error) {
		var config net.ListenConfig
		return config.Listen(ctx, network, address)
	})
}

// inside makes a socket in a namespace: it belongs to the one its thread was in when it
// was made.
func inside[T any](n namespace, do func() (T, error)) (T, error) {
	type result struct {
		made T
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and the namespace with it.
		runtime.LockOSThread()
		if err := n.enter(); err != nil {
			done <- result{err: err}
			return
		}
		made, err := do()
		done <- result{made, err}
	}()
	r := <-done
	return r.made, r.err
}

// enter moves the calling thread into the namespace.
func (n namespace) enter() error {
	file, err := os.Open(n.path())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("network namespace %s is gone: is the world down?", n)
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
}

func ipBatch(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if err := ip(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
